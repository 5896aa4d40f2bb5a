"""The checks behind /healthz and /readyz: did something go well lately, or does it when asked now?"""

from collections.abc import Callable
from typing import Final

from sume_operator.adapters.kubernetes_errors import ClusterError
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.runtime.health import Check
from sume_operator.runtime.pulse import Pulse

LATELY_S: Final = 15.0


def answered_lately(pulse: Pulse, probe: Callable[[], None]) -> Check:
    """Fine while `pulse` is young; else `probe` decides, and a good answer is a beat."""

    def check() -> str | None:
        if pulse.age_s < LATELY_S:
            return None
        try:
            probe()
        except (ClusterError, RedisUnavailableError) as error:
            return f"does not answer: {error}"
        pulse.beat()
        return None

    return check


def loop_goes_on(pulse: Pulse, limit_s: float) -> Check:
    """Fine while the loop has come round within `limit_s`."""

    def check() -> str | None:
        return None if pulse.age_s < limit_s else f"the loop has not come round for {limit_s:.0f} s"

    return check
