"""What status reads and cancels mean for a render that goes on, and how one ends: the rules as tables."""

from typing import Any

import pytest

from builders import (
    CANCELED,
    COMPLETED,
    FAILED,
    JOB,
    NOW,
    ONE_VIDEO,
    PACE,
    QUEUED,
    RUNNING,
    TERMS,
    at,
    canceled,
    checked,
    collected,
    completed,
    delay_of,
    edited,
    following,
    leaving,
    reason,
    requesting,
    running,
)
from sume_operator.core.job import (
    Cancel,
    CancelAccepted,
    Check,
    JobError,
    JobStatus,
    JobUnknown,
    Refusal,
    Unavailable,
    Usage,
)
from sume_operator.core.noting import noted
from sume_operator.core.render import Render
from sume_operator.core.status import Cancellation
from sume_operator.core.step import (
    NEVER_ASKED,
    OBSERVED,
    SUBMISSIONS_DISABLED,
    SUSPENDED,
    WRONG_ENDPOINT,
    Note,
    next_step,
)
from sume_operator.core.verdict import Again, AtOnce, Never, Verdict

# --- words ---

GOING_ON = [
    ("queued", "Queued", "Unknown/Queued"),
    ("processing", "Processing", "Unknown/Processing"),
    ("running", "Processing", "Unknown/Processing"),
    ("  QuEuEd\n", "Queued", "Unknown/Queued"),
    ("RUNNING", "Processing", "Unknown/Processing"),
    ("baking", "Unknown", "Unknown/Processing"),
]


@pytest.mark.parametrize("terminal", [False, None], ids=["terminal: false", "no terminal"])
@pytest.mark.parametrize(("word", "state", "succeeded"), GOING_ON, ids=[row[0] for row in GOING_ON])
def test_a_job_that_goes_on(word: str, state: str, succeeded: str, terminal: bool | None) -> None:
    verdict = checked(following(), JobStatus(word=word, terminal=terminal))
    status = verdict.render.status
    assert (status.state, status.terminal, status.completion_time) == (state, False, None)
    assert status.sume_status == word.strip()
    assert (status.start_time, status.api_url, status.job_id) == (NOW, TERMS.api_url, "job_0b6f")
    assert (status.polling.count, status.polling.failures, status.polling.last_poll_time) == (1, 0, NOW)
    assert status.polling.next_poll_time == at(delay_of(verdict))
    assert reason(verdict.render, "Succeeded") == succeeded
    assert reason(verdict.render, "Finished") == "False/Active"
    assert reason(verdict.render, "Synced") == "True/Observed"
    assert reason(verdict.render, "Accepted") == "True/Accepted"
    assert reason(verdict.render, "OutputsAvailable") == "Unknown/NotCollected"


ENDS = [
    ("failed", "Failed", "False/JobFailed"),
    ("error", "Failed", "False/JobFailed"),
    ("errored", "Failed", "False/JobFailed"),
    ("expired", "Failed", "False/JobFailed"),
    ("nsfw", "Failed", "False/ContentPolicyRejected"),
    (" NSFW ", "Failed", "False/ContentPolicyRejected"),
    ("\tFAILED ", "Failed", "False/JobFailed"),
    ("canceled", "Canceled", "False/Canceled"),
    ("Cancelled", "Canceled", "False/Canceled"),
]


@pytest.mark.parametrize("terminal", [True, None], ids=["terminal: true", "no terminal"])
@pytest.mark.parametrize(("word", "state", "succeeded"), ENDS, ids=[row[0] for row in ENDS])
def test_a_job_that_ended_without_outputs(word: str, state: str, succeeded: str, terminal: bool | None) -> None:
    verdict = checked(running(), JobStatus(word=word, terminal=terminal), at(60))
    status = verdict.render.status
    assert (status.state, status.terminal, status.completion_time) == (state, True, at(60))
    assert (verdict.next, verdict.outcome) == (AtOnce(), "terminal")
    assert reason(verdict.render, "Succeeded") == succeeded
    assert reason(verdict.render, "Finished") == succeeded.replace("False", "True")
    assert reason(verdict.render, "OutputsAvailable") == "False/NoOutputs"
    assert status.polling.next_poll_time is None


