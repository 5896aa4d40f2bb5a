"""The table of conditions: what each says, and which one names the reason a render waits.

Accepted, Submitted, Synced and OutputsAvailable are set where something is learnt; Succeeded and Finished follow from
them. All are written together, each with the generation it speaks of: `kubectl wait` passes over one that is behind.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sume_operator.core.render import Render
from sume_operator.core.status import Condition, Status
from sume_operator.core.wording import one_line

ACCEPTED: Final = "Accepted"
SUBMITTED: Final = "Submitted"
SYNCED: Final = "Synced"
OUTPUTS_AVAILABLE: Final = "OutputsAvailable"
SUCCEEDED: Final = "Succeeded"
FINISHED: Final = "Finished"

MAX_MESSAGE_CHARS: Final = 1024

COMPLETED, FAILED, CANCELED, UNKNOWN = "Completed", "Failed", "Canceled", "Unknown"
PENDING, QUEUED, PROCESSING = "Pending", "Queued", "Processing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What one condition shall say."""

    status: str
    reason: str
    message: str = ""


YES, NO, MAYBE = "True", "False", "Unknown"

SUME_ANSWERED: Final = Says(status=YES, reason="Observed", message="Sume answered the last look.")
NO_JOB: Final = {OUTPUTS_AVAILABLE: Says(status=NO, reason="NoOutputs", message="There was no job.")}

_STATE_MESSAGES: Final = {
    PENDING: "Not looked up at Sume yet.",
    QUEUED: "Sume has queued the job.",
    PROCESSING: "Sume is working on the job.",
    UNKNOWN: "Sume uses a word for the job's state that is not known here.",
}


def initial(render: Render) -> dict[str, Says]:
    """The conditions of a render that nothing is known of yet."""
    if render.job_id:
        submitted = Says(status=YES, reason="Adopted", message="The job existed before this object.")
    elif render.is_being_submitted:
        submitted = Says(status=MAYBE, reason="OutcomeUnknown", message="Sume may have been asked for the job.")
    else:
        submitted = Says(status=NO, reason="NotSubmitted", message="Sume has not been asked for the job yet.")
    return {
        ACCEPTED: Says(status=MAYBE, reason="Pending", message="Not looked at yet."),
        SUBMITTED: submitted,
        SYNCED: Says(status=MAYBE, reason="NotObservedYet", message="Sume has not been asked yet."),
        OUTPUTS_AVAILABLE: Says(status=MAYBE, reason="NotCollected", message="The job has not ended yet."),
    }


def with_conditions(
    render: Render, status: Status, now: datetime, changes: dict[str, Says], outcome: Says | None = None
) -> Status:
    """`status` with all six conditions, brought up to date by `changes`.

    `outcome` is what Succeeded says once the render has ended; without it the render goes on and Succeeded names what
    it waits for. What is not changed keeps its words, and an unchanged truth keeps its time.
    """
    said = initial(render)
    for condition in status.conditions:
        if condition.type in said:
            said[condition.type] = Says(status=condition.status, reason=condition.reason, message=condition.message)
    if said[SUBMITTED].reason == "Suspended" and not render.suspend:
        said[SUBMITTED] = initial(render)[SUBMITTED]  # resumed
    said |= changes
    if outcome:
        said[SUCCEEDED] = outcome
        said[FINISHED] = Says(status=YES, reason=outcome.reason, message=outcome.message)
    else:
        said[SUCCEEDED] = _what_it_waits_for(render, status, said)
        said[FINISHED] = Says(status=NO, reason="Active", message="The render has not ended.")
    conditions = tuple(_condition(render, status, now, kind, says) for kind, says in said.items())
    return replace(status, conditions=conditions)


def carried_over(render: Render, status: Status) -> Status:
    """`status` with every condition as it was, but speaking of the present generation."""
    conditions = tuple(replace(c, observed_generation=render.generation) for c in status.conditions)
    return replace(status, conditions=conditions)


def _condition(render: Render, status: Status, now: datetime, kind: str, says: Says) -> Condition:
    before = status.condition(kind)
    return Condition(
        type=kind,
        status=says.status,
        reason=says.reason,
        message=one_line(says.message, MAX_MESSAGE_CHARS),
        last_transition_time=before.last_transition_time if before and before.status == says.status else now,
        observed_generation=render.generation,
    )


def _what_it_waits_for(render: Render, status: Status, said: dict[str, Says]) -> Says:
    """The most blocking reason. A suspended render waits for its owner before it waits for anything else."""
    if render.suspend and not render.cancel:
        message = "Suspended by spec.suspend: nothing is asked of Sume."
        return Says(status=MAYBE, reason="Suspended", message=message)
    is_retry = bool(status.failed_job_ids) and said[SUBMITTED].reason == "NotSubmitted"
    if is_retry and said[ACCEPTED].status != NO and said[SYNCED].status != NO:
        message = f"Job {status.failed_job_ids[-1]} failed; Sume is asked for it again (backoffLimit)."
        return Says(status=MAYBE, reason="Retrying", message=message)
    for kind in (ACCEPTED, SUBMITTED, SYNCED):
        if said[kind].status == NO:
            return replace(said[kind], status=MAYBE)
    if status.polling.collecting_since:
        message = "The job has completed; its outputs are being collected."
        return Says(status=MAYBE, reason="Processing", message=message)
    if render.cancel and (status.cancellation is None or status.cancellation.result == "Accepted"):
        return Says(status=MAYBE, reason="Canceling", message="Sume is asked to cancel the job.")
    reason = status.state if status.state in (PENDING, QUEUED) else PROCESSING
    return Says(status=MAYBE, reason=reason, message=_STATE_MESSAGES.get(status.state, ""))
