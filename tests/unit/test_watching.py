"""What an event of the watch, or a pass of the sweep, does about a render's alarm."""

from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

import pytest

from builders import RUNNING, at, checked, completed, edited, failed, following, leaving, requesting, running
from sume_operator.core.pace import share_of
from sume_operator.core.render import FINALIZER, Ref, Render
from sume_operator.core.watching import Alarm, Drop, Hasten, Ignore, Schedule, SweepTerms, alarm_for, missing_alarm_s

SOON = Schedule(delay_s=0)
ROWS: list[tuple[str, str | None, Render, Alarm]] = [
    ("new", "ADDED", following(), SOON),
    ("new, asks for a job", "ADDED", requesting(), SOON),
    ("listed at start, never looked at", None, following(), SOON),
    ("changed before the first look", "MODIFIED", edited(following()), SOON),
    ("a status write", "MODIFIED", running(), Ignore()),
    ("a status write that ends it", "MODIFIED", completed(), Ignore()),
    ("edited", "MODIFIED", edited(running()), Hasten()),
    ("edited after the end", "MODIFIED", edited(completed()), Hasten()),
    ("asked", "MODIFIED", replace(running(), poll_request="now"), Hasten()),
    ("asked after the end", "MODIFIED", replace(completed(), poll_request="now"), Hasten()),
    ("deletion begun", "MODIFIED", leaving(running()), Hasten()),
    ("edited while we were away", None, edited(running()), Hasten()),
    ("edited, seen anew", "ADDED", edited(running()), Hasten()),
    ("gone", "DELETED", running(), Drop()),
    ("gone before it was looked at", "DELETED", following(), Drop()),
    ("gone, edited", "DELETED", edited(running()), Drop()),
    ("listed at start, running", None, running(), Schedule(delay_s=0)),
    ("listed at start, ended", None, completed(), Ignore()),
    ("listed at start, failed", None, failed(), Ignore()),
    ("listed at start, with a time to live", None, completed(ttl_after_finished_s=3630), Schedule(delay_s=30)),
    ("ended, held by us, listed at start", None, replace(completed(), finalizers=(FINALIZER,)), SOON),
]


@pytest.mark.parametrize(("event", "render", "alarm"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_an_event_does_about_the_alarm(event: str | None, render: Render, alarm: Alarm) -> None:
    assert alarm_for(event, render, at(3600)) == alarm


TERMS = SweepTerms(spread_s=60, lease_s=45)
OVERDUE_S = 60 * share_of(following().ref)


@pytest.mark.parametrize(
    ("render", "was_emptied", "due_s"),
    [
        (following(), False, 0),
        (following(), True, 0),
        (running(), False, OVERDUE_S),
        (running(), True, 45 + OVERDUE_S),
        (edited(running()), False, OVERDUE_S),
        (completed(), False, None),
        (completed(), True, None),
        (completed(ttl_after_finished_s=3700), True, 100),
        (completed(ttl_after_finished_s=5), False, OVERDUE_S),
        (checked(running(), RUNNING, at(3600)).render, True, 15.5),
    ],
    ids=[
        "never looked at",
        "never looked at, emptied",
        "overdue",
        "overdue, emptied",
        "edited",
        "ended",
        "ended, emptied",
        "time to live ahead",
        "time to live over",
        "not due yet",
    ],
)
def test_the_alarm_that_a_sweep_adds(render: Render, was_emptied: bool, due_s: float | None) -> None:
    added_s = missing_alarm_s(render, at(3600), TERMS, was_emptied=was_emptied)
    assert added_s == (due_s if due_s is None else pytest.approx(due_s, abs=0.5))


def test_overdue_alarms_are_spread() -> None:
    renders = [replace(running(), ref=Ref("n", "r", str(uuid5(NAMESPACE_OID, str(number))))) for number in range(600)]
    added = [missing_alarm_s(render, at(3600), TERMS, was_emptied=False) or 0.0 for render in renders]
    for start in range(0, 60, 10):
        assert 60 < sum(start <= seconds < start + 10 for seconds in added) < 150
