"""Frees renders whose deletion has waited for a cancel too long. Needs neither Redis, nor Sume, nor a poller."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.kubernetes_errors import ClusterError, ConflictError, GoneError
from sume_operator.core.events import cancel_abandoned
from sume_operator.core.render import MalformedObjectError, Ref, Render
from sume_operator.core.step import is_leaving
from sume_operator.metrics import ControllerMetrics
from sume_operator.runtime.announcer import Announcer

log = logging.getLogger(__name__)

PATIENCE_S: Final = 50.0
RETRY_S: Final = 2.0
CALL_S: Final = 5.0
CHECK_EVERY_S: Final = 1.0
# A deleted namespace makes hundreds late in the same second, and each takes three calls.
AT_ONCE: Final = 6


class Rescue:
    """The handler tells what is being deleted; a thread of its own lets it go when its time is over."""

    def __init__(
        self,
        cluster: Cluster,
        announcer: Announcer,
        metrics: ControllerMetrics,
        clock: Callable[[], datetime],
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._cluster = cluster
        self._announcer = announcer
        self._metrics = metrics
        self._clock = clock
        self._patience_s = patience_s
        self._due: dict[Ref, float] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rescue", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """No further rescue."""
        self._stopping.set()

    def saw(self, render: Render) -> None:
        """An event showed `render`."""
        if not is_leaving(render) or render.deletion_time is None:
            return
        waited_s = (self._clock() - render.deletion_time).total_seconds()
        with self._lock:
            self._due.setdefault(render.ref, time.monotonic() + max(0.0, self._patience_s - waited_s))

    def forget(self, ref: Ref) -> None:
        """The object is gone."""
        with self._lock:
            self._due.pop(ref, None)

    def _run(self) -> None:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="rescue") as pool:
            while not self._stopping.wait(CHECK_EVERY_S):
                now_s = time.monotonic()
                with self._lock:
                    late = [ref for ref, due_s in self._due.items() if due_s <= now_s]
                list(pool.map(self._free, late))

    def _free(self, ref: Ref) -> None:
        if self._stopping.is_set():
            return
        try:
            render = self._cluster.fetch(ref, CALL_S)
            if is_leaving(render):
                self._cluster.set_finalizer(render, present=False, timeout_s=CALL_S)
                self._metrics.deletions_freed.inc()
                log.warning("%s: deleted without a confirmed cancel of job %s", ref, render.job_id)
                self._announcer.announce(ref, [cancel_abandoned(render)], lambda: CALL_S)
        except (GoneError, MalformedObjectError):
            pass
        except ConflictError:  # a poller wrote what came of its own try: still due, so taken up at the next check
            return
        except ClusterError as error:
            log.warning("%s: could not be freed yet: %s", ref, error)
            with self._lock:
                self._due[ref] = time.monotonic() + RETRY_S
            return
        self.forget(ref)
