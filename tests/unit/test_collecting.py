"""What result reads mean: for a job that has just completed, and for a render that ended long ago."""

from datetime import timedelta
from typing import Any

import pytest

from builders import (
    COMPLETED,
    NOW,
    ONE_VIDEO,
    PACE,
    TERMS,
    at,
    checked,
    collected,
    collecting,
    completed,
    delay_of,
    edited,
    ended,
    reason,
    running,
)
from sume_operator.core.collecting import REFRESH_LOOKS_BORNE, outputs_of
from sume_operator.core.job import (
    Collect,
    Forbidden,
    Found,
    Held,
    JobError,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    NoCredentials,
    RateLimited,
    Refusal,
    Reply,
    Spent,
    Unauthorized,
    Unavailable,
    Usage,
)
from sume_operator.core.step import next_step
from sume_operator.core.verdict import Again, AtOnce

NOT_READY = Refusal(http_status=409, code="job_not_completed")
EMPTY = JobResult()
DAY_S = 24 * 3600


def test_the_end_and_the_outputs_come_together() -> None:
    verdict = collected(collecting(), ONE_VIDEO, at(2))
    status = verdict.render.status
    assert (status.state, status.terminal, status.completion_time) == ("Completed", True, at(2))
    assert [(output.name, output.url) for output in status.outputs] == [("video", "https://media.sume.com/1.mp4")]
    assert reason(verdict.render, "Succeeded") == "True/Completed"
    assert reason(verdict.render, "Finished") == "True/Completed"
    assert reason(verdict.render, "OutputsAvailable") == "True/Collected"
    assert (verdict.next, verdict.outcome) == (AtOnce(), "terminal")
    assert (status.polling.collecting_since, status.polling.next_poll_time) == (None, None)


def test_success_forgets_an_earlier_error() -> None:
    render = checked(running(), JobStatus(word="processing", error=JobError(code="hiccup"))).render
    assert render.status.error
    assert collected(checked(render, COMPLETED).render, ONE_VIDEO).render.status.error is None


def test_the_result_may_know_the_cost() -> None:
    usage = Usage(state="captured", amount="0.4")
    reply = JobResult(found=ONE_VIDEO.found, usage=usage)
    assert collected(collecting(), reply).render.status.usage == usage


