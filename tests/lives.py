"""Whole lives of renders for Hypothesis: edits and turns in any order, with anything for an answer.

`live` works a render off as a turn does (step, reply, settle, write), without a clock, a network or a server, and shows
every moment of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from builders import (
    FINGERPRINT,
    NOW,
    TERMS,
    collecting,
    completed,
    failed,
    following,
    merged,
    requesting,
    running,
    submitted,
    unanswered,
)
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Check,
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
from sume_operator.core.keys import Answered, KeyView
from sume_operator.core.noting import noted
from sume_operator.core.observing import WORDS
from sume_operator.core.pace import Terms
from sume_operator.core.render import FINALIZER, Render
from sume_operator.core.settle import settle
from sume_operator.core.status import Status, parse_status, to_body
from sume_operator.core.step import Expire, Note, Rest, SetFinalizer, Sleep, next_step
from sume_operator.core.submitting import intended
from sume_operator.core.verdict import Again, AtOnce, Never, Next, Verdict, is_worth_writing

SIGNATURE: Final = "SIGNATURE"
KEY: Final = "sk_live_MARKER"
STEPS_IN_ONE_TURN: Final = 8

# --- what Sume may answer ---

SIGNED: Final = f"https://media.sume.com/a/1.mp4?X-Amz-Signature={SIGNATURE}&k='{SIGNATURE}'"
NASTY: Final = [
    "x" * 1100,
    "é" * 1100,
    "line\nafter\x00line\x7f" * 60,
    f"see {SIGNED} and {SIGNED}",
    f"({SIGNED})",
    f"'{SIGNED}', " * 15,
    f"refused: Authorization: Bearer {KEY}",
    f"headers {{'x-api-key': '{KEY}'}}, bearer {KEY}",
    f"x-api-key:{KEY}",
    " ",
    "",
    "content_policy_rejected",
    "a:b/c",
]
SECONDS: Final = [None, float("nan"), float("inf"), -1.0, 0.0, 1e-9, 8.0, 1e300]
# The longest that the parser lets pass.
USAGE: Final = Usage(state="s" * 64, amount="0." + "1" * 30, currency="DOUBLOON")
URLS: Final = [SIGNED, "http://x/1", "", "https://x/?" + "1" * 9000, "https://x/" + "2" * 8182, "https://x/1.mp4"]

PLAIN_CHECKS: Final[list[Reply]] = [
    JobStatus(word=word, terminal=terminal)
    for word in ("queued", "processing", "completed", "failed", "canceled")
    for terminal in (None, word in ("completed", "failed", "canceled"))
]
STRANGE_CHECKS: Final[list[Reply]] = [
    *(JobStatus(word=word, terminal=terminal) for word in (*WORDS, "baking", None) for terminal in (None, True, False)),
    *(JobStatus(word="QUEUED", next_poll_s=next_poll_s) for next_poll_s in SECONDS),
    *(JobStatus(word=text, terminal=True, usage=USAGE) for text in NASTY),
    *(
        JobStatus(
            word="failed", error=JobError(code=text, message=text, public_reason=text, request_id=text), usage=USAGE
        )
        for text in NASTY
    ),
]
UNKNOWN: Final[list[Reply]] = [JobUnknown(http_status=status, message=text) for status in (404, 410) for text in NASTY]
REFUSALS: Final[list[Reply]] = [
    *(Refusal(http_status=409, code=text, message=text) for text in NASTY),
    *(Refusal(http_status=status) for status in (400, 402, 422)),
]
NO_KEY: Final = ("CredentialsNotFound", "CredentialsKeyMissing", "CredentialsInvalid", "NamespaceNotAllowed")
TROUBLES: Final[list[Reply]] = [
    Unauthorized(),
    Forbidden(),
    *(RateLimited(retry_after_s=seconds) for seconds in SECONDS),
    *(Unavailable(detail="HTTP 503", retry_after_s=seconds) for seconds in SECONDS),
    *(
        reply
        for text in NASTY
        for reply in (Unavailable(detail=text), Malformed(detail=text), Unauthorized(message=text))
    ),
    *(Held(reason=reason, retry_after_s=s or 1.0) for reason in ("Unauthorized", "RateLimited") for s in SECONDS),
    *(Spent(retry_after_s=seconds or 1.0) for seconds in SECONDS),
    *(NoCredentials(reason=reason, message=text) for reason in NO_KEY for text in NASTY if text.strip()),
]
RESULTS: Final[list[Reply]] = [
    JobResult(),
    JobResult(
        found=tuple(Found(url=url, kind=kind) for url in URLS for kind in ("video", "image", "loop")), usage=USAGE
    ),
    *(JobResult(found=(Found(url=url),) * count) for url in URLS for count in (1, 99)),
    *(JobResult(found=(Found(url=SIGNED, kind=text, content_type=text, size_bytes=2**62 - 1),)) for text in NASTY),
]

# `job_1` and so on: by turns, so that a retry gets another job.
MADE: Final[list[Reply]] = [
    *(
        Submitted(job_id=job_id, replayed=replayed)
        for job_id in ("job_1", "job_2", "job_3")
        for replayed in (False, True)
    ),
    *(Submitted(job_id="job_4", word=text, usage=USAGE, next_poll_s=8.0) for text in NASTY),
    Submitted(job_id="j" * 500, word="queued", next_poll_s=float("nan")),
]
NOES: Final[list[Reply]] = [
    *(Refusal(http_status=402, code="insufficient_credits", message=text) for text in NASTY),
    *(
        Refusal(http_status=422, code=text, message=text, retryable=retryable)
        for text in NASTY
        for retryable in (True, False, None)
    ),
    *(Refusal(http_status=status, retryable=False) for status in (409, 500)),
    *(RateLimited(code="queue_full"), Unauthorized(), Forbidden(), Unavailable(detail="x", was_sent=False)) * 4,
    Refusal(http_status=400, code="content_policy_rejected", message="Not this."),
]
NO_SLOTS: Final[list[Reply]] = [NoSlot(ahead=None), NoSlot(ahead=0), NoSlot(ahead=7)]
SPENT: Final[list[Reply]] = [Spent(retry_after_s=seconds or 1.0) for seconds in SECONDS]
made, noes, no_slots = st.sampled_from(MADE), st.sampled_from(NOES), st.sampled_from(NO_SLOTS)
plain_checks, strange_checks = st.sampled_from(PLAIN_CHECKS), st.sampled_from(STRANGE_CHECKS)
unknowns, refusals, troubles = st.sampled_from(UNKNOWN), st.sampled_from(REFUSALS), st.sampled_from(TROUBLES)
results = st.sampled_from(RESULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What Sume says in one turn to each thing it may be asked."""

    check: Reply
    collect: Reply
    cancel: Reply
    submit: Reply

    def to(self, call: Call) -> Reply:
        """The reply to `call`."""
        match call:
            case Check():
                return self.check
            case Collect():
                return self.collect
            case Cancel():
                return self.cancel
            case Submit():
                return self.submit


