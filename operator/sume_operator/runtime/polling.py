"""The role `poller`: puts its parts together and runs the loop until SIGTERM or SIGINT."""

import logging
import signal
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from sume_operator.adapters.budget import Budget, Limits
from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.credentials import Credentials
from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.slots import Slots
from sume_operator.adapters.sume_api import SumeAPI
from sume_operator.core.pace import Pace, Terms
from sume_operator.metrics import PollerMetrics
from sume_operator.runtime.announcer import Announcer
from sume_operator.runtime.asking import Asking
from sume_operator.runtime.copies import Copies
from sume_operator.runtime.health import Health
from sume_operator.runtime.poller import Poller
from sume_operator.runtime.pulse import Pulse
from sume_operator.runtime.queue_metrics import measure_queue
from sume_operator.runtime.readiness import answered_lately, loop_goes_on
from sume_operator.runtime.submission import Submission
from sume_operator.runtime.turn import Turn
from sume_operator.settings import Settings

log = logging.getLogger(__name__)

GRACE_S: Final = 30.0
STUCK_LOOP_S: Final = 60.0
MAX_COPIES: Final = 4096


def run(
    settings: Settings, cluster: Cluster, client: Any, queue: DueQueue, metrics: PollerMetrics, instance: str
) -> int:
    """Work until told to stop. Answers how many turns were left to their lease."""
    loop_pulse, redis_pulse, api_pulse = Pulse(), Pulse(), Pulse()
    poller = Poller(
        queue,
        _turn(settings, cluster, client, queue, metrics, instance).work_off,
        concurrency=settings.sume_concurrency,
        lease_s=settings.sume_lease_seconds,
        metrics=metrics,
        loop_pulse=loop_pulse,
        redis_pulse=redis_pulse,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: poller.stop())
    health = Health(
        settings.sume_http_port,
        metrics.registry,
        alive={"loop": loop_goes_on(loop_pulse, STUCK_LOOP_S)},
        ready={
            "redis": answered_lately(redis_pulse, queue.ping),
            "kubernetes": answered_lately(api_pulse, cluster.ping),
        },
        refresh=lambda: measure_queue(queue, metrics),
    )
    health.start()
    log.info("health and metrics on port %d", health.port)
    return poller.run(GRACE_S)


def terms_of(settings: Settings) -> Terms:
    """The part of the settings that the rules know."""
    return Terms(
        pace=Pace(
            poll_s=settings.sume_poll_seconds,
            min_s=settings.sume_poll_min_seconds,
            max_s=settings.sume_poll_max_seconds,
            error_s=settings.sume_error_seconds,
            status_refresh_s=settings.sume_status_refresh_seconds,
        ),
        api_url=settings.sume_api_url,
        submissions_enabled=settings.sume_submissions_enabled,
    )


def _credentials(settings: Settings, cluster: Cluster) -> Credentials:
    key = settings.sume_api_key
    return Credentials(
        cluster.read_secret,
        api_url=settings.sume_api_url,
        default_key=key.get_secret_value() if key else None,
        default_key_file=settings.sume_api_key_file,
        default_namespaces=settings.default_key_namespaces,
    )


def _turn(
    settings: Settings, cluster: Cluster, client: Any, queue: DueQueue, metrics: PollerMetrics, instance: str
) -> Turn:
    terms, key_prefix, on_error = terms_of(settings), settings.sume_queue_key, metrics.redis_errors.inc
    api = SumeAPI(
        settings.sume_api_url,
        connections=settings.sume_concurrency,
        auth_mode=settings.sume_auth_mode,
        observe=metrics.observe_call,
    )
    credentials = _credentials(settings, cluster)
    keys = KeyState(client, key_prefix, on_error)
    budget = Budget(
        client,
        key_prefix,
        reads=Limits(per_minute=settings.sume_reads_per_minute, per_day=settings.sume_reads_per_day),
        submissions=Limits(per_minute=settings.sume_submissions_per_minute, per_day=settings.sume_submissions_per_day),
        on_error=on_error,
    )
    announcer = Announcer(cluster, "sume-operator-poller", instance)
    return Turn(
        queue=queue,
        cluster=cluster,
        asking=Asking(api, credentials, keys, budget, terms, metrics, timeout_s=settings.sume_request_timeout_seconds),
        submission=Submission(
            api=api,
            credentials=credentials,
            keys=keys,
            slots=Slots(client, key_prefix, most=settings.sume_max_active_jobs, on_error=on_error),
            budget=budget,
            cluster=cluster,
            announcer=announcer,
            terms=terms,
            metrics=metrics,
            clock=partial(datetime.now, UTC),
            timeout_s=settings.sume_submit_timeout_seconds,
            kubernetes_timeout_s=settings.sume_kubernetes_timeout_seconds,
        ),
        announcer=announcer,
        copies=Copies(max_age_s=settings.sume_sweep_seconds, max_entries=MAX_COPIES),
        terms=terms,
        metrics=metrics,
        clock=partial(datetime.now, UTC),
        kubernetes_timeout_s=settings.sume_kubernetes_timeout_seconds,
    )
