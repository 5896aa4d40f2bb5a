"""The status of a render as frozen values; from and to the JSON that the API server keeps.

Field names in JSON exist here once. `to_body` names every field, null where there is none, so that it can be sent as
a merge patch: what is no longer true is then removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sume_operator.core.job import JobError, Usage

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One row of the table in conditions.py."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One file that the job made. `url` may be signed, so it is never part of the repr."""

    name: str
    url: str = field(repr=False)
    type: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None
    expiration_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Answers in a row, all of one kind, that are not believed at once."""

    kind: str
    count: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """How looking at Sume goes. `count`: status reads answered; `failures`: looks in a row that brought nothing."""

    count: int = 0
    failures: int = 0
    last_poll_time: datetime | None = None
    next_poll_time: datetime | None = None
    collecting_since: datetime | None = None
    streak: Streak | None = None


def one_more_in_a_row(polling: Polling, kind: str, now: datetime) -> Polling:
    """`polling` with its streak one longer, or a new one begun if the last answer was of another kind."""
    streak = polling.streak
    count, since = (streak.count, streak.since) if streak and streak.kind == kind else (0, now)
    return replace(polling, streak=Streak(kind=kind, count=count + 1, since=since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """What Sume answered when it was asked to cancel. `result`: Accepted or Refused."""

    result: str
    time: datetime
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What was done to get the job made."""

    attempts: int = 0
    idempotency_key: str | None = None
    key_fingerprint: str | None = None
    first_attempt_time: datetime | None = None
    last_attempt_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`status` of a SumeRender. The default is that of an object nobody has looked at yet."""

    observed_generation: int = 0
    state: str = "Pending"
    terminal: bool = False
    job_id: str | None = None
    failed_job_ids: tuple[str, ...] = ()
    api_url: str | None = None
    last_handled_poll_request: str | None = None
    sume_status: str | None = None
    message: str | None = None
    error: JobError | None = None
    outputs: tuple[Output, ...] = ()
    submission: Submission | None = None
    usage: Usage | None = None
    polling: Polling = Polling()
    cancellation: Cancellation | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()

    def condition(self, condition_type: str) -> Condition | None:
        """The condition of that type, if it has been set."""
        return next((c for c in self.conditions if c.type == condition_type), None)


def parse_status(body: Json) -> Status:
    """`status` as the API server holds it -> Status. ValueError where a time is none."""
    polling = body.get("polling") or {}
    return Status(
        observed_generation=int(body.get("observedGeneration") or 0),
        state=body.get("state") or "Pending",
        terminal=body.get("terminal") is True,
        job_id=body.get("jobID"),
        failed_job_ids=tuple(body.get("failedJobIDs") or ()),
        api_url=body.get("apiURL"),
        last_handled_poll_request=body.get("lastHandledPollRequest"),
        sume_status=body.get("sumeStatus"),
        message=body.get("message"),
        error=_parse_error(body.get("error")),
        outputs=tuple(_parse_output(item) for item in body.get("outputs") or ()),
        submission=_parse_submission(body.get("submission")),
        usage=_parse_usage(body.get("usage")),
        polling=Polling(
            count=int(polling.get("count") or 0),
            failures=int(polling.get("failures") or 0),
            last_poll_time=parse_time(polling.get("lastPollTime")),
            next_poll_time=parse_time(polling.get("nextPollTime")),
            collecting_since=parse_time(polling.get("collectingSince")),
            streak=_parse_streak(polling.get("streak")),
        ),
        cancellation=_parse_cancellation(body.get("cancellation")),
        start_time=parse_time(body.get("startTime")),
        completion_time=parse_time(body.get("completionTime")),
        conditions=tuple(_parse_condition(item) for item in body.get("conditions") or ()),
    )


def to_body(status: Status) -> dict[str, Any]:
    """Status -> the JSON of a merge patch, every field named (null: remove it)."""
    return {
        "observedGeneration": status.observed_generation,
        "state": status.state,
        "terminal": status.terminal,
        "jobID": status.job_id,
        "failedJobIDs": list(status.failed_job_ids) or None,
        "apiURL": status.api_url,
        "lastHandledPollRequest": status.last_handled_poll_request,
        "sumeStatus": status.sume_status,
        "message": status.message,
        "error": status.error and _error_body(status.error),
        "outputs": [_without_nulls(_output_body(output)) for output in status.outputs] or None,
        "submission": status.submission and _submission_body(status.submission),
        "usage": status.usage
        and {"state": status.usage.state, "amount": status.usage.amount, "currency": status.usage.currency},
        "polling": _polling_body(status.polling),
        "cancellation": status.cancellation
        and {
            "result": status.cancellation.result,
            "time": format_time(status.cancellation.time),
            "message": status.cancellation.message,
        },
        "startTime": format_time(status.start_time),
        "completionTime": format_time(status.completion_time),
        "conditions": [_condition_body(condition) for condition in status.conditions],
    }


def parse_time(text: str | None) -> datetime | None:
    """RFC 3339 -> an instant in UTC; ValueError where it is none."""
    if not text:
        return None
    instant = datetime.fromisoformat(text)
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def format_time(instant: datetime | None) -> str | None:
    """An instant -> RFC 3339 in whole seconds, as Kubernetes writes times."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if instant else None


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A merge patch replaces lists whole, and takes a null inside them for a value."""
    return {key: value for key, value in body.items() if value is not None}


def _parse_error(body: Json | None) -> JobError | None:
    if body is None:
        return None
    return JobError(
        code=body.get("code"),
        message=body.get("message"),
        public_reason=body.get("publicReason"),
        request_id=body.get("requestID"),
        source=body.get("source"),
    )


def _error_body(error: JobError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "publicReason": error.public_reason,
        "requestID": error.request_id,
        "source": error.source,
    }


def _parse_output(body: Json) -> Output:
    return Output(
        name=body["name"],
        url=body["url"],
        type=body.get("type"),
        content_type=body.get("contentType"),
        size_bytes=body.get("sizeBytes"),
        expiration_time=parse_time(body.get("expirationTime")),
    )


def _output_body(output: Output) -> dict[str, Any]:
    return {
        "name": output.name,
        "url": output.url,
        "type": output.type,
        "contentType": output.content_type,
        "sizeBytes": output.size_bytes,
        "expirationTime": format_time(output.expiration_time),
    }


def _parse_submission(body: Json | None) -> Submission | None:
    if body is None:
        return None
    return Submission(
        attempts=int(body.get("attempts") or 0),
        idempotency_key=body.get("idempotencyKey"),
        key_fingerprint=body.get("keyFingerprint"),
        first_attempt_time=parse_time(body.get("firstAttemptTime")),
        last_attempt_time=parse_time(body.get("lastAttemptTime")),
    )


def _submission_body(submission: Submission) -> dict[str, Any]:
    return {
        "attempts": submission.attempts,
        "idempotencyKey": submission.idempotency_key,
        "keyFingerprint": submission.key_fingerprint,
        "firstAttemptTime": format_time(submission.first_attempt_time),
        "lastAttemptTime": format_time(submission.last_attempt_time),
    }


def _parse_usage(body: Json | None) -> Usage | None:
    if body is None:
        return None
    return Usage(state=body.get("state"), amount=body.get("amount"), currency=body.get("currency"))


def _parse_streak(body: Json | None) -> Streak | None:
    since = parse_time(body.get("since")) if body else None
    if not body or since is None:
        return None
    return Streak(kind=str(body.get("kind")), count=int(body.get("count") or 0), since=since)


def _polling_body(polling: Polling) -> dict[str, Any]:
    streak = polling.streak
    return {
        "count": polling.count,
        "failures": polling.failures,
        "lastPollTime": format_time(polling.last_poll_time),
        "nextPollTime": format_time(polling.next_poll_time),
        "collectingSince": format_time(polling.collecting_since),
        "streak": streak and {"kind": streak.kind, "count": streak.count, "since": format_time(streak.since)},
    }


def _parse_cancellation(body: Json | None) -> Cancellation | None:
    time = parse_time(body.get("time")) if body else None
    if not body or time is None:
        return None
    return Cancellation(result=str(body.get("result")), time=time, message=body.get("message"))


def _parse_condition(body: Json) -> Condition:
    time = parse_time(body.get("lastTransitionTime"))
    if time is None:
        raise ValueError(f"condition {body.get('type')} has no lastTransitionTime")
    return Condition(
        type=body["type"],
        status=body["status"],
        reason=body["reason"],
        message=body.get("message") or "",
        last_transition_time=time,
        observed_generation=int(body.get("observedGeneration") or 0),
    )


def _condition_body(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": format_time(condition.last_transition_time),
        "observedGeneration": condition.observed_generation,
    }


def written_fields() -> frozenset[str]:
    """Every field of the status that this version writes, as dotted paths: what the CRD must have."""
    body = to_body(Status())
    nested = {f"polling.{name}" for name in body["polling"]}
    return frozenset(body) | nested | {f"polling.streak.{name}" for name in ("kind", "count", "since")}


def missing_fields(schema: Json) -> frozenset[str]:
    """Which of them a status schema lacks: the API server would drop them without a word."""
    return frozenset(path for path in written_fields() if not _has(schema, path.split(".")))


def _has(schema: Json, path: list[str]) -> bool:
    for name in path:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not isinstance(properties.get(name), Mapping):
            return False
        schema = properties[name]
    return True