@pytest.mark.parametrize("terminal", [True, None], ids=["terminal: true", "no terminal"])
@pytest.mark.parametrize("word", ["completed", "complete", "success", "succeeded", " COMPLETED ", "Success"])
def test_outputs_are_collected_before_the_end(word: str, terminal: bool | None) -> None:
    verdict = checked(running(), JobStatus(word=word, terminal=terminal), at(60))
    status = verdict.render.status
    assert verdict.next == AtOnce()
    assert (status.state, status.terminal, status.completion_time) == ("Processing", False, None)
    assert status.polling.collecting_since == at(60)
    assert reason(verdict.render, "Finished") == "False/Active"


@pytest.mark.parametrize("word", [None, "baking"], ids=["no word", "an unknown word"])
def test_the_flag_alone_ends_a_render(word: str | None) -> None:
    render = checked(running(), JobStatus(word=word, terminal=True)).render
    assert (render.status.state, render.status.terminal) == ("Unknown", True)
    assert reason(render, "Succeeded") == "Unknown/OutcomeUnknown"
    assert reason(render, "Finished") == "True/OutcomeUnknown"


def test_the_flag_alone_keeps_a_render_going() -> None:
    render = checked(running(), JobStatus(word=None, terminal=False)).render
    assert (render.status.state, render.status.terminal) == ("Unknown", False)


FAILURES = [
    (JobError(code="generation_failed", message="Out of luck."), "JobFailed", "The job failed: Out of luck."),
    (JobError(code="generation_failed"), "JobFailed", "The job failed: generation_failed"),
    (None, "JobFailed", "The job failed: Sume says 'failed'"),
    (JobError(message="No.", public_reason="content_policy_rejected"), "ContentPolicyRejected", "The job failed: No."),
    (JobError(code="content_policy_rejected"), "ContentPolicyRejected", "The job failed: content_policy_rejected"),
]


@pytest.mark.parametrize(("error", "why", "message"), FAILURES, ids=[f"{row[0]}" for row in FAILURES])
def test_why_a_job_failed(error: JobError | None, why: str, message: str) -> None:
    render = checked(running(), JobStatus(word="failed", error=error)).render
    assert reason(render, "Succeeded") == f"False/{why}"
    assert render.status.message == message
    assert (render.status.error.source if render.status.error else None) == ("Job" if error else None)


def test_what_a_job_cost_is_kept_until_sume_says_otherwise() -> None:
    reserved, captured = Usage(state="reserved", amount="0.42"), Usage(state="captured", amount="0.40")
    render = checked(following(), JobStatus(word="queued", usage=reserved)).render
    render = checked(render, RUNNING).render
    assert render.status.usage == reserved
    assert checked(render, JobStatus(word="failed", usage=captured)).render.status.usage == captured


# --- contradictions ---


@pytest.mark.parametrize(
    ("word", "end"), [("failed", "Failed"), ("canceled", "Canceled"), ("completed", None)], ids=str
)
def test_a_word_that_contradicts_the_flag_is_looked_at_three_more_times(word: str, end: str | None) -> None:
    reply, render = JobStatus(word=word, terminal=False, next_poll_s=10), running()
    for look in range(3):
        verdict = checked(render, reply, at(10 * look))
        render = verdict.render
        assert (render.status.state, render.status.terminal) == ("Processing", False)
        assert render.status.polling.collecting_since is None
        assert 10 <= delay_of(verdict) <= 10.5
    render = checked(render, reply, at(40)).render
    if end is None:
        assert render.status.polling.collecting_since == at(40)
    else:
        assert (render.status.state, render.status.terminal) == (end, True)


def test_a_flag_that_contradicts_the_word_is_believed_in_the_end() -> None:
    reply, render = JobStatus(word="processing", terminal=True), running()
    for _ in range(3):
        render = checked(render, reply).render
        assert (render.status.state, render.status.terminal) == ("Processing", False)
    render = checked(render, reply).render
    assert (render.status.state, render.status.terminal) == ("Unknown", True)
    assert reason(render, "Succeeded") == "Unknown/OutcomeUnknown"


