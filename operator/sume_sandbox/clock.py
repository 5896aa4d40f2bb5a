"""The sandbox's time: epoch seconds that never jump, because they advance with the monotonic clock."""

import time


class Clock:
    """Anchored to the wall clock once, at the start."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return self._offset_s + time.monotonic()
