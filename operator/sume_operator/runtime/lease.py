"""How long a turn may still go on: a turn cannot outlive its lease."""

import time
from typing import Final

# What a turn needs after its last call: to give the alarm back before the lease ends.
SPARE_S: Final = 1.0
SHORTEST_CALL_S: Final = 0.2


class LeaseOverError(Exception):
    """The turn has no time left for another call; its alarm comes back by itself when the lease ends."""


class Lease:
    """Counts from before the claim was sent, by this process' own monotonic clock."""

    def __init__(self, started_s: float, lease_s: float) -> None:
        self._over_s = started_s + lease_s - SPARE_S

    def bound(self, timeout_s: float) -> float:
        """`timeout_s`, cut to what is left; LeaseOverError where that is too little for a call."""
        left_s = self._over_s - time.monotonic()
        if left_s < SHORTEST_CALL_S:
            raise LeaseOverError
        return min(timeout_s, left_s)
