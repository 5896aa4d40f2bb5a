"""What a status read says about the job: words, the flag `terminal`, and the patience with answers that contradict."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sume_operator.core.conditions import (
    CANCELED,
    COMPLETED,
    FAILED,
    MAYBE,
    NO,
    OUTPUTS_AVAILABLE,
    PROCESSING,
    QUEUED,
    SUME_ANSWERED,
    SYNCED,
    UNKNOWN,
    Says,
)
from sume_operator.core.job import JobError, JobStatus
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.core.status import Polling, Status, one_more_in_a_row
from sume_operator.core.step import is_past_deadline, wants_cancel
from sume_operator.core.submitting import asked_for_again, may_be_retried
from sume_operator.core.verdict import Verdict, ends, goes_on, steps_on
from sume_operator.core.wording import in_seconds, one_line, one_line_or_none

WORDS: Final = {
    "queued": QUEUED,
    "processing": PROCESSING,
    "running": PROCESSING,
    "completed": COMPLETED,
    "complete": COMPLETED,
    "success": COMPLETED,
    "succeeded": COMPLETED,
    "failed": FAILED,
    "error": FAILED,
    "errored": FAILED,
    "nsfw": FAILED,
    "expired": FAILED,
    "canceled": CANCELED,
    "cancelled": CANCELED,
}
END_STATES: Final = (COMPLETED, FAILED, CANCELED)
CONTENT_POLICY: Final = "content_policy_rejected"
CONTRADICTION: Final = "Contradiction"
CONTRADICTIONS_BORNE: Final = 3

_NO_OUTPUTS: Final = {OUTPUTS_AVAILABLE: Says(status=NO, reason="NoOutputs", message="The job made no outputs.")}


def state_of(word: str | None) -> str:
    """Sume's word in any case -> the state it stands for; Unknown for a word that is not known here."""
    return WORDS.get((word or "").strip().lower(), UNKNOWN)


def observed(render: Render, reply: JobStatus, now: datetime, terms: Terms) -> Verdict:
    """One answered status read."""
    status = _with_facts(render, reply, now, terms)
    synced = {SYNCED: SUME_ANSWERED}
    state = state_of(reply.word)
    has_ended = reply.terminal if reply.terminal is not None else state in END_STATES
    contradicts = reply.terminal is not None and state != UNKNOWN and has_ended != (state in END_STATES)
    if contradicts:
        status = replace(status, polling=one_more_in_a_row(status.polling, CONTRADICTION, now))
        streak = status.polling.streak
        if streak is None or streak.count <= CONTRADICTIONS_BORNE:
            state = render.status.state if state in END_STATES else state
            return _goes_on(render, replace(status, state=state), now, terms, reply, synced)
        if state in END_STATES:  # the word is believed in the end
            has_ended = True
        else:
            state = UNKNOWN
    if not has_ended:
        return _runs(render, replace(status, state=state), now, terms, reply, synced)
    return _ended(render, status, now, state, terms, synced)


def _with_facts(render: Render, reply: JobStatus, now: datetime, terms: Terms) -> Status:
    """What every answered read adds, whatever it says."""
    before = render.status
    polling = Polling(count=before.polling.count + 1, last_poll_time=now, streak=before.polling.streak)
    return replace(
        before,
        api_url=before.api_url or terms.api_url[:512],
        sume_status=one_line_or_none(reply.word, 64),
        start_time=before.start_time or now,
        usage=reply.usage or before.usage,
        error=_clipped(reply.error) or before.error,
        polling=polling,
    )


def _clipped(error: JobError | None) -> JobError | None:
    """Sume's words cut to what the schema takes."""
    if error is None:
        return None
    return JobError(
        code=one_line_or_none(error.code, 128),
        message=one_line_or_none(error.message, 1024),
        public_reason=one_line_or_none(error.public_reason, 128),
        request_id=one_line_or_none(error.request_id, 128),
        source="Job",
    )


def _runs(
    render: Render, status: Status, now: datetime, terms: Terms, reply: JobStatus, synced: dict[str, Says]
) -> Verdict:
    """The job has not ended: cancel it now if that is wanted, else look again, unless its deadline has passed."""
    status = replace(status, polling=replace(status.polling, streak=None))
    if wants_cancel(render.with_status(status)):
        return steps_on(render, status, now, synced, "changed")
    if is_past_deadline(render, status.start_time, now):
        return _past_its_deadline(render, status, now, synced)
    return _goes_on(render, status, now, terms, reply, synced)


def _past_its_deadline(render: Render, status: Status, now: datetime, synced: dict[str, Says]) -> Verdict:
    limit = in_seconds(float(render.active_deadline_s or 0))
    message = f"The job still ran when activeDeadlineSeconds ({limit}) were over."
    result = Says(status=NO, reason="DeadlineExceeded", message=message)
    return ends(render, status, now, state=FAILED, result=result, changes=synced | _NO_OUTPUTS)


def _goes_on(
    render: Render, status: Status, now: datetime, terms: Terms, reply: JobStatus, synced: dict[str, Says]
) -> Verdict:
    outcome = "unchanged" if status.state == render.status.state else "changed"
    delay_s = terms.pace.usual_s(reply.next_poll_s)
    return goes_on(render, status, now, terms, delay_s=delay_s, changes=synced, outcome=outcome)


def _ended(render: Render, status: Status, now: datetime, state: str, terms: Terms, synced: dict[str, Says]) -> Verdict:
    """Completed: the outputs are collected first, in the same turn. Anything else ends the render here."""
    if state == COMPLETED:
        polling = replace(status.polling, collecting_since=now, streak=None)
        status = replace(status, state=render.status.state, polling=polling)
        return steps_on(render, status, now, synced, "changed")
    if state == CANCELED and _was_given_up(render, status):
        return _past_its_deadline(render, status, now, synced)
    result = _result_of(status, state)
    if result.reason == "JobFailed" and may_be_retried(render.with_status(status)):
        return asked_for_again(render, status, now, terms, synced)
    return ends(render, status, now, state=state, result=result, changes=synced | _NO_OUTPUTS)


def _was_given_up(render: Render, status: Status) -> bool:
    """Whether it was the deadline that had the job canceled."""
    if render.cancel or status.cancellation is None:
        return False
    return is_past_deadline(render, status.start_time, status.cancellation.time)


def _result_of(status: Status, state: str) -> Says:
    if state == CANCELED:
        return Says(status=NO, reason="Canceled", message="The job was canceled.")
    if state == FAILED:
        error, word = status.error or JobError(), (status.sume_status or "").lower()
        detail = error.message or error.code or f"Sume says {word!r}"
        refused = CONTENT_POLICY in (error.public_reason, error.code) or word == "nsfw"
        reason = "ContentPolicyRejected" if refused else "JobFailed"
        return Says(status=NO, reason=reason, message=one_line(f"The job failed: {detail}", 1024))
    message = f"Sume says that the job has ended, but not how (its word: {status.sume_status!r}). Look it up at Sume."
    return Says(status=MAYBE, reason="OutcomeUnknown", message=message)
