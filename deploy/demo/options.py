"""How the demo is to run: read from environment variables, which is what make turns KEEP=1 into."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.demo.errors import DemoError

PROCESS_S: Final = 2.5
SLOWNESS: Final = 10.0  # of the sandbox's word `slow`
_OFF: Final = ("", "0", "no", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`context`: of the user's own kubeconfig; None: an embedded cluster."""

    keep: bool
    context: str | None
    samples: Path
    process_s: float  # how long an ordinary job takes at the simulated Sume

    @property
    def slowest_s(self) -> float:
        """How long the slowest job takes at the simulated Sume."""
        return self.process_s * SLOWNESS


def options_from(env: Mapping[str, str], root: Path) -> Options:
    """KEEP, CONTEXT, and for tests DEMO_SAMPLES (a folder) and DEMO_PROCESS_S."""
    try:
        process_s = float(env.get("DEMO_PROCESS_S") or PROCESS_S)
    except ValueError:
        raise DemoError("DEMO_PROCESS_S: wants a number of seconds") from None
    return Options(
        keep=env.get("KEEP", "").strip().lower() not in _OFF,
        context=env.get("CONTEXT", "").strip() or None,
        samples=Path(env.get("DEMO_SAMPLES") or root / "deploy" / "samples"),
        process_s=process_s,
    )
