"""How long a turn may still go on, and under which lease: a turn cannot outlive it."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sume_operator.adapters.due_queue import LOST, Claimed

# What a turn needs after its last call: to give the alarm back before the lease ends.
SPARE_S: Final = 1.0
SHORTEST_CALL_S: Final = 0.2


class LeaseOverError(Exception):
    """The turn has no time left for another call; its alarm comes back by itself when the lease ends."""


class Lease:
    """Counts from before the claim was sent, by this process' own monotonic clock."""

    def __init__(
        self, started_s: float, lease_s: float, claimed: Claimed, renew: Callable[[Claimed, float], str]
    ) -> None:
        self._over_s = started_s + lease_s - SPARE_S
        self._renew = renew
        self.claimed = claimed

    def bound(self, timeout_s: float) -> float:
        """`timeout_s`, cut to what is left; LeaseOverError where that is too little for a call."""
        left_s = self._over_s - time.monotonic()
        if left_s < SHORTEST_CALL_S:
            raise LeaseOverError
        return min(timeout_s, left_s)

    def extend(self, lease_s: float) -> None:
        """Keep the alarm for `lease_s` from now, for the one call that takes longer; LeaseOverError if it is lost."""
        started_s = time.monotonic()
        renewed = self._renew(self.claimed, lease_s)
        if renewed == LOST:
            raise LeaseOverError
        self.claimed = replace(self.claimed, lease=renewed)
        self._over_s = started_s + lease_s - SPARE_S