def test_a_clear_answer_forgets_contradictions() -> None:
    reply, render = JobStatus(word="failed", terminal=False), running()
    for _ in range(2):
        for _ in range(3):
            render = checked(render, reply).render
        render = checked(render, RUNNING).render
    assert render.status.polling.streak is None
    assert not render.status.terminal


def test_trouble_between_contradictions_counts_for_nothing() -> None:
    reply, render = JobStatus(word="failed", terminal=False), running()
    for _ in range(3):
        render = checked(checked(render, reply).render, Unavailable(detail="HTTP 500")).render
    assert not render.status.terminal
    assert checked(render, reply).render.status.terminal


# --- the delay ---


@pytest.mark.parametrize(
    ("suggested", "at_least", "at_most"),
    [
        (8.0, 8.0, 8.4),
        (30.0, 30.0, 31.5),
        (None, 15.0, 15.75),
        (0.0, 15.0, 15.75),
        (-5.0, 15.0, 15.75),
        (float("nan"), 15.0, 15.75),
        (float("inf"), 15.0, 15.75),
        (0.01, 2.0, 2.1),
        (1e12, 300.0, 300.0),
    ],
)
def test_when_it_is_looked_at_again(suggested: float | None, at_least: float, at_most: float) -> None:
    verdict = checked(following(), JobStatus(word="queued", next_poll_s=suggested))
    assert at_least <= delay_of(verdict) <= at_most


# --- suspend and resume ---


def test_suspend_and_resume() -> None:
    render = edited(running(), suspend=True)
    verdict = noted(render, Note(why=SUSPENDED), at(5), TERMS)
    assert (verdict.next, verdict.render.status.polling.next_poll_time) == (Never(), None)
    assert reason(verdict.render, "Succeeded") == "Unknown/Suspended"
    assert (verdict.render.status.state, verdict.render.status.observed_generation) == ("Processing", 2)
    resumed = checked(edited(verdict.render, suspend=False), RUNNING, at(600))
    assert reason(resumed.render, "Succeeded") == "Unknown/Processing"
    assert isinstance(resumed.next, Again)


# --- cancel ---


@pytest.mark.parametrize(
    ("reply", "result", "message"),
    [
        (CancelAccepted(), "Accepted", None),
        (Refusal(http_status=409, code="job_generation_already_started", message="It runs."), "Refused", "It runs."),
        (Refusal(http_status=409, code="job_not_cancelable"), "Refused", None),
        (JobUnknown(message="No such job."), "Refused", "No such job."),
    ],
    ids=["accepted", "refused", "refused without a text", "unknown"],
)
def test_a_cancel_is_answered_once(reply: Any, result: str, message: str | None) -> None:
    verdict = canceled(edited(running(), cancel=True), reply, at(5))
    assert verdict.next == AtOnce()  # the next look tells what came of it
    assert verdict.render.status.cancellation == Cancellation(result=result, time=at(5), message=message)
    assert (verdict.render.status.state, verdict.render.status.terminal) == ("Processing", False)
    expected = "Unknown/Canceling" if result == "Accepted" else "Unknown/Processing"
    assert reason(verdict.render, "Succeeded") == expected


def test_only_the_next_look_ends_a_canceled_render() -> None:
    render = canceled(edited(running(), cancel=True), CancelAccepted(), at(5)).render
    goes_on = checked(render, RUNNING, at(6)).render
    assert reason(goes_on, "Succeeded") == "Unknown/Canceling"
    ended = checked(goes_on, CANCELED, at(20)).render
    assert (ended.status.state, reason(ended, "Succeeded")) == ("Canceled", "False/Canceled")


def test_a_canceled_job_that_completed_all_the_same_is_completed() -> None:
    render = canceled(edited(running(), cancel=True), CancelAccepted(), at(5)).render
    assert checked(render, COMPLETED, at(6)).render.status.polling.collecting_since == at(6)


