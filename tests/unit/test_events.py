"""Which events a change of status calls for."""

import pytest

from builders import (
    CANCELED,
    FAILED,
    NOW,
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
    reason,
    running,
)
from sume_operator.core.events import Event, cancel_abandoned, events_between, ttl_expired
from sume_operator.core.job import (
    CancelAccepted,
    Forbidden,
    Found,
    JobError,
    JobResult,
    JobStatus,
    JobUnknown,
    NoCredentials,
    Refusal,
    Reply,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.render import Render

NO_SECRET = NoCredentials(reason="CredentialsNotFound", message="Secret x does not exist.")
NO_SECRET_KEY = NoCredentials(reason="CredentialsKeyMissing", message="Secret x has no key y.")


def twice(reply: Reply) -> tuple[Render, Render]:
    """A render after one such answer, and after another."""
    once = checked(running(), reply).render
    return once, checked(once, reply).render


def refreshed() -> Render:
    asked = edited(completed(), poll_request="x")
    return collected(asked, JobResult(found=(Found(url="https://x/2"),))).render


def refused() -> Render:
    return canceled(running(), Refusal(http_status=409, message="It runs.")).render


def unclear() -> Render:
    return checked(running(), JobStatus(word=None, terminal=True)).render


def lost() -> Render:
    render = following()
    for _ in range(5):
        render = checked(render, JobUnknown()).render
    return render


ROWS: list[tuple[str, Render, Render, list[str]]] = [
    ("queued", following(), checked(following(), QUEUED).render, ["Normal RenderQueued"]),
    ("processing", checked(following(), QUEUED).render, running(), ["Normal RenderProcessing"]),
    ("processing at once", following(), running(), ["Normal RenderProcessing"]),
    ("still processing", running(), checked(running(), RUNNING).render, []),
    ("an unknown word", running(), checked(running(), JobStatus(word="baking")).render, []),
    ("completed", running(), completed(), ["Normal RenderCompleted"]),
    ("completed at the first look", following(), completed(), ["Normal RenderCompleted"]),
    ("failed", running(), failed(), ["Warning RenderFailed"]),
    ("refused", running(), checked(running(), JobStatus(word="nsfw")).render, ["Warning RenderFailed"]),
    ("outcome unknown", running(), unclear(), ["Warning RenderFailed"]),
    ("canceled", running(), checked(running(), CANCELED).render, ["Normal RenderCanceled"]),
    ("given up", running(), checked(running(active_deadline_s=1), RUNNING, at(9)).render, ["Warning DeadlineExceeded"]),
    ("lost", following(), lost(), ["Warning JobLost"]),
    ("no key", running(), checked(running(), NO_SECRET).render, ["Warning CredentialsUnavailable"]),
    ("still no key", *twice(NO_SECRET), []),
    ("no key any more", twice(NO_SECRET)[0], twice(NO_SECRET_KEY)[0], ["Warning CredentialsUnavailable"]),
    ("401", running(), checked(running(), Unauthorized()).render, ["Warning APIUnauthorized"]),
    ("403", running(), checked(running(), Forbidden()).render, ["Warning APIUnauthorized"]),
    ("still 401", *twice(Unauthorized()), []),
    ("no answer", running(), checked(running(), Unavailable(detail="x")).render, []),
    ("cancel refused", running(), refused(), ["Warning CancelRefused"]),
    ("cancel accepted", running(), canceled(running(), CancelAccepted()).render, []),
    ("fresh outputs", completed(), refreshed(), []),
]


@pytest.mark.parametrize(("before", "after", "told"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_is_told(before: Render, after: Render, told: list[str]) -> None:
    assert [f"{event.type} {event.reason}" for event in events_between(before.status, after)] == told


@pytest.mark.parametrize("render", [row[2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_nothing_new_nothing_told(render: Render) -> None:
    assert events_between(render.status, render) == ()


def test_a_repeat_of_one_transition_has_the_same_key() -> None:
    """Two pollers that both saw it make one event."""
    once, twice = checked(running(), FAILED, at(5)).render, checked(running(), FAILED, at(6)).render
    assert events_between(running().status, once)[0].key == events_between(running().status, twice)[0].key


def test_a_second_401_after_an_answer_is_told_again() -> None:
    first = checked(running(), Unauthorized(), at(5)).render
    answered = checked(first, RUNNING, at(60)).render
    second = checked(answered, Unauthorized(), at(90)).render
    told = events_between(running().status, first) + events_between(answered.status, second)
    assert len({event.key for event in told}) == 2


def test_messages_name_the_job_and_the_reason() -> None:
    render = checked(running(), JobStatus(word="failed", error=JobError(message="Out of luck."))).render
    assert events_between(running().status, render)[0].message == "Job job_0b6f: The job failed: Out of luck."
    silent = canceled(running(), Refusal(http_status=409)).render
    assert events_between(running().status, silent)[0].message == ("Sume did not cancel job job_0b6f: no reason given")
    assert reason(render, "Succeeded") == "False/JobFailed"


def test_no_event_holds_an_output() -> None:
    signed = JobResult(found=(Found(url="https://media.sume.com/1.mp4?sig=SIGNATURE"),))
    render = collected(collecting(), signed).render
    told = events_between(running().status, render)
    assert [event.reason for event in told] == ["RenderCompleted"]
    assert "media.sume.com" not in str(told)


def test_what_is_told_before_an_object_goes() -> None:
    assert ttl_expired(completed(ttl_after_finished_s=60)) == Event(
        type="Normal",
        reason="TTLExpired",
        message="Deleted 60 s after its end (ttlSecondsAfterFinished).",
        key="ttl",
    )
    abandoned = cancel_abandoned(edited(running(), deletion_time=NOW))
    assert (abandoned.type, abandoned.reason) == ("Warning", "CancelAbandoned")
    assert "job_0b6f" in abandoned.message
