"""What a turn comes to: the render with its new status, and when it is looked at next."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from sume_operator.core.conditions import Says, carried_over, with_conditions
from sume_operator.core.pace import Terms, jittered
from sume_operator.core.render import Render
from sume_operator.core.status import Polling, Status
from sume_operator.core.wording import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Look again in `delay_s`."""

    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """Another step follows in the same turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """Nothing is left to do: the alarm goes."""


Next = Again | AtOnce | Never
_SOME_TIME: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`outcome` is a label of the metric polls_total."""

    render: Render
    next: Next
    outcome: str


def goes_on(
    render: Render,
    status: Status,
    now: datetime,
    terms: Terms,
    *,
    delay_s: float,
    changes: dict[str, Says],
    outcome: str,
) -> Verdict:
    """The render goes on and is looked at again after `delay_s` (seconds, jittered and clamped here)."""
    turn = status.polling.count + status.polling.failures
    delay_s = jittered(delay_s, render.ref, turn, terms.pace)
    next_poll_time = now + timedelta(seconds=delay_s)
    status = replace(status, polling=replace(status.polling, next_poll_time=next_poll_time))
    new = render.with_status(_said(render, status, now, changes))
    return Verdict(render=new, next=Again(delay_s=delay_s), outcome=outcome)


def pauses(render: Render, status: Status, now: datetime, changes: dict[str, Says], outcome: str) -> Verdict:
    """The render goes on, but nothing is to be done until somebody edits it."""
    status = replace(status, polling=replace(status.polling, next_poll_time=None))
    return Verdict(render=render.with_status(_said(render, status, now, changes)), next=Never(), outcome=outcome)


def steps_on(render: Render, status: Status, now: datetime, changes: dict[str, Says], outcome: str) -> Verdict:
    """Another step follows in this turn."""
    return Verdict(render=render.with_status(_said(render, status, now, changes)), next=AtOnce(), outcome=outcome)


def ends(
    render: Render, status: Status, now: datetime, *, state: str, result: Says, changes: dict[str, Says]
) -> Verdict:
    """The render has ended in `state`; `result` is what Succeeded says. One more step sees to what follows the end."""
    polling = Polling(count=status.polling.count, last_poll_time=status.polling.last_poll_time)
    status = replace(status, state=state, terminal=True, completion_time=now, polling=polling)
    status = with_conditions(render, status, now, changes, result)
    status = _observed(render, replace(status, message=one_line(result.message, 1024)))
    return Verdict(render=render.with_status(status), next=AtOnce(), outcome="terminal")


def ended_already(render: Render, status: Status, next_: Next, outcome: str) -> Verdict:
    """The render had ended before: nothing but outputs, polling and what was observed may change."""
    status = carried_over(render, _observed(render, status))
    return Verdict(render=render.with_status(status), next=next_, outcome=outcome)


def _said(render: Render, status: Status, now: datetime, changes: dict[str, Says]) -> Status:
    """`status` with its conditions, and the message that says in one line what the render waits for."""
    status = with_conditions(render, status, now, changes)
    succeeded = status.condition("Succeeded")
    return _observed(render, replace(status, message=succeeded.message if succeeded else None))


def _observed(render: Render, status: Status) -> Status:
    """Every turn that looked says so, whatever came of it: else the handler would hasten it for ever."""
    return replace(
        status,
        observed_generation=render.generation,
        last_handled_poll_request=render.poll_request or status.last_handled_poll_request,
        job_id=render.with_status(status).job_id,
    )


def is_worth_writing(written: Status, new: Status, refresh_s: float) -> bool:
    """Whether `new` says more than `written`: always when something changed, else at most every `refresh_s`.

    A turn that got no answer and changed nothing (the key was held) is not worth a write.
    """
    if _apart_from_times(written) != _apart_from_times(new):
        return True
    last, latest = written.polling.last_poll_time, new.polling.last_poll_time
    if new.polling.count == written.polling.count or latest is None:
        return False
    return last is None or (latest - last).total_seconds() >= refresh_s


def _apart_from_times(status: Status) -> Status:
    """When the next poll comes is left out; that there is one is not."""
    next_poll_time = status.polling.next_poll_time and _SOME_TIME
    return replace(status, polling=replace(status.polling, count=0, last_poll_time=None, next_poll_time=next_poll_time))
