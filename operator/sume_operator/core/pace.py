"""When to look again: delays, back-off, clamping, jitter. The terms a turn works under.

Jitter is a function of the render and of how often it was looked at, so the same inputs give the same delay; it only
ever lengthens, so Sume is not asked earlier than it said.
"""

import math
import zlib
from dataclasses import dataclass
from typing import Final

from sume_operator.core.render import Ref

JITTER_SHARE: Final = 0.05
MAX_HOLD_S: Final = 86_400.0
KEY_PROBE_S: Final = 60.0
# A deletion waits 50 s for its cancel: one that brought nothing is tried some more times in it.
LEAVING_RETRY_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Usual delay, floor, ceiling, first delay after an error, and how rarely an unchanged answer is written."""

    poll_s: float = 15.0
    min_s: float = 2.0
    max_s: float = 300.0
    error_s: float = 30.0
    status_refresh_s: float = 0.0

    def clamped(self, delay_s: float) -> float:
        """`delay_s` within floor and ceiling; nonsense (NaN) counts as the ceiling."""
        return self.max_s if math.isnan(delay_s) else min(max(delay_s, self.min_s), self.max_s)

    def usual_s(self, suggested_s: float | None) -> float:
        """After an answer: what Sume suggests if that is a number above 0, else the usual delay."""
        if suggested_s is not None and math.isfinite(suggested_s) and suggested_s > 0:
            return self.clamped(suggested_s)
        return self.clamped(self.poll_s)

    def error_delay_s(self, failures: int) -> float:
        """After `failures` (>= 1) looks in a row that brought nothing: doubling up to the ceiling."""
        return self.clamped(self.error_s * 2.0 ** min(max(failures, 1) - 1, 30))


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a turn works under: the pace, the API base it talks to, and whether new jobs may be asked for."""

    pace: Pace
    api_url: str
    submissions_enabled: bool = True


def jittered(delay_s: float, ref: Ref, turn: int, pace: Pace) -> float:
    """`delay_s` lengthened by up to 5 %, still within floor and ceiling."""
    return pace.clamped(delay_s * (1.0 + JITTER_SHARE * share_of(ref, turn)))


def share_of(ref: Ref, salt: int = 0) -> float:
    """A number in [0, 1) that is the render's own: spreads many renders over a window, always alike."""
    return zlib.crc32(f"{ref.uid}:{salt}".encode()) / 2**32
