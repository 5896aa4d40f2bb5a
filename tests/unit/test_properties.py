"""What holds for every render, whatever people do to it and whatever Sume answers."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import (
    NOW,
    PACE,
    TERMS,
    answered,
    at,
    collecting,
    completed,
    delay_of,
    ended,
    failed,
    following,
    intending,
    merged,
    requesting,
    running,
    submit_of,
    submitted,
    unanswered,
)
from lives import (
    A_FAILED_JOB,
    KEY,
    NASTY,
    NO_CREDITS,
    SIGNATURE,
    SIGNED,
    Happening,
    Moment,
    TurnEnd,
    any_replies,
    births,
    happenings,
    live,
    refusals,
    retried,
    troubles,
)
from schema_check import misfits
from sume_operator.adapters.replies import read_reply
from sume_operator.core.events import events_between
from sume_operator.core.job import (
    Call,
    Cancel,
    Check,
    Collect,
    Forbidden,
    Held,
    JobCall,
    JobError,
    JobStatus,
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
from sume_operator.core.render import Render
from sume_operator.core.settle import settle
from sume_operator.core.status import (
    Cancellation,
    Condition,
    Output,
    Polling,
    Status,
    Streak,
    Submission,
    parse_status,
    to_body,
)
from sume_operator.core.step import (
    NEVER_ASKED,
    OBSERVED,
    SUBMISSIONS_DISABLED,
    SUSPENDED,
    WRONG_ENDPOINT,
    Note,
    Rest,
    Sleep,
    first_due,
    holds_slot,
    next_step,
)
from sume_operator.core.verdict import Again, AtOnce, Never, is_worth_writing

CRD: Any = yaml.safe_load(Path(__file__).parents[2].joinpath("crds/sumerenders.yaml").read_text(encoding="utf-8"))
SCHEMA: Any = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]

LATER = [timedelta(), timedelta(seconds=1), timedelta(hours=1), timedelta(days=40_000)]
UNSENT = Held | Spent | NoSlot | NoCredentials
Trouble = Unauthorized | Forbidden | RateLimited | Unavailable | Malformed | Held | NoCredentials | Refusal


# --- rules of every step of a turn ---


def an_end_is_for_ever(moment: Moment) -> None:
    if moment.before.status.terminal:
        assert ended(moment.after.status) == ended(moment.before.status)


def terminal_and_finished_are_one(moment: Moment) -> None:
    status = moment.after.status
    finished, succeeded = status.condition("Finished"), status.condition("Succeeded")
    if finished and succeeded:
        assert (finished.status == "True") is status.terminal
        assert status.terminal is (status.completion_time is not None)
        assert not status.terminal or finished.reason == succeeded.reason


def what_is_due_is_done(moment: Moment) -> None:
    due_s = first_due(moment.before, moment.now)
    if due_s is not None:
        step = next_step(moment.before, moment.now + timedelta(seconds=due_s), moment.terms)
        assert not isinstance(step, Rest | Sleep)


def the_next_poll_is_on_record_exactly_while_there_is_one(moment: Moment) -> None:
    polling = moment.after.status.polling
    if isinstance(moment.next, Never):
        assert polling.next_poll_time is None
    if isinstance(moment.next, Again) and (moment.call or not moment.after.status.terminal):
        assert polling.next_poll_time == moment.now + timedelta(seconds=moment.next.delay_s)


def delays_stay_within_floor_and_ceiling(moment: Moment) -> None:
    if isinstance(moment.next, Again) and (moment.call or not moment.after.status.terminal):
        assert moment.terms.pace.min_s <= moment.next.delay_s <= moment.terms.pace.max_s


def the_job_is_never_lost(moment: Moment) -> None:
    before, after = moment.before, moment.after
    if after.job_id != before.job_id:
        assert before.job_id is None or before.job_id in after.status.failed_job_ids
        assert before.job_id is None or isinstance(moment.call, Check)
        assert after.job_id is None or isinstance(moment.call, Submit)
    known, failed_ids = before.status.failed_job_ids, after.status.failed_job_ids
    assert failed_ids[: len(known)] == known
    assert len(failed_ids) <= before.backoff_limit
    if isinstance(moment.call, JobCall) and not before.status.terminal:
        assert moment.call.job_id == before.job_id
        assert after.status.job_id in (before.job_id, None)


def no_job_is_asked_for_where_one_is_known(moment: Moment) -> None:
    if isinstance(moment.call, Submit):
        before, after = moment.before, moment.after
        assert (before.job_id, before.followed_job_id) == (None, None)
        assert moment.call.idempotency_key == before.idempotency_key == after.idempotency_key
        if isinstance(moment.reply, Submitted):
            assert after.status.job_id == moment.reply.job_id[:128]
            assert after.status.job_id


def what_may_have_been_made_is_not_forgotten(moment: Moment) -> None:
    """Only Sume's answer, or a day without one, ends the doubt."""
    before, after = moment.before, moment.after
    if before.is_being_submitted and not after.is_being_submitted:
        assert isinstance(moment.call, Submit)
        assert not isinstance(moment.reply, UNSENT | JobStatus | Malformed) or after.status.terminal
    submitted = before.status.condition("Submitted")
    is_in_doubt = before.is_being_submitted and submitted is not None and submitted.reason == "OutcomeUnknown"
    if is_in_doubt and after.job_id is None and not after.status.terminal:
        assert after.is_being_submitted
        assert holds_slot(after)


