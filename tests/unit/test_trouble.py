"""Looks that brought nothing: what they say, when the next one comes, and the one way in which a job is lost."""

from datetime import timedelta

import pytest

from builders import (
    NOW,
    PACE,
    RUNNING,
    TERMS,
    asked,
    at,
    canceled,
    checked,
    collected,
    collecting,
    delay_of,
    following,
    leaving,
    reason,
    unanswered,
)
from builders import running as running_render
from sume_operator.core.job import (
    Forbidden,
    Held,
    JobStatus,
    JobUnknown,
    Malformed,
    NoCredentials,
    RateLimited,
    Refusal,
    Reply,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.keys import Answered, KeyView
from sume_operator.core.render import Render
from sume_operator.core.status import Condition, Status, Submission
from sume_operator.core.verdict import Again

Row = tuple[str, Reply, str, float, str]
ROWS: list[Row] = [
    ("401", Unauthorized(), "Unauthorized", 60, "error"),
    ("403", Forbidden(), "Unauthorized", 30, "error"),
    ("429", RateLimited(), "RateLimited", 30, "rate_limited"),
    ("429, Retry-After", RateLimited(retry_after_s=100), "RateLimited", 100, "rate_limited"),
    ("429, Retry-After of a day", RateLimited(retry_after_s=86_400), "RateLimited", 300, "rate_limited"),
    ("408", Unavailable(detail="HTTP 408"), "APIUnavailable", 30, "error"),
    ("503", Unavailable(detail="HTTP 503"), "APIUnavailable", 30, "error"),
    ("503, Retry-After", Unavailable(detail="HTTP 503", retry_after_s=7), "APIUnavailable", 7, "error"),
    ("503, Retry-After 0.1", Unavailable(detail="HTTP 503", retry_after_s=0.1), "APIUnavailable", 2, "error"),
    ("no connection", Unavailable(detail="the connection failed"), "APIUnavailable", 30, "error"),
    ("HTML", Malformed(detail="it is HTML"), "InvalidResponse", 30, "error"),
    ("404 without a body", Malformed(detail="HTTP 404"), "InvalidResponse", 30, "error"),
    ("400", Refusal(http_status=400, code="bad_request"), "InvalidResponse", 30, "error"),
    ("402", Refusal(http_status=402, code="insufficient_credits"), "InvalidResponse", 30, "error"),
    ("422", Refusal(http_status=422), "InvalidResponse", 30, "error"),
    ("404 of Sume's", JobUnknown(), "JobNotFound", 30, "error"),
    ("key on hold", Held(reason="Unauthorized", retry_after_s=45), "Unauthorized", 45, "deferred"),
    ("key on hold for long", Held(reason="RateLimited", retry_after_s=86_400), "RateLimited", 300, "deferred"),
]


@pytest.mark.parametrize(
    ("reply", "synced", "delay_s", "outcome"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_trouble_is_written_down_and_looked_at_again(reply: Reply, synced: str, delay_s: float, outcome: str) -> None:
    render = following()
    verdict = checked(render, reply)
    status = verdict.render.status
    assert reason(verdict.render, "Synced") == f"False/{synced}"
    assert reason(verdict.render, "Succeeded") == f"Unknown/{synced}"
    assert (status.state, status.terminal, verdict.outcome) == ("Pending", False, outcome)
    assert delay_s <= delay_of(verdict) <= min(delay_s * 1.05, PACE.max_s)
    assert status.polling.next_poll_time == NOW + timedelta(seconds=delay_of(verdict))
    assert status.polling.failures == (0 if isinstance(reply, Held) else 1)
    assert (status.polling.count, status.start_time) == (0, None)
    assert status.observed_generation == render.generation
    assert status.message


CREDENTIALS = ["CredentialsNotFound", "CredentialsKeyMissing", "CredentialsInvalid", "NamespaceNotAllowed"]


@pytest.mark.parametrize("why", CREDENTIALS)
def test_a_render_without_a_key_waits(why: str) -> None:
    verdict = checked(running_render(), NoCredentials(reason=why, message="Make it."), at(5))
    assert reason(verdict.render, "Accepted") == f"False/{why}"
    assert reason(verdict.render, "Succeeded") == f"Unknown/{why}"
    assert (verdict.render.status.state, verdict.render.status.message) == ("Processing", "Make it.")
    assert 30 <= delay_of(verdict) <= 31.5
    found = checked(verdict.render, RUNNING, at(40)).render
    assert (reason(found, "Accepted"), reason(found, "Succeeded")) == ("True/Accepted", "Unknown/Processing")


def test_with_a_key_trouble_is_no_longer_about_the_key() -> None:
    render = checked(following(), NoCredentials(reason="CredentialsNotFound", message="m")).render
    render = checked(render, Unavailable(detail="HTTP 500")).render
    assert (reason(render, "Accepted"), reason(render, "Succeeded")) == ("True/Accepted", "Unknown/APIUnavailable")


@pytest.mark.parametrize(
    "reply",
    [Unavailable(detail="x"), Malformed(detail="x"), Forbidden(), RateLimited()],
    ids=lambda r: type(r).__name__,
)
def test_trouble_in_a_row_is_looked_at_later_and_later(reply: Reply) -> None:
    render, delays = running_render(), []
    for _ in range(6):
        verdict = checked(render, reply)
        render = verdict.render
        delays.append(delay_of(verdict))
    for delay_s, expected_s in zip(delays, [30, 60, 120, 240, 300, 300], strict=True):
        assert expected_s <= delay_s <= min(expected_s * 1.05, 300)
    assert render.status.polling.failures == 6
    answered = checked(render, RUNNING)
    assert answered.render.status.polling.failures == 0
    assert delay_of(answered) < 16


def test_while_a_deletion_waits_trouble_is_no_reason_to_wait_for_long() -> None:
    """It waits 50 s at most, and each try may be the one that cancels; but where Sume says how long, that counts."""
    render = leaving(running_render(deletion_policy="Cancel"))
    for _ in range(6):
        verdict = canceled(render, Unavailable(detail="x"))
        render = verdict.render
        assert 10 <= delay_of(verdict) <= 10.5
    assert delay_of(canceled(render, Unavailable(detail="x", retry_after_s=20))) >= 20
    lost = leaving(unanswered())
    assert 10 <= delay_of(asked(lost, Unavailable(detail="x"))) <= 10.5


def test_an_answer_ends_the_trouble() -> None:
    render = checked(running_render(), Unauthorized()).render
    assert reason(checked(render, RUNNING).render, "Synced") == "True/Observed"


def test_trouble_with_the_result_does_not_unlearn_that_the_job_completed() -> None:
    render = collected(collecting(), Unavailable(detail="x"), at(5)).render
    assert render.status.polling.collecting_since == NOW


@pytest.mark.parametrize("reply", [Unauthorized(), Forbidden(), RateLimited(), Malformed(detail="x")])
def test_trouble_with_a_cancel(reply: Reply) -> None:
    verdict = canceled(running_render(cancel=True), reply, at(5))
    assert (verdict.render.status.state, verdict.render.status.cancellation) == ("Processing", None)
    assert isinstance(verdict.next, Again)


# --- JobLost ---

UNKNOWN = JobUnknown(http_status=404)
OTHER = "job_other"


def lost_looks(render: Render, times_s: list[float], key: KeyView) -> Render:
    for seconds in times_s:
        render = checked(render, UNKNOWN, at(seconds), key).render
    return render


def answered_for(job_id: str, seconds: float) -> KeyView:
    return KeyView(answered=(Answered(job_id=job_id, time=at(seconds)),))


def test_a_job_never_seen_is_lost_after_five_looks() -> None:
    nearly = lost_looks(following(), [0.0] * 4, KeyView())
    assert not nearly.status.terminal
    lost = lost_looks(nearly, [1.0], KeyView())
    assert (lost.status.state, lost.status.completion_time) == ("Failed", at(1))
    assert reason(lost, "Succeeded") == "False/JobLost"
    assert reason(lost, "OutputsAvailable") == "False/NoOutputs"
    assert "spec.jobID" in (lost.status.message or "")


TEN_OVER_AN_HOUR = [n * 400.0 for n in range(10)]
SEEN: list[tuple[str, list[float], KeyView, bool]] = [
    ("10 looks, 1 h, another answered", TEN_OVER_AN_HOUR, answered_for(OTHER, 10), True),
    ("10 looks, exactly 1 h", [*[0.0] * 9, 3600.0], answered_for(OTHER, 0), True),
    ("9 looks", TEN_OVER_AN_HOUR[1:], answered_for(OTHER, 500), False),
    ("less than 1 h", [*[0.0] * 20, 3599.0], answered_for(OTHER, 10), False),
    ("no other job answered", TEN_OVER_AN_HOUR, KeyView(), False),
    ("only this one answered", TEN_OVER_AN_HOUR, answered_for("job_0b6f", 10), False),
    ("another answered, but before", TEN_OVER_AN_HOUR, answered_for(OTHER, -1), False),
]


@pytest.mark.parametrize(("times_s", "key", "is_lost"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
@pytest.mark.parametrize("how", ["seen", "asked for by us"])
def test_a_job_known_to_exist_is_not_lost_so_soon(how: str, times_s: list[float], key: KeyView, is_lost: bool) -> None:
    created = Condition(type="Submitted", status="True", reason="Created", message="", last_transition_time=NOW)
    ours = Status(job_id="job_0b6f", submission=Submission(attempts=1), conditions=(created,))
    render = running_render() if how == "seen" else following(followed_job_id=None, status=ours)
    render = lost_looks(render, times_s, key)
    assert render.status.terminal is is_lost
    assert reason(render, "Succeeded") == ("False/JobLost" if is_lost else "Unknown/JobNotFound")


def test_a_seen_job_is_looked_for_at_the_ceiling() -> None:
    verdict = checked(running_render(), UNKNOWN)
    assert delay_of(verdict) == PACE.max_s
    assert (verdict.render.status.state, reason(verdict.render, "Synced")) == ("Processing", "False/JobNotFound")


def test_a_job_never_seen_is_looked_for_later_and_later() -> None:
    render, delays = following(), []
    for _ in range(3):
        verdict = checked(render, UNKNOWN)
        render = verdict.render
        delays.append(delay_of(verdict))
    for delay_s, expected_s in zip(delays, [30, 60, 120], strict=True):
        assert expected_s <= delay_s <= expected_s * 1.05


@pytest.mark.parametrize("between", [RUNNING, JobStatus(word="failed", terminal=False)], ids=["seen", "contradiction"])
def test_looks_in_a_row_only(between: JobStatus) -> None:
    render = lost_looks(following(), [0.0] * 4, KeyView())
    render = checked(render, between).render
    render = lost_looks(render, [0.0] * 8, KeyView())
    assert not render.status.terminal
    assert render.status.polling.streak
    assert render.status.polling.streak.count == 8


def test_network_trouble_in_between_counts_for_nothing() -> None:
    render = lost_looks(following(), [0.0] * 4, KeyView())
    for _ in range(20):
        render = checked(render, Unavailable(detail="x")).render
    assert not render.status.terminal
    assert lost_looks(render, [1.0], KeyView()).status.terminal


def test_a_page_that_is_not_found_is_no_lost_job() -> None:
    render = following()
    for look in range(50):
        render = checked(render, Malformed(detail="HTTP 404 without an error body"), at(look * 1000)).render
    assert not render.status.terminal


def test_the_terms_of_the_tests_are_the_defaults() -> None:
    assert (TERMS.pace.poll_s, TERMS.pace.min_s, TERMS.pace.max_s, TERMS.pace.error_s) == (15, 2, 300, 30)
