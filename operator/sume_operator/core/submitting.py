"""What the answer to a request for a job means: made, refused for good, not now, or nobody knows.

A lost answer is asked for again with the same key, which never makes a second job; so trouble here costs time, not
money. Only Sume's own "no" ends a render here (and next_step, after a day without an answer).
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sume_operator.core.conditions import (
    FAILED,
    MAYBE,
    NO,
    NO_JOB,
    PENDING,
    PROCESSING,
    QUEUED,
    SUBMITTED,
    SUME_ANSWERED,
    SYNCED,
    YES,
    Says,
)
from sume_operator.core.job import (
    Forbidden,
    Held,
    JobError,
    JobUnknown,
    Malformed,
    NoSlot,
    RateLimited,
    Refusal,
    Reply,
    Submit,
    Submitted,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.keys import KeyView, says_full
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.core.status import Status, Submission
from sume_operator.core.step import deadline_has_passed, is_leaving
from sume_operator.core.trouble import held, one_more_failure, reading_of
from sume_operator.core.verdict import Verdict, ends, goes_on, steps_on
from sume_operator.core.wording import one_line, one_line_or_none

CREDITS_CODE: Final = "insufficient_credits"
# Such a "no" would have been said to an earlier attempt, too, for the request was the same.
_SAID_OF_THE_REQUEST: Final = (400, 404, 410, 422)
_QUEUED_WORDS: Final = {"queued": QUEUED, "processing": PROCESSING, "running": PROCESSING}
_ASKED_AGAIN: Final = (
    "Sume may have been asked for the job, but its answer was lost. It is asked again with the same key."
)


def intended(
    render: Render, call: Submit, now: datetime, terms: Terms, *, fingerprint: str, asked_before: bool
) -> Status:
    """The status that is written before Sume is asked: so whoever comes after a crash knows that it may have been.

    `asked_before`: an earlier attempt was never answered; a "no" to this one will not undo that one.
    """
    before = render.status.submission or Submission()
    submission = Submission(
        attempts=before.attempts + 1,
        idempotency_key=call.idempotency_key[:280],
        key_fingerprint=fingerprint,
        first_attempt_time=(before.first_attempt_time if asked_before else None) or now,
        last_attempt_time=now,
    )
    says = Says(status=MAYBE, reason="Submitting", message="Sume is being asked for the job.")
    if asked_before:
        says = Says(status=MAYBE, reason="OutcomeUnknown", message=_ASKED_AGAIN)
    status = replace(render.status, submission=submission, api_url=terms.api_url[:512])  # as next_step has made sure
    return steps_on(render, status, now, {SUBMITTED: says}, "changed").render.status


def answered(render: Render, reply: Reply, now: datetime, terms: Terms, key: KeyView) -> Verdict:
    """What `reply` to a request means. `render` carries the intent that was written before."""
    if render.job_id is not None:  # another poller got an answer to the same key meanwhile: it is the same job
        return steps_on(render, render.status, now, {}, "unchanged")
    render = render.with_status(_counted_against(render.status, key))
    match reply:
        case Submitted():
            return _made(render, reply, now, terms)
        case NoSlot():
            return _without_slot(render, reply, now, terms)
        case Held():
            return held(render, reply, now, terms)
        case Refusal(http_status=402) | Refusal(code="insufficient_credits"):
            says = Says(status=NO, reason="InsufficientCredits", message="The workspace has no credits left at Sume.")
            return _not_now(render, says, now, terms)
        case Refusal(http_status=409, retryable=retryable) if retryable is not False:
            return _waits_for_slot(render, "Sume takes no further job now.", now, terms, terms.pace.error_s)
        case RateLimited(code=code) if says_full(code):
            return _waits_for_slot(render, "Sume's own queue is full.", now, terms, terms.pace.error_s)
        case Refusal(retryable=True):
            return _failed(render, _to_be_asked_again(reply, was_sent=False), now, terms)
        case Refusal() if reply.http_status not in _SAID_OF_THE_REQUEST and _was_asked_before(render):
            return _failed(render, _to_be_asked_again(reply, was_sent=True), now, terms)
        case Refusal() | JobUnknown():
            return _rejected(render, reply, now)
        case Unauthorized() | Forbidden() | RateLimited() | Unavailable() | Malformed():
            return _failed(render, reply, now, terms)
        case _:
            return _failed(render, Malformed(detail="it answers another question"), now, terms)


def may_be_retried(render: Render) -> bool:
    """Whether a job that Sume failed is asked for again."""
    if render.request is None or render.cancel or render.deletion_time is not None or deadline_has_passed(render):
        return False
    return len(render.status.failed_job_ids) < render.backoff_limit


def asked_for_again(render: Render, status: Status, now: datetime, terms: Terms, synced: dict[str, Says]) -> Verdict:
    """The job failed and another one is asked for, in a turn of its own: what spends money starts from the object."""
    failed = (*status.failed_job_ids, str(status.job_id))
    polling = replace(status.polling, streak=None)
    status = replace(
        status, failed_job_ids=failed, job_id=None, state=PENDING, sume_status=None, cancellation=None, polling=polling
    )
    says = Says(status=NO, reason="NotSubmitted", message="The job failed; Sume is asked for it again.")
    return goes_on(
        render,
        status,
        now,
        terms,
        delay_s=terms.pace.min_s,
        changes=synced | {SUBMITTED: says},
        outcome="changed",
    )


def _counted_against(status: Status, key: KeyView) -> Status:
    """The object says which key it counts against, so that the slots can be rebuilt from the objects alone."""
    if key.fingerprint is None:
        return status
    return replace(status, submission=replace(status.submission or Submission(), key_fingerprint=key.fingerprint))


def _made(render: Render, reply: Submitted, now: datetime, terms: Terms) -> Verdict:
    status = render.status
    job_id = reply.job_id[:128]
    status = replace(
        status,
        job_id=job_id,
        state=_QUEUED_WORDS.get((reply.word or "").strip().lower(), PENDING),
        sume_status=one_line_or_none(reply.word, 64),
        api_url=status.api_url or terms.api_url[:512],
        start_time=status.start_time or now,
        usage=reply.usage or status.usage,
        error=None,
        polling=replace(status.polling, failures=0, streak=None),
    )
    says = Says(status=YES, reason="Created", message=f"Sume made job {job_id}.")
    if reply.replayed:
        says = Says(status=YES, reason="AlreadyExists", message=f"The idempotency key had made job {job_id} before.")
    changes = {
        SUBMITTED: says,
        SYNCED: SUME_ANSWERED,
    }
    if render.cancel or is_leaving(render):
        return steps_on(render, status, now, changes, "changed")
    delay_s = terms.pace.usual_s(reply.next_poll_s)
    return goes_on(render, status, now, terms, delay_s=delay_s, changes=changes, outcome="changed")


def _without_slot(render: Render, reply: NoSlot, now: datetime, terms: Terms) -> Verdict:
    """Nothing was sent. Whoever gets the slot is woken; where it is only not known yet, nobody wakes anybody."""
    says = Says(status=NO, reason="WaitingForSlot", message=_no_slot_message(reply))
    changes = {} if render.is_being_submitted else {SUBMITTED: says}
    delay_s = terms.pace.error_s if reply.ahead is None else terms.pace.max_s
    return goes_on(render, render.status, now, terms, delay_s=delay_s, changes=changes, outcome="deferred")


def _no_slot_message(reply: NoSlot) -> str:
    if reply.ahead is None:
        return "Waits until it is known again how many jobs of this key are under way."
    ahead = (
        "no other render is" if not reply.ahead else "1 other is" if reply.ahead == 1 else f"{reply.ahead} others are"
    )
    return f"All slots of this key are taken (SUME_MAX_ACTIVE_JOBS); {ahead} before it."


def _waits_for_slot(render: Render, message: str, now: datetime, terms: Terms, delay_s: float) -> Verdict:
    says = Says(status=NO, reason="WaitingForSlot", message=message)
    status = replace(render.status, polling=replace(render.status.polling, failures=0))
    changes = _unless_asked_before(render, says)
    return goes_on(render, status, now, terms, delay_s=delay_s, changes=changes, outcome="deferred")


def _not_now(render: Render, says: Says, now: datetime, terms: Terms) -> Verdict:
    synced = SUME_ANSWERED
    changes = {SYNCED: synced, **_unless_asked_before(render, says)}
    status = replace(render.status, polling=replace(render.status.polling, failures=0))
    return goes_on(render, status, now, terms, delay_s=terms.pace.max_s, changes=changes, outcome="deferred")


def _unless_asked_before(render: Render, says: Says) -> dict[str, Says]:
    """Sume's "no" to this attempt says nothing of an earlier one that was never answered."""
    return {} if _was_asked_before(render) else {SUBMITTED: says}


