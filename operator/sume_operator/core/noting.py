"""Turns that ask nothing of Sume and only write down how the render stands."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sume_operator.core.conditions import (
    ACCEPTED,
    CANCELED,
    MAYBE,
    NO,
    NO_JOB,
    SUBMITTED,
    SYNCED,
    UNKNOWN,
    Says,
    initial,
)
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.core.step import SUBMISSIONS_DISABLED, SUSPENDED, WRONG_ENDPOINT, Note
from sume_operator.core.verdict import AtOnce, Verdict, ended_already, ends, goes_on, pauses
from sume_operator.core.wording import one_line


def noted(render: Render, note: Note, now: datetime, terms: Terms) -> Verdict:
    """The render as it stands after `note`."""
    status = render.status
    if status.terminal:
        quiet = replace(status.polling, failures=0, next_poll_time=None)
        return ended_already(render, replace(status, polling=quiet), AtOnce(), "unchanged")
    match note.why:
        case "Suspended":
            may_have_job = render.job_id is not None or render.is_being_submitted
            return pauses(render, status, now, {} if may_have_job else {SUBMITTED: _SUSPENDED}, "unchanged")
        case "NeverAsked":
            message = "Canceled before Sume was asked for the job."
            result = Says(status=NO, reason="Canceled", message=message)
            return ends(render, status, now, state=CANCELED, result=result, changes=NO_JOB)
        case "OutcomeUnknown":
            return _never_known(render, now)
        case "WrongEndpoint":
            changes = {SYNCED: _wrong_endpoint(render, terms)}
        case _:
            changes = _submissions_disabled(render)
    return goes_on(render, status, now, terms, delay_s=terms.pace.max_s, changes=changes, outcome="deferred")


def _never_known(render: Render, now: datetime) -> Verdict:
    """A request for a job that nobody could get answered."""
    key = render.status.submission.idempotency_key if render.status.submission else render.idempotency_key
    message = (
        f"For 24 hours Sume gave no usable answer to the request with idempotency key {key}. Look up at Sume whether "
        "it made a job: if so apply a SumeRender with its spec.jobID, else one with this request under a new name."
    )
    result = Says(status=MAYBE, reason="OutcomeUnknown", message=one_line(message, 1024))
    return ends(render, render.status, now, state=UNKNOWN, result=result, changes=NO_JOB)


def _wrong_endpoint(render: Render, terms: Terms) -> Says:
    message = (
        f"The job lives on {render.status.api_url}, but this operator talks to {terms.api_url} (SUME_API_URL). "
        "Nothing was asked."
    )
    return Says(status=NO, reason=WRONG_ENDPOINT, message=message)


def _submissions_disabled(render: Render) -> dict[str, Says]:
    message = "This operator only follows jobs (spec.jobID); asking for new ones is off (SUME_SUBMISSIONS_ENABLED)."
    waiting = initial(render)[SUBMITTED]
    return {ACCEPTED: Says(status=NO, reason=SUBMISSIONS_DISABLED, message=message), SUBMITTED: waiting}


_SUSPENDED: Final = Says(status=NO, reason=SUSPENDED, message="Suspended before Sume was asked for the job.")
