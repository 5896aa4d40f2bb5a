"""What the controller does about a render's alarm: after an event of the watch, and when the sweep finds none."""

from dataclasses import dataclass
from datetime import datetime

from sume_operator.core.pace import share_of
from sume_operator.core.render import Render
from sume_operator.core.step import first_due


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Add an alarm in `delay_s` if there is none."""

    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hasten:
    """Make the alarm due now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Take the alarm away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """The event shows no more than a status write."""


Alarm = Schedule | Hasten | Drop | Ignore


def alarm_for(event_type: str | None, render: Render, now: datetime) -> Alarm:
    """`event_type` as the watch has it: ADDED, MODIFIED, DELETED, or None for an object listed at start."""
    if event_type == "DELETED":
        return Drop()
    if render.status.observed_generation and not render.is_observed:
        return Hasten()
    if event_type == "MODIFIED" and render.status.observed_generation:
        return Ignore()
    delay_s = first_due(render, now)
    return Ignore() if delay_s is None else Schedule(delay_s=delay_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTerms:
    """`spread_s`: over how long overdue alarms are spread. `lease_s`: how long a poller may be at work unseen."""

    spread_s: float
    lease_s: float


def missing_alarm_s(render: Render, now: datetime, terms: SweepTerms, *, was_emptied: bool) -> float | None:
    """Seconds until the alarm that the sweep adds where there is none; None: the render needs none.

    After Redis was emptied (`was_emptied`) an overdue render may be in the hands of a poller whose lease went with
    the set, so it waits one lease: two pollers never read one job at once.
    """
    due_s = first_due(render, now)
    if due_s is None or due_s > 0 or not render.status.observed_generation:
        return due_s
    return (terms.lease_s if was_emptied else 0.0) + terms.spread_s * share_of(render.ref)
