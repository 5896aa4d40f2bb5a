"""How often a workspace may read: a fixed window of a minute that opens with its first read."""

import math
from dataclasses import dataclass

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a read was answered with."""

    granted: bool
    limit: int
    remaining: int
    reset_s: int  # until the window closes

    @property
    def headers(self) -> dict[str, str]:
        """The same as Sume's headers."""
        return {
            "ratelimit-limit": str(self.limit),
            "ratelimit-remaining": str(self.remaining),
            "ratelimit-reset": str(self.reset_s),
        }


class ReadBudget:
    """The reads of every workspace in its current window."""

    def __init__(self, reads_per_minute: int) -> None:
        self._limit = reads_per_minute
        self._windows: dict[str, tuple[float, int]] = {}  # workspace -> (opened at, reads since)

    def take(self, workspace: str, now_s: float) -> Allowance | None:
        """Count one read, if there is one left; None if there is no limit."""
        if self._limit <= 0:
            return None
        opened_at_s, reads = self._windows.get(workspace, (now_s, 0))
        if now_s >= opened_at_s + WINDOW_S:
            opened_at_s, reads = now_s, 0
        granted = reads < self._limit
        self._windows[workspace] = (opened_at_s, reads + granted)
        return Allowance(
            granted=granted,
            limit=self._limit,
            remaining=self._limit - reads - granted,
            reset_s=max(1, math.ceil(opened_at_s + WINDOW_S - now_s)),
        )
