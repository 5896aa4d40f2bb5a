"""What is to be done now: decided from the object alone, touching nothing.

`next_step` answers a turn; `first_due` answers whoever sees an object outside a turn (handler, sweep) and agrees with
it: a render has a due time exactly while `next_step` still has something to do for it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sume_operator.core.conditions import COMPLETED, SUCCEEDED
from sume_operator.core.job import Cancel, Check, Collect, Submit
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """No call: write down how the render stands. `why`: which of the reasons below."""

    why: str


OBSERVED: Final = "Observed"
SUSPENDED: Final = "Suspended"
SUBMISSIONS_DISABLED: Final = "SubmissionsDisabled"
WRONG_ENDPOINT: Final = "WrongEndpoint"
NEVER_ASKED: Final = "NeverAsked"
OUTCOME_UNKNOWN: Final = "OutcomeUnknown"
OUTCOME_BORNE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFinalizer:
    """Make the object's deletion wait for us, or let it go."""

    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Delete the object: its time to live after its end is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Nothing yet; look again in `delay_s`."""

    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Nothing left to do: no alarm is needed until somebody edits the object."""


Step = Check | Collect | Cancel | Submit | Note | SetFinalizer | Expire | Sleep | Rest


def next_step(render: Render, now: datetime, terms: Terms) -> Step:
    """The one next thing to do for `render` at `now`."""
    if render.status.terminal:
        return _after_the_end(render, now, terms)
    if _finalizer_is_wrong(render):
        return SetFinalizer(present=not render.has_finalizer)
    if render.cancel and render.job_id is None and not render.is_being_submitted:
        return Note(why=NEVER_ASKED)
    if _is_paused(render):
        return Rest() if _pause_is_noted(render) else Note(why=SUSPENDED)
    if render.status.api_url not in (None, terms.api_url) and (render.job_id or render.is_being_submitted):
        return Note(why=WRONG_ENDPOINT)
    if render.job_id is None:
        return _submission(render, now, terms)
    # After a cancel that brought nothing the job is looked at first: it may have ended meanwhile.
    if wants_cancel(render) and render.status.polling.failures % 2 == 0:
        return Cancel(job_id=render.job_id)
    if render.status.polling.collecting_since:
        return Collect(job_id=render.job_id)
    return Check(job_id=render.job_id)


def _submission(render: Render, now: datetime, terms: Terms) -> Step:
    """Ask for the job. Where it may have been asked for already, the same key finds it, also to cancel it then.

    How long Sume remembers a key is unknown. So after a day an unanswered request is not sent again: it might be paid
    twice.
    """
    submission = render.status.submission
    first = submission.first_attempt_time if submission else None
    if render.is_being_submitted and first is not None and now - first >= OUTCOME_BORNE:
        return Note(why=OUTCOME_UNKNOWN)
    if render.request is None or not terms.submissions_enabled:
        return Note(why=SUBMISSIONS_DISABLED)
    return Submit(
        endpoint=render.request.entry_point,
        model=render.request.model,
        idempotency_key=render.idempotency_key,
        arguments=render.request.arguments,
    )


def holds_slot(render: Render) -> bool:
    """Whether a job of this render is under way, or may be: it counts against the slots of its key."""
    return (
        render.request is not None
        and not has_ended_at_sume(render)
        and (render.job_id is not None or render.is_being_submitted)
    )


def first_due(render: Render, now: datetime) -> float | None:
    """Seconds until a render that has no alarm is due (0: at once); None: it needs none."""
    status = render.status
    if status.terminal:
        if render.has_finalizer or not render.is_observed:
            return 0.0
        if status.polling.failures:
            return _seconds_until(status.polling.next_poll_time, now)
        expiry = expiry_time(render)
        return None if expiry is None or render.deletion_time else _seconds_until(expiry, now)
    if not render.is_observed or _finalizer_is_wrong(render):
        return 0.0
    if _is_paused(render) and _pause_is_noted(render):
        return None
    return _seconds_until(status.polling.next_poll_time, now)