def _was_asked_before(render: Render) -> bool:
    """Whether there was an attempt before this one, and its answer was lost."""
    submitted = render.status.condition(SUBMITTED)
    return render.is_being_submitted and (submitted is None or submitted.reason != "Submitting")


def _to_be_asked_again(reply: Refusal, *, was_sent: bool) -> Unavailable:
    said = one_line_or_none(reply.message or reply.code, 300)
    detail = f"HTTP {reply.http_status}, {said}" if said else f"HTTP {reply.http_status}"
    return Unavailable(detail=detail, was_sent=was_sent)


def _rejected(render: Render, reply: Refusal | JobUnknown, now: datetime) -> Verdict:
    """Sume's own no: final, and said in its words."""
    code = reply.code if isinstance(reply, Refusal) else "not_found"
    error = JobError(code=one_line_or_none(code, 128), message=one_line_or_none(reply.message, 1024), source="Submit")
    detail = reply.message or code or f"HTTP {reply.http_status}"
    message = one_line(f"Sume refused the request: {detail}", 1024)
    by_content = "content_policy" in (code or "")
    reason = "ContentPolicyRejected" if by_content else "SubmissionRejected"
    changes = {SUBMITTED: Says(status=NO, reason="SubmissionRejected", message=message), **NO_JOB}
    changes[SYNCED] = SUME_ANSWERED
    result = Says(status=NO, reason=reason, message=message)
    return ends(render, replace(render.status, error=error), now, state=FAILED, result=result, changes=changes)


def _failed(
    render: Render,
    reply: Unauthorized | Forbidden | RateLimited | Unavailable | Malformed,
    now: datetime,
    terms: Terms,
) -> Verdict:
    """No answer of use. That there is no job is known only where nothing was sent, or Sume said no to the key."""
    unknown = isinstance(reply, Malformed) or (isinstance(reply, Unavailable) and reply.was_sent)
    status = one_more_failure(render.status)
    says, delay_s, outcome = reading_of(reply, status.polling.failures, terms, is_urgent=is_leaving(render))
    changes = {SYNCED: says}
    if not unknown:
        not_yet = Says(status=NO, reason="NotSubmitted", message="Sume could not be asked for the job yet.")
        changes |= _unless_asked_before(render, not_yet)
        return goes_on(render, status, now, terms, delay_s=delay_s, changes=changes, outcome=outcome)
    changes[SUBMITTED] = Says(status=MAYBE, reason="OutcomeUnknown", message=_ASKED_AGAIN)
    return goes_on(render, status, now, terms, delay_s=delay_s, changes=changes, outcome=outcome)
