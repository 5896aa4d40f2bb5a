"""Which statuses are worth a write."""

from dataclasses import replace

import pytest

from builders import (
    FAILED,
    NOW,
    QUEUED,
    RUNNING,
    TERMS,
    at,
    canceled,
    checked,
    completed,
    edited,
    following,
    running,
)
from sume_operator.core.job import CancelAccepted, Held, Unauthorized
from sume_operator.core.noting import noted
from sume_operator.core.render import Render
from sume_operator.core.status import Status
from sume_operator.core.step import OBSERVED, SUSPENDED, Note
from sume_operator.core.verdict import is_worth_writing

HELD = Held(reason="Unauthorized", retry_after_s=30)


def suspended() -> Render:
    return noted(edited(running(), suspend=True), Note(why=SUSPENDED), NOW, TERMS).render


def on_hold() -> Render:
    return checked(running(), HELD).render


def with_a_poll(render: Render) -> Render:
    polling = replace(render.status.polling, next_poll_time=NOW)
    return render.with_status(replace(render.status, polling=polling))


CHANGES: list[tuple[str, Render, Render, bool]] = [
    ("first look", following(), running(), True),
    ("another state", checked(following(), QUEUED).render, running(), True),
    ("the end", running(), checked(running(), FAILED).render, True),
    ("trouble", running(), checked(running(), Unauthorized()).render, True),
    ("more trouble", checked(running(), HELD).render, checked(running(), Unauthorized()).render, True),
    ("the key is on hold", running(), checked(running(), HELD).render, True),
    ("the key is still on hold", on_hold(), checked(on_hold(), HELD, at(60)).render, False),
    ("a cancel", running(), canceled(running(), CancelAccepted()).render, True),
    ("an edit", completed(), noted(edited(completed()), Note(why=OBSERVED), NOW, TERMS).render, True),
    ("suspended", edited(running(), suspend=True), suspended(), True),
    ("no poll any more", with_a_poll(suspended()), suspended(), True),
    ("nothing at all", running(), running(), False),
    ("nothing at all, ended", completed(), completed(), False),
]


@pytest.mark.parametrize("refresh_s", [0.0, 3600.0])
@pytest.mark.parametrize(("before", "after", "worth"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_is_always_written(before: Render, after: Render, worth: bool, refresh_s: float) -> None:
    assert is_worth_writing(before.status, after.status, refresh_s) is worth


@pytest.mark.parametrize(
    ("seconds", "refresh_s", "worth"),
    [(15, 0, True), (15, 16, False), (15, 15, True), (15, 3600, False), (4000, 3600, True)],
)
def test_an_unchanged_answer_is_written_so_often(seconds: float, refresh_s: float, worth: bool) -> None:
    before = running()
    after = checked(before, RUNNING, at(seconds)).render
    assert is_worth_writing(before.status, after.status, refresh_s) is worth


def test_nothing_is_not_worth_a_write() -> None:
    assert not is_worth_writing(Status(), Status(), 0)