def is_leaving(render: Render) -> bool:
    """Whether the object is being deleted and waits for us."""
    return render.deletion_time is not None and render.has_finalizer


def wants_finalizer(render: Render) -> bool:
    """Whether deletion must wait for us: a job that has not ended or may be there, and deletion shall cancel it."""
    is_retry = bool(render.status.failed_job_ids) and render.deletion_time is None
    may_run = render.job_id is not None or render.is_being_submitted or is_retry
    if not render.deletion_cancels or has_ended_at_sume(render) or not may_run:
        return False
    return render.deletion_time is None or render.status.cancellation is None


def wants_cancel(render: Render) -> bool:
    """Whether Sume is to be asked to cancel: once, by the owner's word, by deletion or by the deadline."""
    if has_ended_at_sume(render) or render.status.cancellation is not None:
        return False
    by_deletion = is_leaving(render) and render.deletion_cancels
    return render.cancel or by_deletion or (render.deletion_cancels and deadline_has_passed(render))


def deadline_has_passed(render: Render) -> bool:
    """Whether an answer read after the deadline has shown the job still running (the clock alone decides nothing)."""
    return is_past_deadline(render, render.status.start_time, render.status.polling.last_poll_time)


def is_past_deadline(render: Render, started: datetime | None, at: datetime | None) -> bool:
    """Whether `at` is activeDeadlineSeconds after `started`. Numbers are compared: no timedelta holds 10^18 seconds."""
    if render.active_deadline_s is None or started is None or at is None:
        return False
    return (at - started).total_seconds() >= render.active_deadline_s


def has_ended_at_sume(render: Render) -> bool:
    """Whether there is nothing left at Sume that could be canceled."""
    return render.status.terminal or render.status.polling.collecting_since is not None


def expiry_time(render: Render) -> datetime | None:
    """When an ended render deletes itself; None: never, or not ended."""
    ended = render.status.completion_time
    if not render.status.terminal or ended is None or render.ttl_after_finished_s is None:
        return None
    return ended + timedelta(seconds=render.ttl_after_finished_s)


def _after_the_end(render: Render, now: datetime, terms: Terms) -> Step:
    status = render.status
    if render.has_finalizer:
        return SetFinalizer(present=False)
    expiry = expiry_time(render)
    if expiry is not None and expiry <= now and render.deletion_time is None:
        return Expire()
    asked_anew = render.poll_request not in (None, status.last_handled_poll_request)
    if asked_anew or status.polling.failures:
        can_be_read = status.state == COMPLETED and render.job_id is not None and status.api_url == terms.api_url
        return Collect(job_id=str(render.job_id)) if can_be_read else Note(why=OBSERVED)
    if not render.is_observed:
        return Note(why=OBSERVED)
    if expiry is not None and render.deletion_time is None:
        return Sleep(delay_s=_seconds_until(expiry, now))
    return Rest()


def _finalizer_is_wrong(render: Render) -> bool:
    """Whether it must be set or taken off; on an object that is being deleted it can only be taken off."""
    return render.has_finalizer != wants_finalizer(render) and (is_leaving(render) or render.deletion_time is None)


def _is_paused(render: Render) -> bool:
    """Whether nothing is asked about the job until its owner resumes it; cancel and deletion win over suspend."""
    return render.suspend and not render.cancel and not is_leaving(render)


def _pause_is_noted(render: Render) -> bool:
    """Whether the status says so, and announces no poll: an answer that came after the edit still does."""
    succeeded, next_poll_time = render.status.condition(SUCCEEDED), render.status.polling.next_poll_time
    says_so = succeeded is not None and succeeded.reason == SUSPENDED and next_poll_time is None
    return render.is_observed and says_so


def _seconds_until(instant: datetime | None, now: datetime) -> float:
    return max(0.0, (instant - now).total_seconds()) if instant else 0.0
