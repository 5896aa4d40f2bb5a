"""Whether the watch still hears: compares what it delivered with what lists show.

A quiet watch tells nothing by itself. It is deaf if an object that a pass of the sweep had listed is newer than
anything the watch had delivered by the end of the next pass.
"""

import threading


class WatchState:
    """Filled by the handler and the sweep, read by health."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered = 0
        self._listed_before = 0
        self._deaf_passes = 0

    def delivered(self, resource_version: int) -> None:
        """The watch brought an object of this version."""
        with self._lock:
            self._delivered = max(self._delivered, resource_version)

    def compare(self, newest_listed: int) -> None:
        """A pass of the sweep is complete; `newest_listed` is the newest version among what it listed."""
        with self._lock:
            deaf = self._listed_before > self._delivered
            self._deaf_passes = self._deaf_passes + 1 if deaf else 0
            self._listed_before = newest_listed

    @property
    def deaf_passes(self) -> int:
        """For how many passes in a row the watch has missed something."""
        with self._lock:
            return self._deaf_passes
