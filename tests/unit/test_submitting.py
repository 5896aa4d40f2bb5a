"""What every answer to a request for a job means, the first time and after an answer that was lost."""

from dataclasses import dataclass, replace

import pytest

from builders import (
    API_URL,
    FAILED,
    FINGERPRINT,
    JOB,
    MADE,
    NOW,
    PACE,
    QUEUED,
    REF,
    RUNNING,
    TERMS,
    answered,
    asked,
    at,
    canceled,
    checked,
    collected,
    delay_of,
    edited,
    following,
    intending,
    leaving,
    reason,
    requesting,
    submit_of,
    submitted,
    unanswered,
)
from sume_operator.core.events import events_between
from sume_operator.core.job import (
    Cancel,
    CancelAccepted,
    Check,
    Forbidden,
    Held,
    JobError,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    NoCredentials,
    NoSlot,
    RateLimited,
    Refusal,
    Reply,
    Spent,
    Submit,
    Submitted,
    Unauthorized,
    Unavailable,
    Usage,
)
from sume_operator.core.noting import noted
from sume_operator.core.pace import Terms
from sume_operator.core.render import FINALIZER, Ref, Render, Request, note_of, parse_render
from sume_operator.core.status import Status, Submission
from sume_operator.core.step import (
    NEVER_ASKED,
    OUTCOME_UNKNOWN,
    SUBMISSIONS_DISABLED,
    SUSPENDED,
    WRONG_ENDPOINT,
    Note,
    Rest,
    SetFinalizer,
    first_due,
    holds_slot,
    next_step,
    wants_finalizer,
)
from sume_operator.core.verdict import AtOnce

