"""The role `controller`: waits for the CRD, then watches, sweeps and rescues, until it is told to stop."""

import logging
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from sume_operator.adapters.cluster import Cluster, own_namespace
from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.slots import Slots
from sume_operator.core.watching import SweepTerms
from sume_operator.metrics import ControllerMetrics
from sume_operator.runtime import handlers
from sume_operator.runtime.announcer import Announcer
from sume_operator.runtime.crd_check import CRDCheck
from sume_operator.runtime.health import Health
from sume_operator.runtime.heartbeat import Heartbeat
from sume_operator.runtime.pulse import Pulse
from sume_operator.runtime.queue_metrics import measure_queue
from sume_operator.runtime.readiness import answered_lately, loop_goes_on
from sume_operator.runtime.rescue import Rescue
from sume_operator.runtime.slots_keeper import SlotsKeeper
from sume_operator.runtime.sweeper import SPREAD_SHARE, Sweeper, SweepLoop
from sume_operator.runtime.watch_state import WatchState
from sume_operator.settings import Settings

log = logging.getLogger(__name__)

CRD_CHECK_EVERY_S: Final = 2.0
STUCK_SWEEP_S: Final = 600.0
DEAF_PASSES_BORNE: Final = 2


def run(
    settings: Settings, cluster: Cluster, client: Any, queue: DueQueue, metrics: ControllerMetrics, instance: str
) -> int:
    """The process' exit code: 0 after SIGTERM or SIGINT, 1 when the watch could not go on."""
    clock, watch_state, redis, api = partial(datetime.now, UTC), WatchState(), Pulse(), Pulse()
    slots = Slots(
        client, settings.sume_queue_key, most=settings.sume_max_active_jobs, on_error=metrics.redis_errors.inc
    )
    sweeper = Sweeper(
        cluster=cluster,
        queue=queue,
        namespaces=settings.sume_watch_namespaces,
        terms=SweepTerms(spread_s=settings.sume_sweep_seconds * SPREAD_SHARE, lease_s=settings.sume_lease_seconds),
        slots=SlotsKeeper(slots, settings.sume_lease_seconds),
        metrics=metrics,
        watch_state=watch_state,
        clock=clock,
    )
    loop = SweepLoop(sweeper, queue, period_s=settings.sume_sweep_seconds, redis=redis, api=api)
    rescue = Rescue(cluster, Announcer(cluster, "sume-operator-controller", instance), metrics, clock)
    crd = CRDCheck(cluster)
    health = Health(
        settings.sume_http_port,
        metrics.registry,
        alive={"sweep": _unless_waiting(crd, loop_goes_on(loop.loop, STUCK_SWEEP_S)), "watch": _hears(watch_state)},
        ready={
            "crd": crd.problem,
            "redis": answered_lately(redis, queue.ping),
            "kubernetes": answered_lately(api, cluster.ping),
        },
        refresh=lambda: measure_queue(queue, metrics),
    )
    health.start()
    log.info("health and metrics on port %d", health.port)
    if not _wait_for(crd):
        return 0
    parts = (loop, rescue, Heartbeat(cluster, own_namespace(), instance, clock))
    for part in parts:
        part.start()
    try:
        handlers.watch(
            handlers.Handlers(
                queue=queue,
                rescue=rescue,
                watch_state=watch_state,
                metrics=metrics,
                clock=clock,
                ask_for_sweep=loop.ask,
            ),
            settings.sume_watch_namespaces,
        )
    except Exception:  # whatever kopf gives up on: the process ends, and is started anew
        log.exception("the watch cannot go on")
        return 1
    finally:
        for stopped in (*parts, health):
            stopped.stop()
    return 0


def _wait_for(crd: CRDCheck) -> bool:
    """Until the CRD is served and current. False: told to stop meanwhile."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    said: str | None = None
    while not stop.is_set():
        problem = crd.look()
        if problem is None:
            return True
        if problem != said:
            log.warning("waiting for the CRD: %s", problem)
            said = problem
        stop.wait(CRD_CHECK_EVERY_S)
    return False


def _unless_waiting(crd: CRDCheck, check: Callable[[], str | None]) -> Callable[[], str | None]:
    return lambda: None if crd.problem() else check()


def _hears(watch_state: WatchState) -> Callable[[], str | None]:
    def check() -> str | None:
        if watch_state.deaf_passes <= DEAF_PASSES_BORNE:
            return None
        return f"the watch has missed changes for {watch_state.deaf_passes} passes of the sweep"

    return check
