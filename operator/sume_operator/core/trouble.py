"""Looks that brought nothing: written down in Synced, retried later and later, and never the end of a render.

The one exception is a job that Sume itself says it does not know, again and again (JobLost).
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sume_operator.core.collecting import gives_up_collecting
from sume_operator.core.conditions import FAILED, NO, OUTPUTS_AVAILABLE, SYNCED, Says
from sume_operator.core.job import (
    Forbidden,
    Held,
    JobUnknown,
    Malformed,
    RateLimited,
    Refusal,
    Spent,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.keys import RATE_LIMITED, UNAUTHORIZED, KeyView
from sume_operator.core.pace import KEY_PROBE_S, LEAVING_RETRY_S, Terms
from sume_operator.core.render import Render
from sume_operator.core.status import Status, Streak, one_more_in_a_row
from sume_operator.core.step import is_leaving
from sume_operator.core.verdict import Verdict, ends, goes_on

FailedLook = Unauthorized | Forbidden | RateLimited | Unavailable | Malformed | Refusal

JOB_NOT_FOUND: Final = "JobNotFound"
LOOKS_UNTIL_NEVER_SEEN_IS_LOST: Final = 5
LOOKS_UNTIL_SEEN_IS_LOST: Final = 10
TIME_UNTIL_SEEN_IS_LOST: Final = timedelta(hours=1)


def failed_look(render: Render, reply: FailedLook, now: datetime, terms: Terms) -> Verdict:
    """Sume did not answer, or not usefully: back off, state unchanged."""
    given_up = gives_up_collecting(render, now)
    if given_up:
        return given_up
    status = one_more_failure(render.status)
    says, delay_s, outcome = reading_of(reply, status.polling.failures, terms, is_urgent=is_leaving(render))
    return goes_on(render, status, now, terms, delay_s=delay_s, changes={SYNCED: says}, outcome=outcome)


def held(render: Render, reply: Held, now: datetime, terms: Terms) -> Verdict:
    """Nothing was sent, since the key as a whole has to wait; that is no failure of this render."""
    given_up = gives_up_collecting(render, now)
    if given_up:
        return given_up
    says = Says(status=NO, reason=reply.reason, message=_HELD_MESSAGES.get(reply.reason, "The key has to wait."))
    return goes_on(
        render, render.status, now, terms, delay_s=reply.retry_after_s, changes={SYNCED: says}, outcome="deferred"
    )


def spent(render: Render, reply: Spent, now: datetime, terms: Terms) -> Verdict:
    """Nothing was sent, since others of the same key are first: looked at again, and nothing is said of it."""
    return goes_on(render, render.status, now, terms, delay_s=reply.retry_after_s, changes={}, outcome="deferred")


def job_unknown(render: Render, reply: JobUnknown, now: datetime, terms: Terms, key: KeyView) -> Verdict:
    """Sume says in its own words that it does not know the job."""
    status = _one_more_unknown(render.status, now)
    streak = status.polling.streak
    message = f"Sume does not know the job {render.job_id} (HTTP {reply.http_status})."
    changes = {SYNCED: Says(status=NO, reason=JOB_NOT_FOUND, message=message)}
    if streak and _is_lost(render, streak, now, key):
        lost = Says(status=NO, reason="JobLost", message=f"{message} Asked {streak.count} times; check spec.jobID.")
        changes[OUTPUTS_AVAILABLE] = Says(status=NO, reason="NoOutputs", message="The job is not known to Sume.")
        return ends(render, status, now, state=FAILED, result=lost, changes=changes)
    delay_s = terms.pace.max_s if _was_seen(render) else terms.pace.error_delay_s(streak.count if streak else 1)
    return goes_on(render, status, now, terms, delay_s=delay_s, changes=changes, outcome="error")


def _is_lost(render: Render, streak: Streak, now: datetime, key: KeyView) -> bool:
    if not _was_seen(render):
        return streak.count >= LOOKS_UNTIL_NEVER_SEEN_IS_LOST
    long_enough = streak.count >= LOOKS_UNTIL_SEEN_IS_LOST and now - streak.since >= TIME_UNTIL_SEEN_IS_LOST
    return long_enough and key.another_was_answered(str(render.job_id), streak.since)


def _was_seen(render: Render) -> bool:
    """Whether the job is known to have existed: then a 404 is more likely Sume's trouble than the truth.

    Who has a request follows the job that Sume made for it, also when restored from a backup.
    """
    return render.status.start_time is not None or render.followed_job_id is None


def one_more_failure(status: Status) -> Status:
    """One look more in a row that brought nothing."""
    return replace(status, polling=replace(status.polling, failures=status.polling.failures + 1))


def _one_more_unknown(status: Status, now: datetime) -> Status:
    status = one_more_failure(status)
    return replace(status, polling=one_more_in_a_row(status.polling, JOB_NOT_FOUND, now))


def reading_of(reply: FailedLook, failures: int, terms: Terms, *, is_urgent: bool = False) -> tuple[Says, float, str]:
    """What Synced says, the delay in seconds, and the outcome for the metric.

    `is_urgent`: a deletion waits for the job to be canceled, and does not wait for long.
    """
    backed_off_s = terms.pace.error_delay_s(failures)
    if is_urgent:
        backed_off_s = min(backed_off_s, terms.pace.clamped(LEAVING_RETRY_S))
    match reply:
        case Unauthorized():
            return _not_synced(UNAUTHORIZED, _HELD_MESSAGES[UNAUTHORIZED]), KEY_PROBE_S, "error"
        case Forbidden():
            message = "Sume answers 403: this key may not see this job. Check credentialsSecretRef and the job id."
            return _not_synced(UNAUTHORIZED, message), backed_off_s, "error"
        case RateLimited(retry_after_s=asked_s):
            return _not_synced(RATE_LIMITED, _HELD_MESSAGES[RATE_LIMITED]), asked_s or backed_off_s, "rate_limited"
        case Unavailable(detail=detail, retry_after_s=asked_s):
            return _not_synced("APIUnavailable", f"Sume did not answer: {detail}."), asked_s or backed_off_s, "error"
        case Malformed(detail=detail):
            return _not_synced("InvalidResponse", f"Sume's answer makes no sense: {detail}."), backed_off_s, "error"
        case Refusal(http_status=http_status, code=code):
            message = f"Sume refused the look: HTTP {http_status}, {code or 'no code'}."
            return _not_synced("InvalidResponse", message), backed_off_s, "error"


def _not_synced(reason: str, message: str) -> Says:
    return Says(status=NO, reason=reason, message=message)


_HELD_MESSAGES: Final = {
    UNAUTHORIZED: "Sume does not accept the API key (401 or 403). Replace it in its Secret; no restart is needed.",
    RATE_LIMITED: "Sume limits how often this API key may ask. The render is looked at again by itself.",
}
