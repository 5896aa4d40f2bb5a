"""What is to be done now, and when: the rules as tables."""

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    API_URL,
    JOB,
    NOW,
    PACE,
    RUNNING,
    TERMS,
    at,
    canceled,
    checked,
    collected,
    collecting,
    completed,
    edited,
    failed,
    following,
    leaving,
    requesting,
    running,
    submit_of,
)
from sume_operator.core.job import Cancel, CancelAccepted, Check, Collect, NoCredentials, Refusal, Unauthorized
from sume_operator.core.noting import noted
from sume_operator.core.pace import Terms
from sume_operator.core.render import FINALIZER, Render
from sume_operator.core.status import Status
from sume_operator.core.step import (
    NEVER_ASKED,
    OBSERVED,
    SUSPENDED,
    WRONG_ENDPOINT,
    Expire,
    Note,
    Rest,
    SetFinalizer,
    Sleep,
    Step,
    deadline_has_passed,
    expiry_time,
    first_due,
    next_step,
    wants_finalizer,
)

CHECK, COLLECT, CANCEL = Check(job_id=JOB), Collect(job_id=JOB), Cancel(job_id=JOB)
ELSEWHERE = Terms(pace=PACE, api_url="https://elsewhere.example/v1")
HELD_BACK: dict[str, Any] = {"finalizers": (FINALIZER,), "deletion_policy": "Cancel"}


def suspended(render: Render | None = None) -> Render:
    """Suspended, and written down as such."""
    before = edited(render or running(), suspend=True)
    return noted(before, Note(why=SUSPENDED), NOW, TERMS).render


def accepted(render: Render) -> Render:
    return canceled(render, CancelAccepted()).render


def refused(render: Render) -> Render:
    return canceled(render, Refusal(http_status=409)).render


def after_the_deadline() -> Render:
    """A look after the deadline has shown the job still running."""
    return checked(running(active_deadline_s=60, **HELD_BACK), RUNNING, at(61)).render


LIVE: list[tuple[str, Render, Step]] = [
    ("new, follows a job", following(), CHECK),
    ("new, asks for a job", requesting(), submit_of(requesting())),
    ("asks for a job, suspended", requesting(suspend=True), Note(why=SUSPENDED)),
    ("asks for a job, canceled", requesting(cancel=True), Note(why=NEVER_ASKED)),
    ("running", running(), CHECK),
    ("completed at Sume", collecting(), COLLECT),
    # suspend
    ("to be suspended", edited(running(), suspend=True), Note(why=SUSPENDED)),
    ("new and suspended", following(suspend=True), Note(why=SUSPENDED)),
    ("suspended", suspended(), Rest()),
    ("suspended while outputs are collected", suspended(collecting()), Rest()),
    ("suspended without a key", suspended(checked(running(), NoCredentials(reason="x", message="m")).render), Rest()),
    ("suspended under a bad key", suspended(checked(running(), Unauthorized()).render), Rest()),
    ("suspended, then answered", checked(suspended(), RUNNING).render, Note(why=SUSPENDED)),
    ("suspended and edited", edited(suspended(), ttl_after_finished_s=5), Note(why=SUSPENDED)),
    ("suspended and asked", replace(suspended(), poll_request="x"), Note(why=SUSPENDED)),
    ("resumed", edited(suspended(), suspend=False), CHECK),
    ("resumed while collecting", edited(suspended(collecting()), suspend=False), COLLECT),
    ("cancel wins over suspend", edited(suspended(), cancel=True), CANCEL),
    ("canceled and suspended goes on", refused(edited(running(), cancel=True, suspend=True)), CHECK),
    ("deletion wins over suspend", leaving(suspended(running(deletion_policy="Cancel"))), CANCEL),
    ("suspend wins over the deadline", edited(after_the_deadline(), suspend=True), Note(why=SUSPENDED)),
    # cancel
    ("to be canceled", edited(running(), cancel=True), CANCEL),
    ("to be canceled before the first look", following(cancel=True), CANCEL),
    ("cancel accepted", accepted(edited(running(), cancel=True)), CHECK),
    ("cancel refused", refused(edited(running(), cancel=True)), CHECK),
    ("too late to cancel", edited(collecting(), cancel=True), COLLECT),
    # finalizer
    ("deletion shall cancel", following(deletion_policy="Cancel"), SetFinalizer(present=True)),
    ("deletion shall cancel, suspended", suspended(running(deletion_policy="Cancel")), SetFinalizer(present=True)),
    ("deletion shall cancel, all set", following(**HELD_BACK), CHECK),
    ("deletion shall no longer cancel", following(finalizers=(FINALIZER,)), SetFinalizer(present=False)),
    ("nothing left to cancel", collecting(**HELD_BACK), SetFinalizer(present=False)),
    ("a finalizer and no job", requesting(finalizers=(FINALIZER,)), SetFinalizer(present=False)),
    # deletion
    ("deleted", leaving(running(deletion_policy="Cancel")), CANCEL),
    ("deleted, cancel accepted", accepted(leaving(running(deletion_policy="Cancel"))), SetFinalizer(present=False)),
    ("deleted, cancel refused", refused(leaving(running(deletion_policy="Cancel"))), SetFinalizer(present=False)),
    ("deleted, nothing left to cancel", leaving(collecting(deletion_policy="Cancel")), SetFinalizer(present=False)),
    ("deleted, policy Orphan", leaving(running(deletion_policy="Orphan")), SetFinalizer(present=False)),
    ("deleted, without a job", leaving(requesting()), SetFinalizer(present=False)),
    ("deleted, held by others", running(deletion_policy="Cancel", deletion_time=NOW, finalizers=("x/y",)), CHECK),
    # deadline
    ("after the deadline, deletion cancels", after_the_deadline(), CANCEL),
    ("the clock alone decides nothing", running(active_deadline_s=1), CHECK),
]  # fmt: skip


