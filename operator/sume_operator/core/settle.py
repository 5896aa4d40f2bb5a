"""What a reply means for a render: one function over values, `settle`.

An ended render stays as it ended. Trouble (ours, the network's, the key's) never ends one and never changes its state:
it is written down in the condition Synced and the render is looked at again, later and later.
"""

from dataclasses import replace
from datetime import datetime

from sume_operator.core import collecting, observing, submitting, trouble
from sume_operator.core.conditions import ACCEPTED, COMPLETED, NO, YES, Says, with_conditions
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Collect,
    Forbidden,
    Held,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    NoCredentials,
    RateLimited,
    Refusal,
    Reply,
    Spent,
    Submit,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.keys import NOTHING_KNOWN, KeyView
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.core.status import Cancellation
from sume_operator.core.verdict import AtOnce, Verdict, goes_on, steps_on
from sume_operator.core.wording import one_line_or_none


def settle(
    render: Render, call: Call, reply: Reply, now: datetime, terms: Terms, key: KeyView = NOTHING_KNOWN
) -> Verdict:
    """What `reply` to `call` means for `render` at `now`. Total: every reply has a verdict."""
    if render.status.terminal:
        if isinstance(call, Collect) and render.status.state == COMPLETED:
            return collecting.refreshed(render, reply, now, terms)
        return Verdict(render=render, next=AtOnce(), outcome="unchanged")  # it ended meanwhile: the reply is too late
    if isinstance(reply, NoCredentials):
        return _without_credentials(render, reply, now, terms)
    if isinstance(reply, Spent):
        return trouble.spent(render, reply, now, terms)
    if isinstance(call, Submit):
        return submitting.answered(_accepted(render, now), reply, now, terms, key)
    match reply:
        case Held():
            return trouble.held(render, reply, now, terms)
        case JobStatus():
            return observing.observed(_accepted(render, now), reply, now, terms)
        case JobResult():
            return collecting.collected(_accepted(render, now), reply, now, terms)
        case CancelAccepted():
            return _cancel_answered(_accepted(render, now), "Accepted", None, now)
        case Refusal() | JobUnknown() if isinstance(call, Cancel):
            return _cancel_answered(_accepted(render, now), "Refused", reply.message, now)
        case JobUnknown() if isinstance(call, Collect):
            return collecting.gone(_accepted(render, now), now)
        case JobUnknown():
            return trouble.job_unknown(_accepted(render, now), reply, now, terms, key)
        case Refusal(http_status=409) if isinstance(call, Collect):
            return collecting.not_ready(_accepted(render, now), now, terms)
        case Unauthorized() | Forbidden() | RateLimited() | Unavailable() | Malformed() | Refusal():
            return trouble.failed_look(_accepted(render, now), reply, now, terms)
    return trouble.failed_look(render, Malformed(detail="it answers another question"), now, terms)


def _accepted(render: Render, now: datetime) -> Render:
    """Something was sent, so there was a key to send it with."""
    says = Says(status=YES, reason="Accepted", message="A key for Sume was found.")
    return render.with_status(with_conditions(render, render.status, now, {ACCEPTED: says}))


def _without_credentials(render: Render, reply: NoCredentials, now: datetime, terms: Terms) -> Verdict:
    given_up = collecting.gives_up_collecting(render, now)
    if given_up:
        return given_up
    says = Says(status=NO, reason=reply.reason, message=reply.message)
    return goes_on(
        render, render.status, now, terms, delay_s=terms.pace.error_s, changes={ACCEPTED: says}, outcome="deferred"
    )


def _cancel_answered(render: Render, result: str, message: str | None, now: datetime) -> Verdict:
    """Accepted or refused, the next look tells what became of the job; Sume is not asked to cancel a second time."""
    cancellation = Cancellation(result=result, time=now, message=one_line_or_none(message, 1024))
    return steps_on(render, replace(render.status, cancellation=cancellation), now, {}, "changed")