answers = st.builds(
    Answers,
    check=plain_checks | plain_checks | strange_checks | unknowns | refusals | troubles,
    collect=results | results | unknowns | refusals | troubles,
    cancel=st.just(CancelAccepted()) | refusals | troubles,
    submit=made | made | unknowns | refusals | noes | no_slots | troubles | troubles,
)
any_replies: st.SearchStrategy[Reply] = st.sampled_from(
    [
        *PLAIN_CHECKS,
        *STRANGE_CHECKS,
        *UNKNOWN,
        *REFUSALS,
        *TROUBLES,
        *RESULTS,
        *MADE,
        *NOES,
        *NO_SLOTS,
        *SPENT,
        CancelAccepted(),
    ]
)

# --- what people may do ---

NEEDS_A_SPEC_EDIT: Final = ("suspend", "cancel", "active_deadline_s", "ttl_after_finished_s", "deletion_policy")
EDITS: Final[list[dict[str, Any]]] = [
    *({"suspend": value} for value in (True, False, False)),
    *({"cancel": value} for value in (True, True)),
    *({"active_deadline_s": seconds} for seconds in (None, 1, 1, 60, 60, 10**5, 2**63 - 1)),
    *({"ttl_after_finished_s": seconds} for seconds in (None, 0, 60, 2**31 - 1)),
    *({"deletion_policy": policy} for policy in (None, "Cancel", "Orphan")),
    *({"poll_request": text} for text in (None, "1", "2", "p" * 128)),
    *({"finalizers": names} for names in ((), (FINALIZER,), ("x/y",))),
    {"delete": True},
]
edits = st.sampled_from(EDITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOf:
    """A turn, so long after what came before."""

    after_s: float
    answers: Answers
    terms: Terms = TERMS
    another_answered: bool = False


ELSEWHERE: Final = replace(TERMS, api_url="https://elsewhere.example/v1")
FOLLOW_ONLY: Final = replace(TERMS, submissions_enabled=False)
turns = st.builds(
    TurnOf,
    after_s=st.sampled_from([0.0, 0.4, 30.0, 400.0, 4000.0, 100_000.0]),
    answers=answers,
    terms=st.sampled_from([TERMS] * 6 + [ELSEWHERE, FOLLOW_ONLY]),
    another_answered=st.booleans(),
)
A_FAILED_JOB: Final = TurnOf(
    after_s=30.0,
    answers=Answers(
        check=JobStatus(word="failed"),
        collect=JobResult(),
        cancel=CancelAccepted(),
        submit=Submitted(job_id="job_2"),
    ),
)
NO_CREDITS: Final = replace(A_FAILED_JOB, answers=replace(A_FAILED_JOB.answers, submit=Refusal(http_status=402)))
Happening = dict[str, Any] | TurnOf
happenings: st.SearchStrategy[list[Happening]] = st.lists(turns | turns | turns | edits, min_size=3, max_size=14)


def retried(**fields: Any) -> Render:
    """A render whose job was made, and is asked for again should it fail."""
    return submitted(**{"backoff_limit": 2} | fields)


ENDING: Final = (running, collecting, completed, failed)
births = st.builds(
    lambda born, fields: born(**fields),
    st.sampled_from([following, following, requesting, requesting, submitted, retried, retried, unanswered, *ENDING]),
    st.sampled_from([{}, *(edit for edit in EDITS if not {"delete", "finalizers"} & set(edit))]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One step of a turn: what was to be done, and what came of it."""

    now: datetime
    terms: Terms
    before: Render
    call: Call | None
    reply: Reply | None
    after: Render
    next: Next


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """The end of a turn: `base` is what was on record before, `stored` what is now."""

    now: datetime
    terms: Terms
    base: Render
    worked: Render
    stored: Render
    next: Next


def live(render: Render, happenings: list[Happening]) -> Iterator[Moment | TurnEnd]:
    """Everything that comes to pass, until the object is gone."""
    now = NOW
    for happening in happenings:
        if isinstance(happening, TurnOf):
            now += timedelta(seconds=happening.after_s)
            left: Render | None = None
            for event in _turn(render, happening, now):
                left = event.stored if isinstance(event, TurnEnd) else None
                yield event
            if left is None:
                return
            render = left
        else:
            changed = edited(render, happening, now)
            if changed is None:
                return
            render = changed


def edited(render: Render, edit: dict[str, Any], now: datetime) -> Render | None:
    """The object after an edit; None where that was the end of it."""
    if "delete" in edit:
        if not render.finalizers or render.deletion_time:
            return render if render.finalizers else None
        return replace(render, deletion_time=now, generation=render.generation + 1)
    if "finalizers" in edit and render.deletion_time and set(edit["finalizers"]) - set(render.finalizers):
        return render  # the API server takes no new one on an object that is being deleted
    changed = replace(render, **edit)
    if changed.deletion_time and not changed.finalizers:
        return None
    if any(name in edit for name in NEEDS_A_SPEC_EDIT) and changed != render:
        changed = replace(changed, generation=changed.generation + 1)
    return changed


def written(base: Status, new: Status) -> Status:
    """`new` as the API server hands it back."""
    return parse_status(merged(merged({}, to_body(base)), to_body(new)))


def _turn(base: Render, turn: TurnOf, now: datetime) -> Iterator[Moment | TurnEnd]:
    render: Render = base
    upcoming: Next = AtOnce()
    for _ in range(STEPS_IN_ONE_TURN):
        if not isinstance(upcoming, AtOnce):
            break
        before = render
        call: Call | None = None
        reply: Reply | None = None
        match next_step(render, now, turn.terms):
            case Rest():
                upcoming = Never()
            case Sleep(delay_s=delay_s):
                upcoming = Again(delay_s=delay_s)
            case Note() as note:
                verdict = noted(render, note, now, turn.terms)
                render, upcoming = verdict.render, verdict.next
            case SetFinalizer(present=present):
                others = tuple(name for name in render.finalizers if name != FINALIZER)
                finalizers = (*others, FINALIZER) if present else others
                render, base = replace(render, finalizers=finalizers), replace(base, finalizers=finalizers)
                if render.deletion_time and not finalizers:
                    return
            case Expire():
                return
            case Submit() if render != base:  # what spends money starts from what is on record
                base = render = stored(base, render)
                continue
            case asked:
                call, reply = asked, turn.answers.to(asked)
                if isinstance(asked, Submit) and not isinstance(reply, Spent | Held | NoSlot | NoCredentials):
                    before = base = render = on_record(base, asked, now, turn)
                verdict = settled(render, asked, reply, now, turn)
                render, upcoming = verdict.render, verdict.next
        yield Moment(now=now, terms=turn.terms, before=before, call=call, reply=reply, after=render, next=upcoming)
    yield TurnEnd(now=now, terms=turn.terms, base=base, worked=render, stored=stored(base, render), next=upcoming)


def stored(base: Render, render: Render) -> Render:
    """What is on record when `render` has been written, if it says more than the record did."""
    is_written = is_worth_writing(base.status, render.status, 0)
    return base.with_status(written(base.status, render.status)) if is_written else base


def on_record(base: Render, call: Submit, now: datetime, turn: TurnOf) -> Render:
    """The object when its job is asked for: with the key as an annotation, the finalizer and the intent."""
    finalizers = base.finalizers
    if base.deletion_cancels and not base.deletion_time and not base.has_finalizer:
        finalizers = (*finalizers, FINALIZER)
    noted_key = replace(base, noted_key=base.base_key, finalizers=finalizers)
    status = intended(noted_key, call, now, turn.terms, fingerprint=FINGERPRINT, asked_before=base.is_being_submitted)
    return noted_key.with_status(written(base.status, status))


def settled(render: Render, call: Call, reply: Reply, now: datetime, turn: TurnOf) -> Verdict:
    """The verdict, with what the turn knows of the key."""
    key = KeyView(
        fingerprint=FINGERPRINT, answered=(Answered(job_id="another", time=now),) if turn.another_answered else ()
    )
    return settle(render, call, reply, now, turn.terms, key)