@pytest.mark.parametrize(("render", "step"), [row[1:] for row in LIVE], ids=[row[0] for row in LIVE])
def test_the_next_step_of_a_live_render(render: Render, step: Step) -> None:
    assert next_step(render, at(62), TERMS) == step


@pytest.mark.parametrize(
    ("render", "step"),
    [
        (running(), Note(why=WRONG_ENDPOINT)),
        (collecting(), Note(why=WRONG_ENDPOINT)),
        (edited(running(), cancel=True), Note(why=WRONG_ENDPOINT)),
        (leaving(running(deletion_policy="Cancel")), Note(why=WRONG_ENDPOINT)),
        (suspended(), Rest()),
        (following(), CHECK),  # not bound to a base yet
    ],
    ids=["running", "collecting", "to be canceled", "deleted", "suspended", "never looked at"],
)
def test_a_job_on_another_base_is_not_asked_for(render: Render, step: Step) -> None:
    assert next_step(render, at(62), ELSEWHERE) == step


def asked_anew(render: Render) -> Render:
    return replace(render, poll_request="again")


def refreshing() -> Render:
    """A refresh of the outputs that has met trouble."""
    return collected(asked_anew(completed()), Unauthorized(), at(60)).render


ENDED: list[tuple[str, Render, Step]] = [
    ("completed", completed(), Rest()),
    ("failed", failed(), Rest()),
    ("edited after the end", edited(completed()), Note(why=OBSERVED)),
    ("held by our finalizer", replace(completed(), finalizers=(FINALIZER, "x/y")), SetFinalizer(present=False)),
    ("held by others", replace(completed(), finalizers=("x/y",)), Rest()),
    ("fresh outputs asked for", asked_anew(completed()), COLLECT),
    ("nothing to refresh", asked_anew(failed()), Note(why=OBSERVED)),
    ("refresh in trouble", refreshing(), COLLECT),
    ("cancel after the end", edited(completed(), cancel=True), Note(why=OBSERVED)),
    ("suspend after the end", noted(edited(completed(), suspend=True), Note(why=OBSERVED), NOW, TERMS).render, Rest()),
    ("time to live", completed(ttl_after_finished_s=100), Sleep(delay_s=40)),
    ("time to live over", completed(ttl_after_finished_s=60), Expire()),
    ("time to live of 0", failed(ttl_after_finished_s=0), Expire()),
    ("time to live over, being deleted", replace(completed(ttl_after_finished_s=0), deletion_time=NOW), Rest()),
    ("time to live ahead, being deleted", replace(completed(ttl_after_finished_s=99), deletion_time=NOW), Rest()),
    ("time to live and an edit", edited(completed(ttl_after_finished_s=99)), Note(why=OBSERVED)),
]  # fmt: skip


