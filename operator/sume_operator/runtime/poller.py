"""The poller's loop: claim for idle threads, hand out, wait for the next due time, stop in order."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from sume_operator.adapters.due_queue import Claims, DueQueue
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.metrics import PollerMetrics
from sume_operator.runtime.failpoints import Failpoint, reach
from sume_operator.runtime.lease import Lease
from sume_operator.runtime.pulse import Pulse

log = logging.getLogger(__name__)

# An edit is acted on within a second: this, the watch and the turn itself. Idle, that is two commands a second.
LONGEST_WAIT_S: Final = 0.5
REDIS_TROUBLE_WAIT_S: Final = 1.0
LOG_TROUBLE_EVERY_S: Final = 30.0

WorkOff = Callable[[Lease], None]


class Poller:
    """Runs until `stop`. Claims only what it can start at once, so nothing waits in here under a running lease."""

    def __init__(
        self,
        queue: DueQueue,
        work_off: WorkOff,
        *,
        concurrency: int,
        lease_s: float,
        metrics: PollerMetrics,
        loop_pulse: Pulse,
        redis_pulse: Pulse,
    ) -> None:
        self._queue = queue
        self._work_off = work_off
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._metrics = metrics
        self._loop_pulse = loop_pulse
        self._redis_pulse = redis_pulse
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="turn")
        self._turns: set[Future[None]] = set()
        self._woken = threading.Event()
        self._stopping = False
        self._last_complaint_s = float("-inf")

    def stop(self) -> None:
        """Claim no more. Safe to call from a signal handler."""
        self._stopping = True
        self._woken.set()

    def run(self, grace_s: float) -> int:
        """Work until stopped, then wait up to `grace_s` for turns in hand; how many were left to their lease."""
        while not self._stopping:
            self._loop_pulse.beat()
            self._woken.clear()
            self._turns = {turn for turn in self._turns if not turn.done()}
            idle = self._concurrency - len(self._turns)
            wait_s = self._claim(idle) if idle else LONGEST_WAIT_S
            self._metrics.in_flight.set(len(self._turns))
            if wait_s > 0:
                self._woken.wait(wait_s)
        _done, left = wait(self._turns, timeout=grace_s)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return len(left)

    def _claim(self, idle: int) -> float:
        """Claim for `idle` threads and hand out; answers how many seconds to wait before the next claim."""
        started_s = time.monotonic()
        try:
            claims = self._queue.claim(idle, self._lease_s)
        except RedisUnavailableError as error:
            self._complain(error)
            return REDIS_TROUBLE_WAIT_S
        self._redis_pulse.beat()
        if claims.claimed:
            reach(Failpoint.AFTER_CLAIM)
        self._report_foreign(claims)
        for claimed in claims.claimed:
            lease = Lease(started_s, self._lease_s, claimed, self._queue.extend)
            turn = self._pool.submit(self._one_turn, lease)
            self._turns.add(turn)
            turn.add_done_callback(lambda _turn: self._woken.set())
        if len(claims.claimed) == idle:
            return LONGEST_WAIT_S  # a thread that becomes free wakes the loop
        next_due_s = LONGEST_WAIT_S if claims.next_due_s is None else claims.next_due_s
        return min(LONGEST_WAIT_S, next_due_s)

    def _one_turn(self, lease: Lease) -> None:
        ref = lease.claimed.ref
        try:
            self._work_off(lease)
        except RedisUnavailableError as error:
            log.warning("%s: Redis did not answer; the turn is repeated when its lease ends: %s", ref, error)
        except Exception:  # a bug in one turn must not cost the thread, nor the other renders
            log.exception("%s: the turn failed and is repeated when its lease ends", ref)
            self._metrics.polls.labels("error").inc()

    def _report_foreign(self, claims: Claims) -> None:
        if claims.foreign:
            self._metrics.foreign.inc(len(claims.foreign))
            log.warning(
                "%d members of the sorted set are no render and were set aside, not deleted; first: %.100r",
                len(claims.foreign),
                claims.foreign[0],
            )

    def _complain(self, error: RedisUnavailableError) -> None:
        now_s = time.monotonic()
        if now_s - self._last_complaint_s >= LOG_TROUBLE_EVERY_S:
            self._last_complaint_s = now_s
            log.error("Redis does not answer; trying every second: %s", error)
