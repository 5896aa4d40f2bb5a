"""The metrics of both roles. Names of objects never are labels: their number would be without end."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sume_operator import __version__

PREFIX: Final = "sumerender"
_CALL_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90)
_LATENESS_BUCKETS: Final = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900)
_RENDER_BUCKETS: Final = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400)


class SharedMetrics:
    """What both roles measure. One registry per process, so that nothing is shared by import."""

    def __init__(self, component: str) -> None:
        self.registry = CollectorRegistry()
        self.queue_size = self._gauge("queue_size", "Alarms in the sorted set.")
        self.queue_due = self._gauge("queue_due", "Alarms that are due now.")
        self.queue_lag_seconds = self._gauge("queue_lag_seconds", "Age of the oldest alarm that is due.")
        self.redis_errors = self._counter("redis_errors_total", "Commands that Redis did not answer or refused.")
        info = self._gauge("build_info", "Which version runs, as which component.", ("version", "component"))
        info.labels(__version__, component).set(1)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, labels, registry=self.registry, buckets=buckets)


class ControllerMetrics(SharedMetrics):
    """The controller's."""

    def __init__(self) -> None:
        super().__init__("controller")
        self.resources = self._gauge("resources", "Renders at the last complete pass.", ("namespace", "state"))
        self.sweep_duration = self._gauge("sweep_duration_seconds", "How long the last pass of the sweep took.")
        self.sweep_last_success = self._gauge("sweep_last_success_timestamp_seconds", "When a pass last was complete.")
        self.repairs = self._counter("repairs_total", "Alarms that were missing and added by the sweep.")
        self.malformed = self._counter(
            "malformed_objects_total", "Objects that are no SumeRender as the schema has it."
        )
        self.watch_last_event = self._gauge("watch_last_event_timestamp_seconds", "When the watch last told anything.")
        self.deletions_freed = self._counter("deletions_freed_total", "Deletions that no longer waited for a cancel.")


class PollerMetrics(SharedMetrics):
    """A poller's."""

    def __init__(self) -> None:
        super().__init__("poller")
        self.polls = self._counter("polls_total", "Turns, by what came of them.", ("outcome",))
        self.lateness = self._histogram("poll_lateness_seconds", "How late an alarm was claimed.", _LATENESS_BUCKETS)
        self.in_flight = self._gauge("polls_in_flight", "Turns being worked off.")
        self.leases_expired = self._counter("leases_expired_total", "Claims of an alarm whose lease had lapsed.")
        self.api_requests = self._counter("api_requests_total", "Calls to Sume.", ("operation", "code"))
        self.api_duration = self._histogram(
            "api_request_duration_seconds", "How long Sume took.", _CALL_BUCKETS, ("operation",)
        )
        self.status_writes = self._counter("status_writes_total", "Writes of a status.", ("result",))
        self.submissions = self._counter("submissions_total", "Requests for a job, by answer.", ("namespace", "result"))
        self.finished = self._counter("finished_total", "Renders that ended.", ("namespace", "reason"))
        self.render_duration = self._histogram(
            "render_duration_seconds", "From the job first seen to its end.", _RENDER_BUCKETS, ("outcome",)
        )
        self.foreign = self._counter("foreign_members_total", "Members of the sorted set that are no render.")
        self.unknown_words = self._counter("unknown_words_total", "Answers whose word for the state is not known.")
        self.key_paused = self._gauge("key_paused", "1 while a key is on hold.", ("credential", "reason"))

    def observe_call(self, operation: str, code: str, seconds: float) -> None:
        """One call to Sume; what SumeAPI is given as its observer."""
        self.api_requests.labels(operation, code).inc()
        self.api_duration.labels(operation).observe(seconds)