@pytest.mark.parametrize(("render", "step"), [row[1:] for row in ENDED], ids=[row[0] for row in ENDED])
def test_the_next_step_of_an_ended_render(render: Render, step: Step) -> None:
    assert next_step(render, at(60), TERMS) == step


def test_fresh_outputs_come_from_the_base_that_made_them() -> None:
    assert next_step(asked_anew(completed()), at(60), ELSEWHERE) == Note(why=OBSERVED)
    assert next_step(refreshing(), at(60), ELSEWHERE) == Note(why=OBSERVED)
    assert completed().status.api_url == API_URL


def due_at(seconds: float) -> Render:
    render = running()
    polling = replace(render.status.polling, next_poll_time=at(seconds))
    return render.with_status(replace(render.status, polling=polling))


FIRST_DUE: list[tuple[str, Render, float | None]] = [
    ("new", following(), 0),
    ("new and suspended", following(suspend=True), 0),
    ("asks for a job", requesting(), 0),
    ("running", due_at(70), 60),
    ("running and overdue", due_at(1), 0),
    ("edited", edited(running()), 0),
    ("asked", replace(running(), poll_request="now"), 0),
    ("suspended", suspended(), None),
    ("suspended, and the finalizer was taken", suspended(running(deletion_policy="Cancel")), 0),
    ("suspended, being deleted", leaving(suspended()), 0),
    ("suspended, to be canceled", edited(suspended(), cancel=True), 0),
    ("completed", completed(), None),
    ("failed", failed(), None),
    ("ended, edited", edited(completed()), 0),
    ("ended, asked", asked_anew(completed()), 0),
    ("ended, held by us", replace(completed(), finalizers=(FINALIZER,)), 0),
    ("time to live ahead", completed(ttl_after_finished_s=100), 90),
    ("time to live over", completed(ttl_after_finished_s=5), 0),
    ("time to live over, being deleted", replace(completed(ttl_after_finished_s=5), deletion_time=NOW), None),
    ("refresh in trouble", refreshing(), 80),
]  # fmt: skip


@pytest.mark.parametrize(("render", "due_s"), [row[1:] for row in FIRST_DUE], ids=[row[0] for row in FIRST_DUE])
def test_when_a_render_without_an_alarm_is_due(render: Render, due_s: float | None) -> None:
    assert first_due(render, at(10)) == due_s


@pytest.mark.parametrize(
    ("render", "wanted"),
    [
        (following(), False),
        (following(deletion_policy="Orphan"), False),
        (following(deletion_policy="Cancel"), True),
        (running(deletion_policy="Cancel"), True),
        (requesting(), False),
        (requesting(status=Status(job_id=JOB)), True),
        (requesting(deletion_policy="Orphan", status=Status(job_id=JOB)), False),
        (collecting(deletion_policy="Cancel"), False),
        (completed(deletion_policy="Cancel"), False),
        (refused(running(deletion_policy="Cancel", cancel=True)), True),
        (refused(leaving(running(deletion_policy="Cancel"))), False),
    ],
    ids=[
        "followed",
        "followed, Orphan",
        "followed, Cancel",
        "running, Cancel",
        "asks for a job",
        "asked for",
        "asked for, Orphan",
        "collecting",
        "completed",
        "cancel refused",
        "deleted, cancel refused",
    ],
)
def test_when_deletion_has_to_wait_for_us(render: Render, wanted: bool) -> None:
    assert wants_finalizer(render) is wanted


@pytest.mark.parametrize(
    ("limit_s", "last_look_s", "passed"),
    [(None, 10**6, False), (60, 59, False), (60, 60, True), (60, 61, True), (2**63 - 1, 10**9, False)],
)
def test_the_deadline(limit_s: int | None, last_look_s: float, passed: bool) -> None:
    render = running()
    polling = replace(render.status.polling, last_poll_time=at(last_look_s))
    render = replace(render, active_deadline_s=limit_s, status=replace(render.status, polling=polling))
    assert deadline_has_passed(render) is passed


def test_the_deadline_of_a_render_never_seen() -> None:
    assert not deadline_has_passed(following(active_deadline_s=1))


def test_when_an_ended_render_deletes_itself() -> None:
    assert expiry_time(completed(ttl_after_finished_s=60)) == at(60)
    assert expiry_time(completed()) is None
    assert expiry_time(running(ttl_after_finished_s=60)) is None