def trouble_ends_no_render_and_changes_no_state(moment: Moment) -> None:
    before, after = moment.before.status, moment.after.status
    if isinstance(moment.call, Submit) and isinstance(moment.reply, Refusal):
        return  # of a request it is an answer
    is_end_of_doubt = isinstance(moment.call, Submit) and after.state == "Unknown"
    if isinstance(moment.reply, Trouble) and not before.terminal and not is_end_of_doubt:
        if before.polling.collecting_since is None:
            assert (after.state, after.terminal) == (before.state, False)
        else:  # the job has completed; at most its outputs are given up
            assert after.state == ("Completed" if after.terminal else before.state)


def outputs_are_there_when_the_end_is(moment: Moment) -> None:
    status = moment.after.status
    available = status.condition("OutputsAvailable")
    if status.terminal and available and available.reason == "Collected":
        assert status.outputs
    assert not status.outputs or (status.state == "Completed" and status.terminal)


def start_and_base_are_set_once(moment: Moment) -> None:
    before, after = moment.before.status, moment.after.status
    assert before.start_time in (None, after.start_time)
    assert before.api_url in (None, after.api_url) or isinstance(moment.call, Submit)


def nothing_is_asked_that_must_not_be(moment: Moment) -> None:
    if moment.call is not None:
        render = moment.before
        may_have_job = render.job_id is not None or render.is_being_submitted
        assert not may_have_job or render.status.api_url in (None, moment.terms.api_url)
        assert not isinstance(moment.call, Submit) or moment.terms.submissions_enabled
        assert not render.status.terminal or isinstance(moment.call, Collect)
        assert not isinstance(moment.call, Cancel) or render.status.cancellation is None
        is_overruled = render.cancel or (render.deletion_time and render.has_finalizer)
        assert not render.suspend or is_overruled or render.status.terminal


def the_status_fits_the_schema(moment: Moment) -> None:
    assert misfits(merged({}, to_body(moment.after.status)), SCHEMA) == []


def no_secret_is_told(moment: Moment) -> None:
    status = moment.after.status
    told = [event.message + event.key for event in events_between(moment.before.status, moment.after)]
    told += [condition.message for condition in status.conditions]
    told += [status.message or "", status.sume_status or ""]
    told += [repr(status.error), repr(status.cancellation), repr(status.outputs)]
    for text in told:
        assert SIGNATURE not in text
        assert KEY not in text


def events_are_told_once(moment: Moment) -> None:
    assert events_between(moment.after.status, moment.after) == ()
    told = events_between(moment.before.status, moment.after)
    assert len({(event.reason, event.key) for event in told}) == len(told)
    assert all(event.message and event.key for event in told)
    if moment.after.status.terminal and not moment.before.status.terminal:
        assert told


# --- rules of every turn ---


def a_due_time_exists_exactly_while_something_is_left_to_do(end: TurnEnd) -> None:
    steps = [next_step(end.stored, end.now + later, end.terms) for later in LATER]
    is_at_rest = all(isinstance(step, Rest) for step in steps)
    assert (first_due(end.stored, end.now) is None) is is_at_rest
    assert isinstance(end.next, Never) is is_at_rest


def every_turn_that_looked_has_observed(end: TurnEnd) -> None:
    """Else the watch would hasten it for ever."""
    assert isinstance(end.next, AtOnce) or end.stored.is_observed


def a_write_says_all_that_was_learnt(end: TurnEnd) -> None:
    once = parse_status(merged({}, to_body(end.worked.status)))
    if is_worth_writing(end.base.status, end.worked.status, 0):
        assert end.stored.status == once
    else:
        assert replace(end.stored.status, polling=Polling()) == replace(once, polling=Polling())


