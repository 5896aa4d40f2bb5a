"""The slots of one workspace: jobs wait in order of submission for one of a few places to run in.

Nothing runs in the background. Whoever asks says what time it is, and all that should have happened by then happens.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Timing:
    """When a job runs. `started_at_s` is None while it waits."""

    ready_at_s: float  # not before
    process_s: float
    started_at_s: float | None = None

    @property
    def ends_at_s(self) -> float:
        """When it is done; never, as long as it has not started."""
        return math.inf if self.started_at_s is None else self.started_at_s + self.process_s


class Lanes:
    """First in, first out, into `running_slots` places."""

    def __init__(self, *, running_slots: int, queued_slots: int) -> None:
        self._running_slots = running_slots
        self._slots = running_slots + queued_slots
        self._running: list[tuple[float, int, Timing]] = []  # a heap: who ends first is first
        self._queue: deque[Timing] = deque()
        self._advanced_to_s = -math.inf
        self._started = 0  # breaks ties in the heap
        self.max_active = 0

    @property
    def active(self) -> int:
        """Jobs that run or wait, as of the last `advance`."""
        return len(self._running) + len(self._queue)

    @property
    def full(self) -> bool:
        """Whether no other job fits, as of the last `advance`."""
        return self.active >= self._slots

    def advance(self, now_s: float) -> None:
        """Let everything happen that should have happened by now, each at its own time."""
        while True:
            ends_at_s = self._running[0][0] if self._running else math.inf
            starts_at_s = self._next_start_at_s()
            if min(ends_at_s, starts_at_s) > now_s:
                break
            if ends_at_s <= starts_at_s:
                heapq.heappop(self._running)
                self._advanced_to_s = max(self._advanced_to_s, ends_at_s)
            else:
                self._start(starts_at_s)
        self._advanced_to_s = max(self._advanced_to_s, now_s)

    def add(self, timing: Timing, now_s: float) -> None:
        """One more job, which must fit."""
        self._queue.append(timing)
        self.max_active = max(self.max_active, self.active)
        self.advance(now_s)

    def remove(self, timing: Timing) -> None:
        """Free the slot of a job before its time; nothing if it holds none."""
        self._queue = deque(other for other in self._queue if other is not timing)
        self._running = [entry for entry in self._running if entry[2] is not timing]
        heapq.heapify(self._running)

    def _next_start_at_s(self) -> float:
        if not self._queue or len(self._running) >= self._running_slots:
            return math.inf
        return max(self._queue[0].ready_at_s, self._advanced_to_s)

    def _start(self, starts_at_s: float) -> None:
        timing = self._queue.popleft()
        timing.started_at_s = self._advanced_to_s = starts_at_s
        self._started += 1
        heapq.heappush(self._running, (timing.ends_at_s, self._started, timing))
