"""Which Kubernetes Events a change of status calls for: read off two statuses, once per transition.

An event's key is made of what it is about, never of when it was noticed, so saying it twice makes one event.
"""

from dataclasses import dataclass
from typing import Final

from sume_operator.core.conditions import ACCEPTED, NO, PROCESSING, QUEUED, SUBMITTED, SUCCEEDED, SYNCED
from sume_operator.core.render import Render
from sume_operator.core.status import Condition, Status, format_time

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

TTL_EXPIRED: Final = "TTLExpired"
CANCEL_ABANDONED: Final = "CancelAbandoned"

_AT_THE_END: Final = {
    "Completed": (NORMAL, "RenderCompleted"),
    "Canceled": (NORMAL, "RenderCanceled"),
    "DeadlineExceeded": (WARNING, "DeadlineExceeded"),
    "JobLost": (WARNING, "JobLost"),
    "SubmissionRejected": (WARNING, "SubmissionRejected"),
    "OutcomeUnknown": (WARNING, "RenderFailed"),
}
_ABOUT_THE_SUBMISSION: Final = {
    "OutcomeUnknown": "SubmissionOutcomeUnknown",
    "InsufficientCredits": "InsufficientCredits",
}
_ON_THE_WAY: Final = {QUEUED: "RenderQueued", PROCESSING: "RenderProcessing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing worth telling. `key` tells repeats of the same transition from new ones."""

    type: str
    reason: str
    message: str
    key: str


def events_between(before: Status, after: Render) -> tuple[Event, ...]:
    """What happened between the status last written and the one of `after`."""
    status, told = after.status, _about_the_request(before, after)  # first: the job was made before it moved
    if status.terminal and not before.terminal:
        told.append(_end(status))
    elif status.state != before.state and status.state in _ON_THE_WAY:
        reason = _ON_THE_WAY[status.state]
        told.append(Event(type=NORMAL, reason=reason, message=f"Job {status.job_id}.", key=str(status.job_id)))
    told += _newly_false(before, status, ACCEPTED, "Credentials", "CredentialsUnavailable")
    told += _newly_false(before, status, SYNCED, "Unauthorized", "APIUnauthorized")
    cancellation = status.cancellation
    if cancellation and cancellation.result == "Refused" and before.cancellation is None:
        message = f"Sume did not cancel job {status.job_id}: {cancellation.message or 'no reason given'}"
        told.append(Event(type=WARNING, reason="CancelRefused", message=message, key=str(status.job_id)))
    return tuple(told)


def ttl_expired(render: Render) -> Event:
    """Told before an ended render deletes itself."""
    message = f"Deleted {render.ttl_after_finished_s} s after its end (ttlSecondsAfterFinished)."
    return Event(type=NORMAL, reason=TTL_EXPIRED, message=message, key="ttl")


def cancel_abandoned(render: Render) -> Event:
    """Told when a deletion no longer waits for Sume to cancel the job."""
    message = f"Job {render.job_id} could not be canceled in time and may still run at Sume; the deletion goes on."
    return Event(type=WARNING, reason=CANCEL_ABANDONED, message=message, key="abandoned")


def _end(status: Status) -> Event:
    succeeded = status.condition(SUCCEEDED)
    reason = succeeded.reason if succeeded else ""
    kind, name = _AT_THE_END.get(reason, (WARNING, "RenderFailed"))
    message = succeeded.message if succeeded else status.state
    if status.job_id is not None:
        message = f"Job {status.job_id}: {message}"
    return Event(type=kind, reason=name, message=message, key=str(status.job_id))


def _about_the_request(before: Status, after: Render) -> list[Event]:
    """A job was made, or the key turned out to have made one that has ended already."""
    status, submitted = after.status, after.status.condition(SUBMITTED)
    if after.request is None or submitted is None:
        return []
    key = str(status.job_id)
    told = []
    if (
        submitted.reason in ("Created", "AlreadyExists")
        and status.job_id is not None
        and before.job_id != status.job_id
    ):
        told.append(Event(type=NORMAL, reason="RenderSubmitted", message=submitted.message, key=key))
    old = before.condition(SUBMITTED)
    is_first_look = status.polling.count > 0 and before.polling.count == 0
    has_ended = status.terminal or status.polling.collecting_since is not None
    if submitted.reason == "AlreadyExists" and is_first_look and has_ended and not _was_ours(status):
        message = (
            f"The idempotency key belongs to job {status.job_id}, which had ended before. If another job is wanted, "
            "create a SumeRender with another spec.request.idempotencyKey."
        )
        told.append(Event(type=WARNING, reason="OldJobReplayed", message=message, key=key))
    name = _ABOUT_THE_SUBMISSION.get(submitted.reason)
    if name and (old is None or old.reason != submitted.reason):
        # Each attempt says Submitting first, so the same is noticed again and again: the key makes it one event.
        key = str(status.submission.idempotency_key if status.submission else "") or "unsent"
        told.append(Event(type=WARNING, reason=name, message=submitted.message, key=key))
    return told


def _was_ours(status: Status) -> bool:
    """Whether an earlier attempt of this very render may have made the job: its answer was lost."""
    submission = status.submission
    return submission is not None and submission.first_attempt_time != submission.last_attempt_time


def _newly_false(before: Status, after: Status, kind: str, reason_prefix: str, event_reason: str) -> list[Event]:
    old, new = before.condition(kind), after.condition(kind)
    if new is None or not _says(new, reason_prefix) or (old is not None and old.reason == new.reason):
        return []
    key = f"{new.reason}:{format_time(new.last_transition_time)}"
    return [Event(type=WARNING, reason=event_reason, message=new.message, key=key)]


def _says(condition: Condition, reason_prefix: str) -> bool:
    return condition.status == NO and condition.reason.startswith(reason_prefix)
