"""The sweep: a pass over the objects that adds the alarms which are missing, and the loop that decides when.

A pass never removes anything, and a list that broke off is never taken for the whole.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sume_operator.adapters.cluster import Cluster, Page
from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.kubernetes_errors import ClusterError, ExpiredListError
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.core.render import MalformedObjectError, Render, parse_render
from sume_operator.core.watching import SweepTerms, missing_alarm_s
from sume_operator.metrics import ControllerMetrics
from sume_operator.runtime.pulse import Pulse
from sume_operator.runtime.slots_keeper import SlotsKeeper
from sume_operator.runtime.watch_state import WatchState

log = logging.getLogger(__name__)

CHECK_EVERY_S: Final = 1.0
RETRY_S: Final = 2.0
FULL_PASS_EVERY: Final = 10
LISTS_BEGUN_ANEW: Final = 3
SPREAD_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """One pass over all watched renders."""

    cluster: Cluster
    queue: DueQueue
    namespaces: frozenset[str]
    terms: SweepTerms
    slots: SlotsKeeper
    metrics: ControllerMetrics
    watch_state: WatchState
    clock: Callable[[], datetime]

    def sweep(self, *, full: bool) -> int:
        """One pass, of the live renders or (full) of all. How many alarms were missing. Raises what its parts raise."""
        started_s = time.monotonic()
        token = self.queue.begin_pass() if full else None
        was_emptied = full and not self.queue.is_whole()
        tally: Counter[tuple[str, str]] = Counter()
        added, newest = 0, 0
        seen = self.slots.begin()
        for page in self._pages(live_only=not full):
            renders = list(self._readable(page))
            tally.update((render.ref.namespace, render.status.state) for render in renders)
            newest = max([newest, *(_version(render.resource_version) for render in renders)])
            seen.add(renders)
            now = self.clock()
            due = ((r.ref, missing_alarm_s(r, now, self.terms, was_emptied=was_emptied)) for r in renders)
            added += self.queue.schedule((ref, delay_s) for ref, delay_s in due if delay_s is not None)
        self.slots.finish(seen)
        if token is not None and not self.queue.end_pass(token):
            raise RedisUnavailableError("Redis was emptied during the pass")
        self.watch_state.compare(newest)
        self._report(tally, full=full)
        self.metrics.repairs.inc(added)
        self.metrics.sweep_duration.set(time.monotonic() - started_s)
        self.metrics.sweep_last_success.set_to_current_time()
        return added

    def _pages(self, *, live_only: bool) -> Iterator[Page]:
        scopes: list[str | None] = [*sorted(self.namespaces)] or [None]
        for namespace in scopes:
            for attempt in range(LISTS_BEGUN_ANEW + 1):
                try:
                    yield from self._pages_of(namespace, live_only=live_only)
                    break
                except ExpiredListError:
                    if attempt == LISTS_BEGUN_ANEW:
                        raise

    def _pages_of(self, namespace: str | None, *, live_only: bool) -> Iterator[Page]:
        page = self.cluster.list_page(namespace, live_only=live_only)
        yield page
        while page.next_page:
            page = self.cluster.list_page(namespace, live_only=live_only, page=page.next_page)
            yield page

    def _readable(self, page: Page) -> Iterator[Render]:
        for body in page.bodies:
            render = self._parsed(body)
            if render is not None:
                yield render

    def _parsed(self, body: Mapping[str, Any]) -> Render | None:
        try:
            return parse_render(body)
        except MalformedObjectError as error:
            self.metrics.malformed.inc()
            log.warning("skipped an unreadable object: %s", error)
            return None

    def _report(self, tally: Counter[tuple[str, str]], *, full: bool) -> None:
        if full:
            self.metrics.resources.clear()
        for (namespace, state), count in tally.items():
            self.metrics.resources.labels(namespace, state).set(count)


class SweepLoop:
    """Sweeps at start, every period, when Redis comes back and when it was emptied. One pass at a time."""

    def __init__(self, sweeper: Sweeper, queue: DueQueue, *, period_s: float, redis: Pulse, api: Pulse) -> None:
        self._sweeper = sweeper
        self._queue = queue
        self._period_s = period_s
        self._redis = redis
        self._api = api
        self._asked = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self.loop = Pulse()

    def start(self) -> None:
        """Begin, with a full pass."""
        self._thread.start()

    def stop(self) -> None:
        """No further pass; the one under way is left to end with the process."""
        self._stopping.set()

    def ask(self) -> None:
        """A pass as soon as Redis answers: an alarm could not be set."""
        self._asked.set()

    def _run(self) -> None:
        """Once a second: is Redis there and whole, is a pass due? One that broke off is repeated after RETRY_S."""
        passes, next_s, was_down, failed = 0, 0.0, False, False
        while not self._stopping.wait(CHECK_EVERY_S if passes or was_down or failed else 0.0):
            self.loop.beat()
            whole = self._is_whole(was_down)
            if whole is None:
                was_down = True
                continue
            wanted = was_down or self._asked.is_set() or not whole
            if time.monotonic() < next_s and (failed or not wanted):
                continue
            self._asked.clear()
            failed = not self._one_pass(full=passes % FULL_PASS_EVERY == 0 or wanted)
            was_down = was_down and failed
            passes += not failed
            next_s = time.monotonic() + (min(RETRY_S, self._period_s) if failed else self._period_s)

    def _is_whole(self, was_down: bool) -> bool | None:
        """Whether a complete pass is in Redis; None: Redis does not answer."""
        try:
            whole = self._queue.is_whole()
        except RedisUnavailableError as error:
            if not was_down:
                log.error("Redis does not answer; trying every second: %s", error)
            return None
        self._redis.beat()
        return whole

    def _one_pass(self, *, full: bool) -> bool:
        try:
            added = self._sweeper.sweep(full=full)
        except (ClusterError, RedisUnavailableError) as error:
            log.warning("a pass of the sweep broke off and is repeated: %s", error)
            return False
        except Exception:  # a bug must not end the one thread that repairs everything else
            log.exception("a pass of the sweep failed and is repeated")
            return False
        self._api.beat()
        if added:
            log.info("the sweep added %d missing alarms", added)
        return True


def _version(resource_version: str) -> int:
    """Resource versions are numbers on every API server that exists; what is none is not compared."""
    return int(resource_version) if resource_version.isdecimal() else 0