def test_trouble_with_a_cancel_is_no_answer_to_it() -> None:
    verdict = canceled(edited(running(), cancel=True), Unavailable(detail="HTTP 503"), at(5))
    assert verdict.render.status.cancellation is None
    assert isinstance(verdict.next, Again)
    assert reason(verdict.render, "Synced") == "False/APIUnavailable"


def test_a_request_canceled_before_sume_was_asked() -> None:
    render = noted(requesting(cancel=True), Note(why=NEVER_ASKED), NOW, TERMS).render
    assert (render.status.state, render.status.terminal) == ("Canceled", True)
    assert reason(render, "Succeeded") == "False/Canceled"
    assert reason(render, "Submitted") == "False/NotSubmitted"
    assert reason(render, "OutputsAvailable") == "False/NoOutputs"


# --- the deadline ---


def given_up(**fields: Any) -> Render:
    return running(active_deadline_s=60, **fields)


@pytest.mark.parametrize("seconds", [0, 59, 59.999])
def test_a_look_before_the_deadline_decides_nothing(seconds: float) -> None:
    assert not checked(given_up(), RUNNING, at(seconds)).render.status.terminal


@pytest.mark.parametrize("reply", [RUNNING, QUEUED, JobStatus(word="baking")], ids=["running", "queued", "unknown"])
@pytest.mark.parametrize("seconds", [60, 61, 10**6])
def test_a_followed_job_is_given_up_by_a_look_after_the_deadline(reply: JobStatus, seconds: int) -> None:
    render = checked(given_up(), reply, at(seconds)).render
    assert (render.status.state, reason(render, "Succeeded")) == ("Failed", "False/DeadlineExceeded")
    assert render.status.cancellation is None


def test_success_after_the_deadline_wins() -> None:
    verdict = checked(given_up(deletion_policy="Cancel"), COMPLETED, at(600))
    assert verdict.render.status.polling.collecting_since == at(600)


def test_failure_after_the_deadline_wins() -> None:
    assert reason(checked(given_up(), FAILED, at(600)).render, "Succeeded") == "False/JobFailed"


def test_trouble_after_the_deadline_decides_nothing() -> None:
    render = checked(given_up(), Unavailable(detail="HTTP 500"), at(600)).render
    assert not render.status.terminal


@pytest.mark.parametrize(
    ("cancel_reply", "next_look"),
    [
        (CancelAccepted(), CANCELED),
        (CancelAccepted(), RUNNING),
        (Refusal(http_status=409), RUNNING),
        (JobUnknown(), RUNNING),
    ],
    ids=["accepted, canceled", "accepted, still running", "refused", "unknown"],
)
def test_where_deletion_cancels_the_deadline_cancels_first(cancel_reply: Any, next_look: JobStatus) -> None:
    verdict = checked(given_up(deletion_policy="Cancel"), RUNNING, at(60))
    assert (verdict.next, verdict.render.status.terminal) == (AtOnce(), False)
    render = canceled(verdict.render, cancel_reply, at(61)).render
    assert not render.status.terminal
    render = checked(render, next_look, at(62)).render
    assert (render.status.state, reason(render, "Succeeded")) == ("Failed", "False/DeadlineExceeded")


def test_the_owners_cancel_is_no_deadline() -> None:
    render = canceled(edited(given_up(), cancel=True), CancelAccepted(), at(10)).render
    assert reason(checked(render, CANCELED, at(70)).render, "Succeeded") == "False/Canceled"


def test_a_deadline_beyond_all_time_is_none() -> None:
    render = running(active_deadline_s=2**63 - 1)
    assert not checked(render, RUNNING, at(10**9)).render.status.terminal
    accepted = canceled(edited(render, deletion_policy="Cancel"), CancelAccepted()).render
    assert reason(checked(accepted, CANCELED).render, "Succeeded") == "False/Canceled"


# --- notes ---


def test_requests_wait_while_submissions_are_not_possible() -> None:
    verdict = noted(requesting(), Note(why=SUBMISSIONS_DISABLED), NOW, TERMS)
    assert reason(verdict.render, "Accepted") == "False/SubmissionsDisabled"
    assert reason(verdict.render, "Submitted") == "False/NotSubmitted"
    assert reason(verdict.render, "Succeeded") == "Unknown/SubmissionsDisabled"
    assert (verdict.render.status.state, delay_of(verdict)) == ("Pending", PACE.max_s)