RULES_OF_A_MOMENT: list[Callable[[Moment], None]] = [
    an_end_is_for_ever,
    terminal_and_finished_are_one,
    what_is_due_is_done,
    the_next_poll_is_on_record_exactly_while_there_is_one,
    delays_stay_within_floor_and_ceiling,
    the_job_is_never_lost,
    no_job_is_asked_for_where_one_is_known,
    what_may_have_been_made_is_not_forgotten,
    trouble_ends_no_render_and_changes_no_state,
    outputs_are_there_when_the_end_is,
    start_and_base_are_set_once,
    nothing_is_asked_that_must_not_be,
    the_status_fits_the_schema,
    no_secret_is_told,
    events_are_told_once,
]
RULES_OF_A_TURN: list[Callable[[TurnEnd], None]] = [
    a_due_time_exists_exactly_while_something_is_left_to_do,
    every_turn_that_looked_has_observed,
    a_write_says_all_that_was_learnt,
]


def test_whatever_happens_the_rules_hold() -> None:
    """And the stories reach what the rules are about: else they would prove nothing."""
    seen: set[str] = set()

    @settings(max_examples=500)
    @example(render=retried(), story=[A_FAILED_JOB, A_FAILED_JOB])
    @example(render=requesting(), story=[NO_CREDITS, A_FAILED_JOB])
    @given(render=births, story=happenings)
    def follow(render: Render, story: list[Happening]) -> None:
        for event in live(render, story):
            seen.add(type(event.next).__name__)
            if isinstance(event, TurnEnd):
                for rule_of_a_turn in RULES_OF_A_TURN:
                    rule_of_a_turn(event)
            else:
                for rule in RULES_OF_A_MOMENT:
                    rule(event)
                seen.update(facts_of(event))

    follow()
    states = {"Pending", "Queued", "Processing", "Completed", "Failed", "Canceled", "Unknown"}
    steps = {"Check", "Collect", "Cancel", "Submit", "Again", "AtOnce", "Never"}
    waiting = {"Suspended", "Unauthorized", "RateLimited", "WrongEndpoint", "SubmissionsDisabled", "Retrying"}
    waiting |= {"WaitingForSlot", "InsufficientCredits", "NotSubmitted"}
    ends = {
        "SubmissionRejected",
        "ContentPolicyRejected",
        "JobFailed",
        "Canceled",
        "OutcomeUnknown",
        "DeadlineExceeded",
    }
    assert states | steps | waiting | ends <= seen


def facts_of(moment: Moment) -> set[str]:
    """What a moment was about."""
    status = moment.after.status
    succeeded = status.condition("Succeeded")
    return {type(moment.call).__name__, status.state, succeeded.reason if succeeded else ""}


@settings(max_examples=25)
@given(render=births, story=happenings)
def test_the_same_happens_twice(render: Render, story: list[Happening]) -> None:
    assert list(live(render, story)) == list(live(render, story))


# --- any reply at any time ---

STANDS = [
    following(),
    requesting(),
    intending(requesting()),
    unanswered(),
    submitted(backoff_limit=2),
    answered(requesting(), NoSlot(ahead=3)).render,
    running(),
    running(active_deadline_s=60, deletion_policy="Cancel"),
    running(cancel=True),
    collecting(),
    completed(),
    failed(),
]
stands = st.sampled_from(STANDS)
call_types: st.SearchStrategy[type[Call]] = st.sampled_from([Check, Collect, Cancel, Submit])
instants = st.sampled_from([0.0, 61.0, 4e3, 1e5, 1e8]).map(at)


def call_of(call_type: type[Call], render: Render) -> Call:
    """Any of the calls, whether it would be made now or not."""
    if issubclass(call_type, Submit):
        return submit_of(replace(render, request=render.request or requesting().request))
    return call_type(job_id=str(render.job_id))


@given(render=stands, call_type=call_types, reply=any_replies, now=instants)
def test_every_reply_has_a_verdict(render: Render, call_type: type[Call], reply: Reply, now: datetime) -> None:
    call = call_of(call_type, render)
    verdict = settle(render, call, reply, now, TERMS)
    moment = Moment(
        now=now, terms=TERMS, before=render, call=call, reply=reply, after=verdict.render, next=verdict.next
    )
    an_end_is_for_ever(moment)
    the_status_fits_the_schema(moment)
    no_secret_is_told(moment)
    delays_stay_within_floor_and_ceiling(moment)
    assert verdict.outcome in {"unchanged", "changed", "terminal", "error", "rate_limited", "deferred"}
    assert settle(render, call, reply, now, TERMS) == verdict


@given(render=stands, note=st.sampled_from([OBSERVED, SUSPENDED, SUBMISSIONS_DISABLED, WRONG_ENDPOINT, NEVER_ASKED]))
def test_every_note_has_a_verdict(render: Render, note: str) -> None:
    verdict = noted(render, Note(why=note), NOW, TERMS)
    assert misfits(merged({}, to_body(verdict.render.status)), SCHEMA) == []
    assert not render.status.terminal or ended(verdict.render.status) == ended(render.status)


