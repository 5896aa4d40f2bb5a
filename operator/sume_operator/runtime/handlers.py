"""The watch: every event of a render becomes, at most, one command to the sorted set. The only place that knows kopf.

With event handlers only, kopf writes nothing to the objects: no finalizer, no annotation, no status, no event.
"""

import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import kopf

from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.core.render import GROUP, PLURAL, VERSION, MalformedObjectError, Render, parse_render, ref_of
from sume_operator.core.watching import Drop, Hasten, Schedule, alarm_for
from sume_operator.metrics import ControllerMetrics
from sume_operator.runtime.rescue import Rescue
from sume_operator.runtime.watch_state import WatchState

log = logging.getLogger(__name__)

HANDLER_THREADS: Final = 4
LIST_CHUNK: Final = 500
IDLE_WORKER_S: Final = 0.05


class _ForEver(Iterable[float]):
    """Delays between attempts, without end, and from the start each time it is iterated: kopf gives up otherwise."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1.0, 2.0, 3.0), itertools.repeat(5.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What the handler of the watch works with. `ask_for_sweep`: called when an alarm could not be set."""

    queue: DueQueue
    rescue: Rescue
    watch_state: WatchState
    metrics: ControllerMetrics
    clock: Callable[[], datetime]
    ask_for_sweep: Callable[[], None]

    def on_event(self, event_type: str | None, body: Any) -> None:
        """One event. Never raises: kopf would not repeat it, the sweep does."""
        self.metrics.watch_last_event.set_to_current_time()
        version = str((body.get("metadata") or {}).get("resourceVersion") or "")
        if version.isdecimal():
            self.watch_state.delivered(int(version))
        try:
            if event_type == "DELETED":
                ref = ref_of(body)
                self.rescue.forget(ref)
                self.queue.drop(ref)
            else:
                self._seen(event_type, parse_render(body))
        except MalformedObjectError as error:
            self.metrics.malformed.inc()
            log.warning("skipped an unreadable object: %s", error)
        except RedisUnavailableError as error:
            log.debug("an alarm could not be set, the sweep will: %s", error)
            self.ask_for_sweep()

    def _seen(self, event_type: str | None, render: Render) -> None:
        self.rescue.saw(render)
        match alarm_for(event_type, render, self.clock()):
            case Schedule(delay_s=delay_s):
                self.queue.schedule([(render.ref, delay_s)])
            case Hasten():
                self.queue.hasten(render.ref)
            case Drop():
                self.queue.drop(render.ref)


def watch(handlers: Handlers, namespaces: frozenset[str]) -> None:
    """Run kopf in this thread until SIGTERM or SIGINT, or until it cannot go on. Empty `namespaces`: all."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> Any:
        # kopf's login by client library prefers the pod's own account to KUBECONFIG.
        if os.environ.get("KUBECONFIG") or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            return kopf.login_with_kubeconfig(**kwargs)
        return kopf.login_with_service_account(**kwargs)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    def on_render(event: Any, **_: Any) -> None:  # a returned value would be written to the object
        handlers.on_event(event["type"], event["object"])

    scope: dict[str, Any] = {"namespaces": sorted(namespaces)} if namespaces else {"clusterwide": True}
    # Only peerings would use it, but kopf's own needs the user's name, and a container's user is a bare number.
    identity: Any = "sume-operator"
    kopf.run(registry=registry, settings=_settings(), identity=identity, **scope)


def _settings() -> "kopf.OperatorSettings":
    """Each is needed; what happens without it is said beside it."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # else it wants to list namespaces and CRDs of the whole cluster
    settings.peering.standalone = True  # else it looks for a peering resource that nobody installs
    settings.posting.enabled = False  # else it posts its own log as events
    settings.networking.error_backoffs = _ForEver()  # else a minute without rights ends the process
    settings.watching.chunk_size = LIST_CHUNK  # else a list of all objects is held at once
    settings.queueing.idle_timeout = IDLE_WORKER_S  # else each object keeps a task for seconds: memory
    settings.execution.max_workers = HANDLER_THREADS  # threads that wait for Redis
    return settings
