"""The table of conditions: what each says, which reason Succeeded names, and when a condition's time moves."""

from dataclasses import replace

import pytest

from builders import (
    COMPLETED,
    ONE_VIDEO,
    QUEUED,
    RUNNING,
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
    reason,
    requesting,
    running,
)
from sume_operator.core.conditions import MAX_MESSAGE_CHARS, Says, initial, with_conditions
from sume_operator.core.job import (
    CancelAccepted,
    Held,
    JobStatus,
    JobUnknown,
    NoCredentials,
    Refusal,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.render import Render
from sume_operator.core.status import Status

TYPES = ["Accepted", "Submitted", "Synced", "OutputsAvailable", "Succeeded", "Finished"]
NO_KEY = NoCredentials(reason="CredentialsNotFound", message="m")


def test_what_a_new_render_says() -> None:
    said = {kind: f"{says.status}/{says.reason}" for kind, says in initial(following()).items()}
    assert said == {
        "Accepted": "Unknown/Pending",
        "Submitted": "True/Adopted",
        "Synced": "Unknown/NotObservedYet",
        "OutputsAvailable": "Unknown/NotCollected",
    }
    assert initial(requesting())["Submitted"].reason == "NotSubmitted"


MANY = [following(), running(), collecting(), completed(), failed(), checked(following(), Unauthorized()).render]


@pytest.mark.parametrize("render", MANY[1:], ids=["running", "collecting", "completed", "failed", "401"])
def test_all_six_are_written_together(render: Render) -> None:
    assert [condition.type for condition in render.status.conditions] == TYPES
    finished = render.status.condition("Finished")
    assert finished
    assert (finished.status == "True") is render.status.terminal


@pytest.mark.parametrize("generation", [1, 2, 77])
def test_each_speaks_of_the_generation_that_was_looked_at(generation: int) -> None:
    render = checked(edited(running(), generation=generation), RUNNING, at(9)).render
    assert {condition.observed_generation for condition in render.status.conditions} == {generation}
    assert render.status.observed_generation == generation


BLOCKING: list[tuple[str, Render, str]] = [
    ("queued", checked(following(), QUEUED).render, "Queued"),
    ("processing", running(), "Processing"),
    ("an unknown word", checked(following(), JobStatus(word="baking")).render, "Processing"),
    ("collecting", collecting(), "Processing"),
    ("never answered", checked(following(), Held(reason="RateLimited", retry_after_s=5)).render, "RateLimited"),
    ("no key", checked(running(), NO_KEY).render, "CredentialsNotFound"),
    ("no key before trouble", checked(checked(running(), Unauthorized()).render, NO_KEY).render, "CredentialsNotFound"),
    ("trouble", checked(running(), Unavailable(detail="x")).render, "APIUnavailable"),
    ("trouble before collecting", collected(collecting(), Unauthorized()).render, "Unauthorized"),
    ("not found", checked(running(), JobUnknown()).render, "JobNotFound"),
    ("suspended before all else", checked(running(suspend=True), NO_KEY).render, "Suspended"),
    ("suspended before trouble", checked(running(suspend=True), Unauthorized()).render, "Suspended"),
    ("cancel before suspend", checked(running(suspend=True, cancel=True), RUNNING).render, "Canceling"),
    ("canceling", checked(running(cancel=True), RUNNING).render, "Canceling"),
    ("cancel accepted", canceled(running(cancel=True), CancelAccepted()).render, "Canceling"),
    ("cancel refused", canceled(running(cancel=True), Refusal(http_status=409)).render, "Processing"),
    ("trouble before canceling", canceled(running(cancel=True), Unauthorized()).render, "Unauthorized"),
    ("completed before it could be canceled", checked(running(cancel=True), COMPLETED).render, "Processing"),
    ("leaving", checked(leaving(running()), RUNNING).render, "Processing"),
]


@pytest.mark.parametrize(("render", "why"), [row[1:] for row in BLOCKING], ids=[row[0] for row in BLOCKING])
def test_succeeded_names_what_a_live_render_waits_for(render: Render, why: str) -> None:
    assert reason(render, "Succeeded") == f"Unknown/{why}"
    assert reason(render, "Finished") == "False/Active"
    succeeded = render.status.condition("Succeeded")
    assert succeeded
    assert render.status.message == succeeded.message != ""


@pytest.mark.parametrize("state", ["Pending", "Queued", "Processing", "Unknown"])
def test_every_state_has_words(state: str) -> None:
    status = with_conditions(following(), Status(state=state), at(0), {})
    succeeded = status.condition("Succeeded")
    assert succeeded
    assert succeeded.message


def test_an_unchanged_truth_keeps_its_time() -> None:
    first = checked(following(), Unauthorized(), at(0)).render
    second = checked(first, Unavailable(detail="x"), at(60)).render
    third = checked(second, RUNNING, at(120)).render
    times = [r.status.condition("Synced").last_transition_time for r in (first, second, third)]  # type: ignore[union-attr]
    assert times == [at(0), at(0), at(120)]


def test_what_was_learnt_stays() -> None:
    render = collected(checked(collecting(), NO_KEY).render, ONE_VIDEO, at(5)).render
    assert [reason(render, kind) for kind in TYPES] == [
        "True/Accepted",
        "True/Adopted",
        "True/Observed",
        "True/Collected",
        "True/Completed",
        "True/Completed",
    ]


def test_conditions_of_others_are_not_carried_along() -> None:
    foreign = replace(running().status.conditions[0], type="Foreign")
    render = running().with_status(replace(running().status, conditions=(foreign,)))
    assert [c.type for c in checked(render, RUNNING).render.status.conditions] == TYPES


def test_words_are_cut_to_the_schema() -> None:
    says = Says(status="False", reason="Unauthorized", message="x" * 5000)
    status = with_conditions(following(), Status(), at(0), {"Synced": says}, says)
    assert max(len(condition.message) for condition in status.conditions) == MAX_MESSAGE_CHARS