def test_another_endpoint_is_never_asked() -> None:
    other = type(TERMS)(pace=PACE, api_url="https://elsewhere.example/v1")
    verdict = noted(running(), Note(why=WRONG_ENDPOINT), at(9), other)
    status = verdict.render.status
    assert (status.state, status.terminal, status.api_url) == ("Processing", False, TERMS.api_url)
    assert reason(verdict.render, "Synced") == "False/WrongEndpoint"
    assert reason(verdict.render, "Succeeded") == "Unknown/WrongEndpoint"
    assert "elsewhere.example" in (status.message or "")
    assert TERMS.api_url in (status.message or "")


def test_an_edit_after_the_end_is_observed_and_changes_nothing_else() -> None:
    before = completed()
    after = noted(
        edited(before, ttl_after_finished_s=60, poll_request="again"), Note(why=OBSERVED), at(99), TERMS
    ).render
    assert (after.status.observed_generation, after.status.last_handled_poll_request) == (2, "again")
    assert {c.observed_generation for c in after.status.conditions} == {2}
    assert (after.status.outputs, after.status.completion_time) == (before.status.outputs, NOW)
    assert [reason(after, c.type) for c in after.status.conditions] == [
        reason(before, c.type) for c in before.status.conditions
    ]


# --- too late ---


@pytest.mark.parametrize("render", [completed(), checked(running(), FAILED).render], ids=["completed", "failed"])
@pytest.mark.parametrize(
    "settled",
    [
        lambda render: checked(render, RUNNING, at(99)),
        lambda render: checked(render, CANCELED, at(99)),
        lambda render: checked(render, JobUnknown(), at(99)),
        lambda render: canceled(render, CancelAccepted(), at(99)),
    ],
    ids=["running", "canceled", "unknown", "cancel accepted"],
)
def test_a_reply_that_comes_after_the_end_says_nothing(render: Render, settled: Any) -> None:
    """Not even that a poll request was handled: the next step sees to that, and to a time to live."""
    asked = edited(render, poll_request="again", ttl_after_finished_s=60)
    verdict: Verdict = settled(asked)
    assert (verdict.render, verdict.next) == (asked, AtOnce())


def test_a_result_that_comes_after_a_failure_says_nothing() -> None:
    render = checked(running(), FAILED).render
    assert collected(render, ONE_VIDEO, at(9)).render == render


# --- what stays ---


def test_start_and_endpoint_are_set_once() -> None:
    render = checked(running(), RUNNING, at(500)).render
    assert (render.status.start_time, render.status.polling.count) == (NOW, 2)


def test_a_poll_request_is_echoed_by_any_look() -> None:
    render = checked(following(poll_request="now"), Unavailable(detail="HTTP 500")).render
    assert render.status.last_handled_poll_request == "now"
    assert checked(edited(render, poll_request=None), RUNNING).render.status.last_handled_poll_request == "now"


def test_deletion_under_way_is_no_state() -> None:
    render = checked(leaving(running(deletion_policy="Cancel")), RUNNING, at(5)).render
    assert (render.status.state, render.status.observed_generation) == ("Processing", 2)


@pytest.mark.parametrize(
    "wanted",
    [edited(running(), cancel=True), leaving(running(deletion_policy="Cancel"))],
    ids=["canceled", "deleted"],
)
def test_a_cancel_follows_at_once_where_the_last_look_had_failed(wanted: Render) -> None:
    """After trouble the job is looked at first; if it still runs, its cancel waits for no further delay."""
    troubled = checked(wanted, Unavailable(detail="HTTP 500")).render
    assert next_step(troubled, at(5), TERMS) == Check(job_id=JOB)
    verdict = checked(troubled, RUNNING, at(5))
    assert verdict.next == AtOnce()
    assert next_step(verdict.render, at(5), TERMS) == Cancel(job_id=JOB)