ELSEWHERE = Terms(pace=PACE, api_url="https://elsewhere.example/v1")
LATER_S = 100.0
LOST = Unavailable(detail="no complete answer within 90 s")
NO_CREDITS = Refusal(http_status=402, code="insufficient_credits", message="Top up.")
POLICY = Refusal(http_status=400, code="content_policy_rejected", message="Not this.")
FIELDS = Refusal(http_status=422, code="invalid_request", message="Bad input.; prompt: is too long", retryable=False)
ENTRY_POINTS = [("sume/avatar-video/v1.0", "ModelRuns"), ("veo", "VideoRouter")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One answer; what Submitted says at the first attempt and after a lost one; what Synced says; when next."""

    name: str
    reply: Reply
    first: str
    later: str
    synced: str | None
    delay_s: float
    succeeded: str | None = None
    failures: int = 0


UNSURE = "Unknown/OutcomeUnknown"
NOT_YET = "False/NotSubmitted"
FULL = "False/WaitingForSlot"
SEEN = "True/Observed"
DOWN = "False/APIUnavailable"

GOES_ON = [
    Row(name="402", reply=NO_CREDITS, first="False/InsufficientCredits", later=UNSURE, synced=SEEN, delay_s=300),
    Row(
        name="no credits, by its code",
        reply=Refusal(http_status=400, code="insufficient_credits", retryable=False),
        first="False/InsufficientCredits",
        later=UNSURE,
        synced=SEEN,
        delay_s=300,
    ),
    Row(
        name="409",
        reply=Refusal(http_status=409, code="too_many_active_jobs"),
        first=FULL,
        later=UNSURE,
        synced=None,
        delay_s=30,
    ),
    Row(name="429, full", reply=RateLimited(code="queue_full"), first=FULL, later=UNSURE, synced=None, delay_s=30),
    Row(
        name="429",
        reply=RateLimited(code="rate_limit_exceeded", retry_after_s=120),
        first=NOT_YET,
        later=UNSURE,
        synced="False/RateLimited",
        delay_s=120,
        failures=1,
    ),
    Row(
        name="429 for hours",
        reply=RateLimited(retry_after_s=7200),
        first=NOT_YET,
        later=UNSURE,
        synced="False/RateLimited",
        delay_s=300,
        failures=1,
    ),
    Row(
        name="401",
        reply=Unauthorized(),
        first=NOT_YET,
        later=UNSURE,
        synced="False/Unauthorized",
        delay_s=60,
        failures=1,
    ),
    Row(
        name="403", reply=Forbidden(), first=NOT_YET, later=UNSURE, synced="False/Unauthorized", delay_s=30, failures=1
    ),
    Row(
        name="422, retryable",
        reply=Refusal(http_status=422, code="busy", message="Again.", retryable=True),
        first=NOT_YET,
        later=UNSURE,
        synced=DOWN,
        delay_s=30,
        failures=1,
    ),
    Row(
        name="500",
        reply=Unavailable(detail="HTTP 500"),
        first=UNSURE,
        later=UNSURE,
        synced=DOWN,
        delay_s=30,
        failures=1,
    ),
    Row(
        name="503",
        reply=Unavailable(detail="HTTP 503", retry_after_s=77),
        first=UNSURE,
        later=UNSURE,
        synced=DOWN,
        delay_s=77,
        failures=1,
    ),
    Row(name="no answer", reply=LOST, first=UNSURE, later=UNSURE, synced=DOWN, delay_s=30, failures=1),
    Row(
        name="not sent",
        reply=Unavailable(detail="x", was_sent=False),
        first=NOT_YET,
        later=UNSURE,
        synced=DOWN,
        delay_s=30,
        failures=1,
    ),
    Row(
        name="malformed",
        reply=Malformed(detail="it is HTML"),
        first=UNSURE,
        later=UNSURE,
        synced="False/InvalidResponse",
        delay_s=30,
        failures=1,
    ),
    Row(
        name="the answer to another question",
        reply=JobStatus(word="queued"),
        first=UNSURE,
        later=UNSURE,
        synced="False/InvalidResponse",
        delay_s=30,
        failures=1,
    ),
]
rows = pytest.mark.parametrize("row", GOES_ON, ids=[row.name for row in GOES_ON])


def held_back(render: Render) -> Render:
    """With our finalizer, as it is on record."""
    return replace(render, finalizers=(FINALIZER,))


def in_bounds(delay_s: float, wanted_s: float) -> bool:
    """As long as wanted, or up to 5 % longer, within floor and ceiling."""
    return PACE.min_s <= delay_s <= PACE.max_s and wanted_s <= delay_s <= wanted_s * 1.05


@rows
def test_not_now_at_the_first_attempt(row: Row) -> None:
    verdict = asked(requesting(), row.reply)
    render = verdict.render
    assert (render.status.state, render.status.terminal, render.job_id) == ("Pending", False, None)
    assert reason(render, "Submitted") == row.first
    assert reason(render, "Synced") == (row.synced or "Unknown/NotObservedYet")
    assert reason(render, "Accepted") == "True/Accepted"
    assert reason(render, "Finished") == "False/Active"
    assert in_bounds(delay_of(verdict), row.delay_s)
    assert render.status.polling.failures == row.failures
    assert render.is_being_submitted is (row.first == UNSURE)
    assert isinstance(next_step(held_back(render), at(LATER_S), TERMS), Submit if row.first == UNSURE else SetFinalizer)


@rows
def test_a_no_to_the_second_attempt_does_not_undo_the_first(row: Row) -> None:
    verdict = asked(unanswered(), row.reply, at(LATER_S))
    render = verdict.render
    assert (render.status.state, render.status.terminal) == ("Pending", False)
    assert reason(render, "Submitted") == row.later
    assert render.is_being_submitted
    assert holds_slot(render)
    failures = row.failures and row.failures + 1
    wanted_s = row.delay_s if row.delay_s != PACE.error_s or not failures else 2 * PACE.error_s
    assert in_bounds(delay_of(verdict), wanted_s)
    assert submit_of(render).idempotency_key == submit_of(requesting()).idempotency_key


@rows
def test_what_column_reason_says(row: Row) -> None:
    """The reason that Succeeded names is the most blocking one."""
    render = asked(requesting(), row.reply).render
    status, _, name = row.first.partition("/")
    if status == "Unknown":
        name = str(row.synced).partition("/")[2]
    assert reason(render, "Succeeded") == f"Unknown/{name}"


REJECTIONS: list[tuple[str, Reply, str, str]] = [
    ("400", Refusal(http_status=400, message="Bad.", code="bad_request"), "SubmissionRejected", "Bad."),
    ("422 with fields", FIELDS, "SubmissionRejected", "Bad input.; prompt: is too long"),
    ("content policy", POLICY, "ContentPolicyRejected", "Not this."),
    ("404", JobUnknown(http_status=404, message="No such model."), "SubmissionRejected", "No such model."),
    ("410", JobUnknown(http_status=410), "SubmissionRejected", "not_found"),
    ("without a word", Refusal(http_status=400), "SubmissionRejected", "HTTP 400"),
]
OF_THIS_ATTEMPT: list[tuple[str, Reply]] = [
    ("409 for good", Refusal(http_status=409, code="conflict", message="No.", retryable=False)),
    ("500 for good", Refusal(http_status=500, code="conflict", message="No.", retryable=False)),
    ("405", Refusal(http_status=405, code="conflict", message="No.")),
]


@pytest.mark.parametrize("before", [requesting(), unanswered()], ids=["first", "after a lost answer"])
@pytest.mark.parametrize(("reply", "why", "words"), [row[1:] for row in REJECTIONS], ids=[row[0] for row in REJECTIONS])
def test_a_no_to_the_request_itself_ends_the_render(before: Render, reply: Reply, why: str, words: str) -> None:
    verdict = asked(before, reply, at(LATER_S))
    status = verdict.render.status
    assert (status.state, status.terminal, status.completion_time) == ("Failed", True, at(LATER_S))
    assert reason(verdict.render, "Submitted") == "False/SubmissionRejected"
    assert reason(verdict.render, "Succeeded") == f"False/{why}"
    assert reason(verdict.render, "Finished") == f"True/{why}"
    assert reason(verdict.render, "OutputsAvailable") == "False/NoOutputs"
    assert reason(verdict.render, "Synced") == SEEN
    assert (status.message or "").endswith(words)
    assert status.error is not None
    assert status.error.source == "Submit"
    assert not holds_slot(verdict.render)
    assert not wants_finalizer(verdict.render)
    assert verdict.next == AtOnce()


@pytest.mark.parametrize("reply", [row[1] for row in OF_THIS_ATTEMPT], ids=[row[0] for row in OF_THIS_ATTEMPT])
def test_any_other_no_ends_it_only_where_no_answer_was_lost(reply: Reply) -> None:
    """A conflict with an attempt under way would be such a no; that one may have made a job."""
    assert reason(asked(requesting(), reply).render, "Finished") == "True/SubmissionRejected"
    verdict = asked(unanswered(), reply, at(LATER_S))
    assert reason(verdict.render, "Submitted") == UNSURE
    assert not verdict.render.status.terminal
    assert "No." in (verdict.render.status.condition("Synced") or pytest.fail("not set")).message
    found = asked(verdict.render, replace(MADE, replayed=True), at(2 * LATER_S)).render
    assert (found.job_id, reason(found, "Submitted")) == (JOB, "True/AlreadyExists")


# --- nothing was sent ---

UNSENT: list[tuple[str, Reply, str, float]] = [
    ("no slot", NoSlot(ahead=3), FULL, 300),
    ("not known", NoSlot(ahead=None), FULL, 30),
    ("held, 401", Held(reason="Unauthorized", retry_after_s=60), NOT_YET, 60),
    ("held, 429", Held(reason="RateLimited", retry_after_s=9000), NOT_YET, 300),
    ("spent", Spent(retry_after_s=12), NOT_YET, 12),
    ("no key", NoCredentials(reason="CredentialsNotFound", message="Secret x does not exist."), NOT_YET, 30),
]
unsent = pytest.mark.parametrize(("reply", "says", "delay_s"), [r[1:] for r in UNSENT], ids=[r[0] for r in UNSENT])


@unsent
def test_nothing_was_sent(reply: Reply, says: str, delay_s: float) -> None:
    verdict = answered(requesting(), reply)
    render = verdict.render
    assert (render.status.state, render.status.terminal) == ("Pending", False)
    assert reason(render, "Submitted") == says
    assert in_bounds(delay_of(verdict), delay_s)
    assert (render.status.polling.failures, verdict.outcome) == (0, "deferred")
    assert not render.is_being_submitted
    assert not holds_slot(render)
    assert isinstance(next_step(edited(render, cancel=True), at(9), TERMS), Note)
    assert next_step(render, at(delay_s), TERMS) == submit_of(requesting())


@unsent
@pytest.mark.parametrize(
    "before", [intending(requesting()), unanswered()], ids=["after a crash", "after a lost answer"]
)
def test_nothing_was_sent_now_but_may_have_been_before(before: Render, reply: Reply, says: str, delay_s: float) -> None:
    verdict = answered(before, reply, at(LATER_S))
    assert reason(verdict.render, "Submitted") == reason(before, "Submitted")
    assert verdict.render.is_being_submitted
    assert holds_slot(verdict.render)
    assert isinstance(next_step(held_back(edited(verdict.render, cancel=True)), at(LATER_S), TERMS), Submit)
    assert in_bounds(delay_of(verdict), delay_s)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (0, "no other render is before it"),
        (1, "1 other is before it"),
        (5, "5 others are before it"),
        (None, "until it is known again"),
    ],
)
def test_how_many_are_ahead(ahead: int | None, words: str) -> None:
    render = answered(requesting(), NoSlot(ahead=ahead)).render
    assert words in (render.status.message or "")
    assert reason(render, "Succeeded") == "Unknown/WaitingForSlot"


def test_who_waits_says_which_key_it_counts_against() -> None:
    status = answered(requesting(), NoSlot(ahead=3)).render.status
    assert status.submission == Submission(key_fingerprint=FINGERPRINT)


def test_after_trouble_a_no_that_is_none_starts_the_count_anew() -> None:
    render = asked(requesting(), Unauthorized()).render
    assert asked(render, NO_CREDITS, at(60)).render.status.polling.failures == 0
    assert asked(render, RateLimited(code="queue_full"), at(60)).render.status.polling.failures == 0


# --- made ---


@pytest.mark.parametrize(
    ("reply", "state", "says", "delay_s"),
    [
        (MADE, "Pending", "True/Created", 15),
        (Submitted(job_id=JOB, word="QUEUED ", next_poll_s=30), "Queued", "True/Created", 30),
        (Submitted(job_id=JOB, word="running", next_poll_s=0.1), "Processing", "True/Created", 2),
        (Submitted(job_id=JOB, word="completed", replayed=True), "Pending", "True/AlreadyExists", 15),
        (Submitted(job_id=JOB, word="baking", next_poll_s=1e9), "Pending", "True/Created", 300),
    ],
    ids=["fresh", "queued", "running", "replayed", "an unknown word"],
)
@pytest.mark.parametrize("before", [requesting(), unanswered()], ids=["first", "after a lost answer"])
def test_made(before: Render, reply: Submitted, state: str, says: str, delay_s: float) -> None:
    verdict = asked(before, replace(reply, usage=Usage(amount="0.42")), at(LATER_S))
    render, status = verdict.render, verdict.render.status
    assert (status.state, status.job_id, status.start_time) == (state, JOB, at(LATER_S))
    assert (reason(render, "Submitted"), reason(render, "Synced")) == (says, SEEN)
    assert (status.usage, status.api_url, status.polling.failures) == (Usage(amount="0.42"), API_URL, 0)
    assert in_bounds(delay_of(verdict), delay_s)
    assert holds_slot(render)
    assert next_step(held_back(render), at(LATER_S), TERMS) == Check(job_id=JOB)


def test_a_second_answer_to_the_same_key_changes_nothing() -> None:
    """Two pollers asked; the slower one settles on what the faster one wrote."""
    render = submitted()
    verdict = answered(render, replace(MADE, replayed=True), at(5))
    assert verdict.render.status.job_id == JOB
    assert (reason(verdict.render, "Submitted"), verdict.next) == ("True/Created", AtOnce())
    assert not answered(render, FIELDS, at(5)).render.status.terminal


# --- the intent ---


def test_the_intent_is_on_record_before_the_first_attempt() -> None:
    render = intending(requesting())
    assert render.status.submission == Submission(
        attempts=1,
        idempotency_key=REF.uid,
        key_fingerprint=FINGERPRINT,
        first_attempt_time=NOW,
        last_attempt_time=NOW,
    )
    assert reason(render, "Submitted") == "Unknown/Submitting"
    assert reason(render, "Succeeded") == "Unknown/Pending"
    assert render.status.api_url == API_URL
    assert render.is_being_submitted
    assert holds_slot(render)


def test_the_intent_after_a_lost_answer_keeps_the_time_of_the_first() -> None:
    render = intending(unanswered(), at(LATER_S))
    submission = render.status.submission or pytest.fail("not set")
    assert (submission.attempts, submission.first_attempt_time, submission.last_attempt_time) == (2, NOW, at(LATER_S))
    assert reason(render, "Submitted") == UNSURE


@pytest.mark.parametrize("reply", [NO_CREDITS, Unauthorized(), Unavailable(detail="x", was_sent=False)], ids=repr)
def test_after_a_no_the_clock_starts_anew(reply: Reply) -> None:
    render = intending(asked(requesting(), reply).render, at(LATER_S))
    submission = render.status.submission or pytest.fail("not set")
    assert (submission.attempts, submission.first_attempt_time) == (2, at(LATER_S))
    assert reason(render, "Submitted") == "Unknown/Submitting"


def test_a_render_without_a_job_is_bound_to_no_base() -> None:
    """Else a typo in SUME_API_URL would strand every render that it kept from being asked for."""
    unsent = intending(requesting())
    typo = answered(unsent.with_status(replace(unsent.status, api_url=ELSEWHERE.api_url)), Unauthorized()).render
    assert typo.status.api_url == ELSEWHERE.api_url
    assert isinstance(next_step(typo, at(9), TERMS), Submit)
    assert intending(typo, at(9)).status.api_url == API_URL


def test_what_may_have_been_asked_for_elsewhere_is_not_asked_for_here() -> None:
    assert next_step(held_back(unanswered()), at(9), ELSEWHERE) == Note(why=WRONG_ENDPOINT)
    assert next_step(held_back(submitted()), at(9), ELSEWHERE) == Note(why=WRONG_ENDPOINT)


# --- nobody knows ---

DAY_S = 86_400.0


@pytest.mark.parametrize(
    "reply",
    [
        LOST,
        Malformed(detail="it is HTML"),
        Unavailable(detail="HTTP 500"),
        Unauthorized(),
        NO_CREDITS,
        Held(reason="Unauthorized", retry_after_s=60),
    ],
    ids=repr,
)
def test_a_day_after_a_lost_answer_nobody_asks_again(reply: Reply) -> None:
    """Whatever came in between: how long Sume remembers a key is unknown, and a second job would cost."""
    render = held_back(asked(unanswered(), reply, at(DAY_S - 1)).render)
    assert not render.status.terminal
    assert isinstance(next_step(render, at(DAY_S - 1), TERMS), Submit)
    assert next_step(render, at(DAY_S), TERMS) == Note(why=OUTCOME_UNKNOWN)


def test_nobody_knows() -> None:
    render = noted(unanswered(), Note(why=OUTCOME_UNKNOWN), at(DAY_S), TERMS).render
    assert (render.status.state, render.status.terminal, render.job_id) == ("Unknown", True, None)
    assert reason(render, "Submitted") == UNSURE
    assert reason(render, "Succeeded") == UNSURE
    assert reason(render, "Finished") == "True/OutcomeUnknown"
    assert reason(render, "OutputsAvailable") == "False/NoOutputs"
    assert REF.uid in (render.status.message or "")
    assert "spec.jobID" in (render.status.message or "")


@pytest.mark.parametrize("render", [requesting(), requesting(suspend=True), requesting(cancel=True)], ids=repr)
def test_what_was_never_asked_for_has_no_such_day(render: Render) -> None:
    assert next_step(render, at(9 * DAY_S), TERMS) == next_step(render, NOW, TERMS)


def test_a_day_counts_from_the_first_attempt_that_is_not_answered() -> None:
    render = asked(requesting(), Unauthorized()).render
    render = asked(render, LOST, at(DAY_S)).render
    assert reason(render, "Submitted") == UNSURE
    assert not render.status.terminal


# --- retries ---

JOB_FAILED = JobStatus(word="failed", terminal=True, error=JobError(code="generation_failed", message="Oops."))


def retried(render: Render, job_id: str, seconds: float) -> Render:
    """Asked for, made, and failed at Sume."""
    return checked(asked(render, Submitted(job_id=job_id), at(seconds)).render, JOB_FAILED, at(seconds + 5)).render


def test_a_failed_job_is_asked_for_again_so_often_each_time_with_another_key() -> None:
    render = requesting(backoff_limit=2)
    for n, key in enumerate([REF.uid, f"{REF.uid}/1", f"{REF.uid}/2"]):
        assert submit_of(render).idempotency_key == key
        assert intending(render).status.submission == replace(
            intending(render).status.submission or pytest.fail("not set"), idempotency_key=key
        )
        render = retried(render, f"job_{n}", n * 100)
        render = replace(render, noted_job_id=f"job_{n}", noted_key=REF.uid)
        assert render.status.failed_job_ids == tuple(f"job_{i}" for i in range(min(n + 1, 2)))
        assert render.status.terminal is (n == 2)
    assert render.job_id == "job_2"
    assert reason(render, "Succeeded") == "False/JobFailed"
    assert reason(render, "Submitted") == "True/Created"


def test_between_a_failed_job_and_the_next() -> None:
    verdict = checked(submitted(backoff_limit=1), JOB_FAILED, at(5))
    render = replace(verdict.render, noted_job_id=JOB)
    assert (render.job_id, render.status.state, render.status.start_time) == (None, "Pending", NOW)
    assert reason(render, "Submitted") == NOT_YET
    assert reason(render, "Succeeded") == "Unknown/Retrying"
    assert delay_of(verdict) == pytest.approx(PACE.min_s, rel=0.05)
    assert not render.is_being_submitted
    assert not holds_slot(render)
    assert wants_finalizer(render)
    assert next_step(edited(render, cancel=True, finalizers=(FINALIZER,)), at(9), TERMS) == Note(why=NEVER_ASKED)
    gone = leaving(render)
    assert next_step(gone, at(9), TERMS) == SetFinalizer(present=False)


@pytest.mark.parametrize(
    ("fields", "reply"),
    [
        ({}, JobStatus(word="nsfw")),
        ({}, JobStatus(word="failed", error=JobError(public_reason="content_policy_rejected"))),
        ({}, JobStatus(word="canceled")),
        ({"cancel": True}, JOB_FAILED),
        ({"deletion_time": NOW, "finalizers": (FINALIZER,)}, JOB_FAILED),
        ({"backoff_limit": 0}, JOB_FAILED),
    ],
    ids=["nsfw", "content policy", "canceled at Sume", "canceled", "deleted", "no more"],
)
def test_what_is_never_retried(fields: dict[str, object], reply: JobStatus) -> None:
    render = edited(submitted(backoff_limit=5), **fields)
    assert checked(render, reply, at(5)).render.status.terminal


def test_after_its_deadline_nothing_is_retried() -> None:
    """Another job would only be canceled at its first look."""
    render = submitted(backoff_limit=5, active_deadline_s=60)
    assert not checked(render, JOB_FAILED, at(59)).render.status.terminal
    assert checked(render, JOB_FAILED, at(60)).render.status.terminal


def test_a_followed_job_is_never_retried() -> None:
    assert checked(following(backoff_limit=5), FAILED).render.status.terminal


# --- which key ---


@pytest.mark.parametrize(
    ("request_key", "noted_key", "key"),
    [(None, None, REF.uid), (None, "old-uid", "old-uid"), ("mine", "old-uid", "mine"), ("mine", None, "mine")],
    ids=["uid", "noted", "the owner's wins", "the owner's"],
)
def test_the_key(request_key: str | None, noted_key: str | None, key: str) -> None:
    request = Request(model="m", idempotency_key=request_key)
    render = requesting(request=request, noted_key=noted_key)
    assert (render.base_key, submit_of(render).idempotency_key) == (key, key)


def body_of(annotations: dict[str, str]) -> dict[str, object]:
    metadata = {"namespace": "studio", "name": "intro", "uid": "new-uid", "annotations": annotations}
    return {"metadata": metadata, "spec": {"request": {"model": "veo"}}}


KEY_NOTE, JOB_NOTE = "render.sume.com/idempotency-key", "render.sume.com/job-id"


def test_restored_without_its_status_it_follows_its_job() -> None:
    render = parse_render(body_of({KEY_NOTE: "studio/intro/old-uid", JOB_NOTE: f"studio/intro/{JOB}"}))
    assert not render.is_being_submitted
    assert holds_slot(render)
    assert next_step(held_back(render), NOW, TERMS) == Check(job_id=JOB)
    seen = checked(render, RUNNING).render
    assert (seen.status.job_id, reason(seen, "Submitted")) == (JOB, "True/Adopted")
    assert [event.reason for event in events_between(Status(), seen)] == ["RenderProcessing"]


def test_restored_before_its_job_was_known_it_asks_with_the_old_key() -> None:
    render = parse_render(body_of({KEY_NOTE: "studio/intro/old-uid"}))
    assert render.is_being_submitted
    assert submit_of(render).idempotency_key == "old-uid"
    assert reason(intending(render), "Submitted") == UNSURE
    assert reason(asked(render, Unauthorized()).render, "Submitted") == UNSURE


@pytest.mark.parametrize(
    "annotations",
    [
        {KEY_NOTE: "studio/other/old-uid", JOB_NOTE: f"studio/other/{JOB}"},
        {KEY_NOTE: "elsewhere/intro/old-uid", JOB_NOTE: f"elsewhere/intro/{JOB}"},
        {KEY_NOTE: "old-uid", JOB_NOTE: JOB},
        {KEY_NOTE: "studio/intro/", JOB_NOTE: "studio/intro/"},
        {},
    ],
    ids=["another name", "another namespace", "no name", "empty", "none"],
)
def test_notes_of_another_object_mislead_nobody(annotations: dict[str, str]) -> None:
    render = parse_render(body_of(annotations))
    assert (render.noted_key, render.noted_job_id, render.job_id) == (None, None, None)
    assert submit_of(render).idempotency_key == "new-uid"
    assert not render.is_being_submitted


def test_a_note_says_whose_it_is() -> None:
    assert note_of(Ref("studio", "intro", "uid"), "a/b") == "studio/intro/a/b"


def test_a_job_restored_from_a_note_is_not_lost_after_five_looks() -> None:
    """It was asked for by us, so Sume not knowing it is more likely Sume's trouble."""
    render = parse_render(body_of({JOB_NOTE: f"studio/intro/{JOB}"}))
    for look in range(9):
        render = checked(render, JobUnknown(), at(look * 60)).render
    assert not render.status.terminal


@pytest.mark.parametrize(("model", "endpoint"), ENTRY_POINTS)
def test_the_entry_point_follows_from_the_model(model: str, endpoint: str) -> None:
    assert submit_of(requesting(request=Request(model=model))).endpoint == endpoint
    named = requesting(request=Request(model=model, endpoint="ImageRouter"))
    assert submit_of(named).endpoint == "ImageRouter"


# --- suspend, cancel, deletion ---


def test_a_new_render_that_is_suspended_asks_for_nothing() -> None:
    assert next_step(requesting(suspend=True), NOW, TERMS) == Note(why=SUSPENDED)
    render = noted(requesting(suspend=True), Note(why=SUSPENDED), NOW, TERMS).render
    assert reason(render, "Submitted") == "False/Suspended"
    assert reason(render, "Succeeded") == "Unknown/Suspended"
    assert next_step(render, at(9), TERMS) == Rest()
    assert first_due(render, at(9)) is None


@pytest.mark.parametrize("before", [r[1] for r in UNSENT] + [NO_CREDITS, Unauthorized()], ids=repr)
def test_who_waits_can_be_suspended_and_resumed(before: Reply) -> None:
    waiting = answered(requesting(), before).render
    paused = noted(edited(waiting, suspend=True), Note(why=SUSPENDED), at(5), TERMS).render
    assert reason(paused, "Succeeded") == "Unknown/Suspended"
    assert first_due(paused, at(9)) is None
    resumed = answered(edited(paused, suspend=False), Spent(retry_after_s=5), at(9)).render
    assert reason(resumed, "Submitted") == NOT_YET
    assert reason(resumed, "Succeeded") != "Unknown/Suspended"


@pytest.mark.parametrize(
    "before", [intending(requesting()), unanswered()], ids=["after a crash", "after a lost answer"]
)
def test_suspend_does_not_forget_that_there_may_be_a_job(before: Render) -> None:
    paused = noted(edited(before, suspend=True), Note(why=SUSPENDED), at(5), TERMS).render
    assert paused.is_being_submitted
    assert holds_slot(paused)
    assert reason(paused, "Succeeded") == "Unknown/Suspended"
    held = held_back(paused)
    assert (next_step(held, at(9), TERMS), first_due(held, at(9))) == (Rest(), None)
    assert isinstance(next_step(edited(held, cancel=True), at(9), TERMS), Submit)


def test_canceled_before_it_was_asked_for() -> None:
    for before in (requesting(), answered(requesting(), NoSlot(ahead=1)).render):
        render = edited(before, cancel=True)
        assert next_step(render, at(5), TERMS) == Note(why=NEVER_ASKED)
        verdict = noted(render, Note(why=NEVER_ASKED), at(5), TERMS)
        assert (verdict.render.status.state, verdict.render.status.terminal) == ("Canceled", True)
        assert reason(verdict.render, "Succeeded") == "False/Canceled"
        assert not holds_slot(verdict.render)


@pytest.mark.parametrize("policy", ["Cancel", "Orphan"])
def test_canceled_while_it_may_have_been_asked_for(policy: str) -> None:
    """It is asked for once more, with the same key, to find the job; then that one is canceled."""
    fields = {"deletion_policy": policy, "finalizers": (FINALIZER,) if policy == "Cancel" else ()}
    render = edited(unanswered(**fields), cancel=True)
    assert next_step(render, at(5), TERMS) == submit_of(render)
    verdict = asked(render, MADE, at(5))
    assert verdict.next == AtOnce()
    assert next_step(verdict.render, at(5), TERMS) == Cancel(job_id=JOB)
    after = canceled(verdict.render, CancelAccepted(), at(5)).render
    assert next_step(after, at(5), TERMS) == Check(job_id=JOB)
    assert checked(after, JobStatus(word="canceled"), at(9)).render.status.state == "Canceled"


def test_deleted_before_it_was_asked_for_it_may_go() -> None:
    assert next_step(leaving(requesting()), at(5), TERMS) == SetFinalizer(present=False)
    assert not wants_finalizer(answered(requesting(), NoSlot(ahead=1)).render)


def test_deleted_while_it_may_have_been_asked_for() -> None:
    render = leaving(unanswered())
    assert wants_finalizer(render)
    assert next_step(render, at(5), TERMS) == submit_of(render)
    verdict = asked(render, MADE, at(5))
    assert verdict.next == AtOnce()
    assert next_step(verdict.render, at(5), TERMS) == Cancel(job_id=JOB)
    after = canceled(verdict.render, CancelAccepted(), at(5)).render
    assert next_step(after, at(5), TERMS) == SetFinalizer(present=False)
    refused = asked(render, FIELDS, at(5)).render
    assert next_step(refused, at(5), TERMS) == SetFinalizer(present=False)


def test_deleted_where_deletion_shall_not_cancel() -> None:
    render = leaving(unanswered(deletion_policy="Orphan"))
    assert next_step(render, at(5), TERMS) == SetFinalizer(present=False)


PHASES: list[tuple[str, Render, bool, bool]] = [
    ("new", requesting(), False, False),
    ("about to be asked", intending(requesting()), True, True),
    ("no answer", unanswered(), True, True),
    ("waits", answered(requesting(), NoSlot(ahead=1)).render, False, False),
    ("no credits", asked(requesting(), NO_CREDITS).render, False, False),
    ("made", submitted(), True, True),
    ("running", checked(submitted(), RUNNING).render, True, True),
    ("being collected", checked(submitted(), JobStatus(word="completed")).render, False, False),
    (
        "completed",
        collected(checked(submitted(), JobStatus(word="completed")).render, JobResult()).render,
        False,
        False,
    ),
    ("failed", checked(submitted(), FAILED).render, False, False),
    ("rejected", asked(requesting(), FIELDS).render, False, False),
    ("follows a job", checked(following(), RUNNING).render, False, False),
]


@pytest.mark.parametrize(("render", "slot", "finalizer"), [p[1:] for p in PHASES], ids=[p[0] for p in PHASES])
def test_who_holds_a_slot_and_a_finalizer(render: Render, slot: bool, finalizer: bool) -> None:
    assert (holds_slot(render), wants_finalizer(render)) == (slot, finalizer)


def test_while_submissions_are_off_what_may_be_there_is_not_forgotten() -> None:
    off = replace(TERMS, submissions_enabled=False)
    held = held_back(unanswered())
    assert next_step(held, at(5), off) == Note(why=SUBMISSIONS_DISABLED)
    render = noted(held, Note(why=SUBMISSIONS_DISABLED), at(5), off).render
    assert reason(render, "Submitted") == UNSURE
    assert isinstance(next_step(render, at(9), TERMS), Submit)


# --- events ---


def told(before: Render, after: Render) -> list[str]:
    return [event.reason for event in events_between(before.status, after)]


def test_a_job_is_told_of_once() -> None:
    intent = intending(requesting())
    queued = answered(intent, Submitted(job_id=JOB, word="queued")).render
    assert told(intent, queued) == ["RenderSubmitted", "RenderQueued"]
    assert told(queued, checked(queued, QUEUED).render) == []


def test_each_job_of_a_render_is_told_of() -> None:
    first = submitted(backoff_limit=1)
    waiting = checked(first, JOB_FAILED, at(5)).render
    second = asked(waiting, Submitted(job_id="job_2"), at(9)).render
    assert told(first, waiting) == []
    keys = [event.key for event in events_between(waiting.status, second) if event.reason == "RenderSubmitted"]
    assert keys == ["job_2"]


def test_a_lost_answer_is_told_of_once() -> None:
    intent = intending(requesting())
    once = answered(intent, LOST).render
    again_intent = intending(once, at(60))
    assert told(intent, once) == ["SubmissionOutcomeUnknown"]
    assert told(once, again_intent) == []
    assert told(again_intent, answered(again_intent, LOST, at(60)).render) == []
    assert told(intent, answered(intent, NO_CREDITS).render) == ["InsufficientCredits"]


def test_no_credits_again_and_again_is_one_event() -> None:
    render, keys = requesting(), set()
    for attempt in range(4):
        intent = intending(render, at(attempt * 300))
        render = answered(intent, NO_CREDITS, at(attempt * 300)).render
        keys |= {(event.reason, event.key) for event in events_between(intent.status, render)}
    assert keys == {("InsufficientCredits", REF.uid)}


def test_an_old_job_under_the_key_is_told_of() -> None:
    old = asked(requesting(), replace(MADE, replayed=True)).render
    for ended in (JobStatus(word="completed", terminal=True), FAILED):
        events = events_between(old.status, checked(old, ended, at(15)).render)
        (event,) = [event for event in events if event.reason == "OldJobReplayed"]
        assert event.type == "Warning"
        assert "idempotencyKey" in event.message
    running = checked(old, RUNNING, at(15)).render
    assert told(old, running) == ["RenderProcessing"]
    assert "OldJobReplayed" not in told(running, checked(running, FAILED, at(30)).render)
    ours = asked(unanswered(), replace(MADE, replayed=True), at(LATER_S)).render
    assert told(ours, checked(ours, FAILED, at(LATER_S + 15)).render) == ["RenderFailed"]
    fresh = submitted()
    assert "OldJobReplayed" not in told(fresh, checked(fresh, FAILED, at(15)).render)


def test_a_rejection_is_told_of_without_a_job() -> None:
    intent = intending(requesting())
    (event,) = events_between(intent.status, answered(intent, FIELDS).render)
    assert (event.type, event.reason) == ("Warning", "SubmissionRejected")
    assert event.message.startswith("Sume refused the request: Bad input.")
    assert [e.reason for e in events_between(intent.status, answered(intent, POLICY).render)] == ["RenderFailed"]


def test_never_known_is_told_of() -> None:
    render = unanswered()
    after = noted(render, Note(why=OUTCOME_UNKNOWN), at(DAY_S), TERMS).render
    (event,) = events_between(render.status, after)
    assert (event.type, event.reason) == ("Warning", "RenderFailed")
    assert event.message.startswith("For 24 hours")