@settings(max_examples=50)
@given(
    render=st.sampled_from([following(), running()]),
    trouble=troubles | refusals,
    count=st.integers(1, 20),
    after_s=st.sampled_from([1.0, 3e3, 1e6]),
)
def test_trouble_without_end_ends_nothing(render: Render, trouble: Reply, count: int, after_s: float) -> None:
    state = render.status.state
    for look in range(count):
        verdict = settle(render, Check(job_id=str(render.job_id)), trouble, at(look * after_s), TERMS)
        render = verdict.render
        assert (render.status.state, render.status.terminal) == (state, False)
        assert PACE.min_s <= delay_of(verdict) <= PACE.max_s


texts = st.sampled_from(NASTY) | st.text(max_size=30)
names = st.sampled_from(["sume_status", "status", "code", "message", "public_reason", "request_id", "currency", "kind"])
parts = st.dictionaries(names, texts, max_size=4)


@settings(max_examples=60)
@given(
    call_type=call_types,
    http_status=st.sampled_from([200, 200, 400, 401, 404, 409, 429, 500]),
    word=st.sampled_from(["failed", "queued", "completed"]) | texts,
    parts=st.tuples(parts, parts, parts, parts),
    urls=st.lists(st.sampled_from([SIGNED, "https://x/" + "1" * 9000, "https://x/1"]), max_size=3),
)
def test_whatever_sume_writes_its_record_fits_and_tells_no_secret(
    call_type: type[Call],
    http_status: int,
    word: str,
    parts: tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, str]],
    urls: list[str],
) -> None:
    """The whole way: from bytes to the status."""
    error, usage, artifact, extra = parts
    outputs = [artifact | {"url": url, "content_type": word, "expires_at": "9999-12-31T23:59:59Z"} for url in urls] * 30
    payload = extra | {"status": word, "job": {"error": error}, "usage": usage, "artifacts": outputs, "error": error}
    for render in (following(), collecting(), completed(), intending(requesting())):
        call = call_of(call_type, render)
        reply = read_reply(call, http_status, {}, json.dumps(payload).encode(), NOW)
        after = settle(render, call, reply, NOW, TERMS).render
        moment = Moment(now=NOW, terms=TERMS, before=render, call=call, reply=reply, after=after, next=AtOnce())
        the_status_fits_the_schema(moment)
        no_secret_is_told(moment)


# --- JSON ---

whole_times = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda instant: instant.replace(microsecond=0)
)
conditions = st.builds(
    Condition,
    type=st.sampled_from(["Accepted", "Synced", "Succeeded"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.just("Reason"),
    message=st.text(max_size=5),
    last_transition_time=whole_times,
    observed_generation=st.integers(0, 9),
)
words = st.none() | st.text(max_size=5)
maybe_times = st.none() | whole_times
counts = st.integers(0, 2**31 - 1)
statuses = st.builds(
    Status,
    observed_generation=counts,
    state=st.sampled_from(["Pending", "Queued", "Completed"]),
    terminal=st.booleans(),
    job_id=words,
    failed_job_ids=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    api_url=words,
    last_handled_poll_request=words,
    sume_status=words,
    message=words,
    error=st.none()
    | st.builds(JobError, code=words, message=words, public_reason=words, request_id=words, source=words),
    outputs=st.lists(
        st.builds(
            Output,
            name=st.text(max_size=5),
            url=st.text(max_size=5),
            type=words,
            content_type=words,
            size_bytes=st.none() | counts,
            expiration_time=maybe_times,
        ),
        max_size=2,
    ).map(tuple),
    submission=st.none()
    | st.builds(
        Submission,
        attempts=counts,
        idempotency_key=words,
        key_fingerprint=words,
        first_attempt_time=maybe_times,
        last_attempt_time=maybe_times,
    ),
    usage=st.none() | st.builds(Usage, state=words, amount=words, currency=words),
    polling=st.builds(
        Polling,
        count=counts,
        failures=counts,
        last_poll_time=maybe_times,
        next_poll_time=maybe_times,
        collecting_since=maybe_times,
        streak=st.none() | st.builds(Streak, kind=st.text(max_size=5), count=counts, since=whole_times),
    ),
    cancellation=st.none()
    | st.builds(Cancellation, result=st.sampled_from(["Accepted", "Refused"]), time=whole_times, message=words),
    start_time=maybe_times,
    completion_time=maybe_times,
    conditions=st.lists(conditions, max_size=3).map(tuple),
)


@settings(max_examples=60)
@given(status=statuses)
def test_a_status_survives_its_json(status: Status) -> None:
    assert parse_status(to_body(status)) == status
    assert parse_status(merged({}, to_body(status))) == status


@settings(max_examples=60)
@given(old=statuses, new=statuses)
def test_a_patch_leaves_nothing_of_the_old(old: Status, new: Status) -> None:
    assert merged(merged({}, to_body(old)), to_body(new)) == merged({}, to_body(new))