GONE = [
    ("404", [(0, JobUnknown(http_status=404))], "ResultGone"),
    ("410", [(0, JobUnknown(http_status=410))], "ResultGone"),
    ("empty three times", [(0, EMPTY), (15, EMPTY), (30, EMPTY)], "NoOutputs"),
    (
        "of no use three times",
        [(n, JobResult(found=(Found(url="http://x/1"),))) for n in range(3)],
        "NoOutputs",
    ),
    ("409 for ten minutes", [(0, NOT_READY), (300, NOT_READY), (600, NOT_READY)], "NoOutputs"),
    ("5xx for a day", [(0, Unavailable(detail="HTTP 500")), (DAY_S, Unavailable(detail="HTTP 500"))], "NoOutputs"),
    ("429 for a day", [(0, RateLimited()), (DAY_S, RateLimited())], "NoOutputs"),
    ("401 for a day", [(0, Unauthorized()), (DAY_S, Unauthorized())], "NoOutputs"),
    ("the key on hold for a day", [(DAY_S, Held(reason="Unauthorized", retry_after_s=60))], "NoOutputs"),
    (
        "empty and 409 in turns for a day",
        [(n * 600, EMPTY if n % 2 else NOT_READY) for n in range(DAY_S // 600 + 1)],
        "NoOutputs",
    ),
]


@pytest.mark.parametrize(("looks", "why"), [row[1:] for row in GONE], ids=[row[0] for row in GONE])
def test_a_completed_job_without_a_result_still_completes(looks: list[tuple[int, Reply]], why: str) -> None:
    render = collecting()
    for seconds, reply in looks[:-1]:
        verdict = collected(render, reply, at(seconds))
        render = verdict.render
        assert not render.status.terminal
        assert isinstance(verdict.next, Again)
    seconds, reply = looks[-1]
    render = collected(render, reply, at(seconds)).render
    assert (render.status.state, render.status.completion_time) == ("Completed", at(seconds))
    assert reason(render, "Succeeded") == "True/Completed"
    assert reason(render, "OutputsAvailable") == f"False/{why}"


PATIENCE: list[tuple[str, list[tuple[float, Reply]]]] = [
    ("empty twice", [(0, EMPTY), (15, EMPTY)]),
    ("empty, 409, empty, 409 ...", [(n, EMPTY if n % 2 else NOT_READY) for n in range(20)]),
    ("409 for less than ten minutes", [(0, NOT_READY), (599, NOT_READY)]),
    ("ten minutes of 409 start with the first one", [(3600, NOT_READY), (4199, NOT_READY)]),
    ("5xx for less than a day", [(DAY_S - 1, Unavailable(detail="HTTP 500"))]),
    ("a refusal that is no 409", [(n, Refusal(http_status=400)) for n in range(0, 3600, 300)]),
    ("no key", [(n, NoCredentials(reason="CredentialsNotFound", message="m")) for n in range(0, 3600, 300)]),
    ("404 without a body", [(n, Malformed(detail="HTTP 404")) for n in range(0, 3600, 300)]),
]


@pytest.mark.parametrize("looks", [row[1] for row in PATIENCE], ids=[row[0] for row in PATIENCE])
def test_a_result_is_waited_for(looks: list[tuple[float, Reply]]) -> None:
    render = collecting()
    for seconds, reply in looks:
        verdict = collected(render, reply, at(seconds))
        render = verdict.render
        assert (render.status.state, render.status.terminal) == ("Processing", False)
        assert isinstance(verdict.next, Again)
    assert collected(render, ONE_VIDEO, at(DAY_S)).render.status.outputs


# --- which outputs are kept, and what they are called ---


def url(number: int) -> str:
    return f"https://media.sume.com/{number}"


NAMES: list[tuple[str, list[Found], list[str]]] = [
    ("by media type", [Found(url=url(1), content_type="video/mp4")], ["video"]),
    ("by kind", [Found(url=url(1), kind="Preview-Image")], ["image"]),
    ("media type before kind", [Found(url=url(1), kind="image", content_type="video/webm")], ["video"]),
    ("neither", [Found(url=url(1), kind="idle-loop")], ["file"]),
    (
        "videos, images, the rest; each in Sume's order",
        [
            Found(url=url(1), kind="audio"),
            Found(url=url(2), kind="image"),
            Found(url=url(3), kind="video"),
            Found(url=url(4)),
            Found(url=url(5), kind="video"),
        ],
        ["video", "video-2", "image", "audio", "file"],
    ),
]


@pytest.mark.parametrize(("items", "names"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_names_of_outputs(items: list[Found], names: list[str]) -> None:
    outputs, dropped = outputs_of(tuple(items))
    assert ([output.name for output in outputs], dropped) == (names, 0)


def test_outputs_keep_their_order_within_a_family() -> None:
    outputs, _ = outputs_of(tuple(Found(url=url(n), kind=kind) for n, kind in enumerate(["image", "video"] * 3)))
    assert [output.url for output in outputs] == [url(n) for n in (1, 3, 5, 0, 2, 4)]


@pytest.mark.parametrize(
    ("bad", "count"),
    [
        ([Found(url="http://media.sume.com/1.mp4")], 1),
        ([Found(url="data:video/mp4;base64,AAAA")], 1),
        ([Found(url="ftp://x/1"), Found(url="//x/1")], 2),
        ([Found(url="https://x/" + "1" * 8192)], 1),
    ],
    ids=["http", "data", "two", "too long"],
)
def test_what_does_not_fit_is_dropped_whole_and_said(bad: list[Found], count: int) -> None:
    render = collected(collecting(), JobResult(found=(*bad, *ONE_VIDEO.found))).render
    assert [output.name for output in render.status.outputs] == ["video"]
    assert f"{count} more did not fit" in (render.status.message or "")


def test_surplus_outputs_are_dropped_and_said() -> None:
    render = collected(collecting(), JobResult(found=tuple(Found(url=url(n)) for n in range(71)))).render
    assert len(render.status.outputs) == 64
    assert "7 more did not fit" in (render.status.message or "")


def test_the_longest_url_that_fits_is_whole() -> None:
    address = "https://x/?" + "1" * (8192 - 11)
    outputs, dropped = outputs_of((Found(url=address),))
    assert (outputs[0].url, dropped) == (address, 0)


# --- fresh outputs of an ended render ---

FRESH = JobResult(found=(Found(url="https://media.sume.com/1.mp4?sig=2", content_type="video/mp4"),))


def test_asked_anew_a_completed_render_gets_fresh_outputs_and_nothing_else() -> None:
    before = edited(completed(), poll_request="again", generation=1)
    verdict = collected(before, FRESH, at(5000))
    status = verdict.render.status
    assert [output.url for output in status.outputs] == [FRESH.found[0].url]
    assert (status.last_handled_poll_request, verdict.next) == ("again", AtOnce())
    assert ended(status) == ended(before.status)
    assert status.conditions == before.status.conditions


@pytest.mark.parametrize("reply", [EMPTY, JobResult(found=(Found(url="http://x/1"),))], ids=["empty", "of no use"])
def test_a_refresh_that_finds_nothing_keeps_the_old_outputs(reply: JobResult) -> None:
    verdict = collected(edited(completed(), poll_request="again"), reply, at(5000))
    assert verdict.render.status.outputs == completed().status.outputs
    assert verdict.next == AtOnce()


TROUBLE: list[Reply] = [
    Unavailable(detail="HTTP 500"),
    Unauthorized(),
    Forbidden(),
    RateLimited(retry_after_s=9000),
    Malformed(detail="it is HTML"),
    NOT_READY,
    JobUnknown(),
    NoCredentials(reason="CredentialsNotFound", message="m"),
]


@pytest.mark.parametrize("reply", TROUBLE, ids=lambda reply: type(reply).__name__)
def test_trouble_during_a_refresh_is_borne_so_often_and_changes_nothing(reply: Reply) -> None:
    before = render = edited(completed(), poll_request="again")
    for look in range(1, 5):
        verdict = collected(render, reply, at(5000))
        render = verdict.render
        assert render.status.polling.failures == look
        assert PACE.min_s <= delay_of(verdict) <= PACE.max_s
        assert render.status.polling.next_poll_time == at(5000) + timedelta(seconds=delay_of(verdict))
        assert ended(render.status) == ended(before.status)
        assert render.status.outputs == before.status.outputs
    verdict = collected(render, reply, at(9000))
    assert (verdict.next, verdict.render.status.polling.failures) == (AtOnce(), 0)
    assert verdict.render.status.polling.next_poll_time is None
    assert (ended(verdict.render.status), verdict.render.status.outputs) == (
        ended(before.status),
        before.status.outputs,
    )


@pytest.mark.parametrize(
    "reply", [Held(reason="RateLimited", retry_after_s=90), Spent(retry_after_s=90)], ids=["Held", "Spent"]
)
def test_a_refresh_for_which_nothing_was_sent_is_still_to_be_done(reply: Reply) -> None:
    before = render = edited(completed(), poll_request="again")
    for _ in range(REFRESH_LOOKS_BORNE + 2):
        verdict = collected(render, reply, at(5000))
        render = verdict.render
        assert (delay_of(verdict), render.status.polling.failures) == (90, 1)
        assert render.status.polling.next_poll_time == at(5090)
        assert isinstance(next_step(render, at(5090), TERMS), Collect)
        assert (ended(render.status), render.status.outputs) == (ended(before.status), before.status.outputs)


def test_a_refresh_after_trouble_starts_counting_anew() -> None:
    render = collected(edited(completed(), poll_request="again"), Unauthorized(), at(10)).render
    render = collected(render, FRESH, at(60)).render
    assert (render.status.polling.failures, render.status.polling.next_poll_time) == (0, None)
    assert render.status.outputs[0].url == FRESH.found[0].url


def test_collecting_starts_when_the_word_comes() -> None:
    status: Any = collecting().status
    assert (status.polling.collecting_since, status.polling.streak) == (NOW, None)
