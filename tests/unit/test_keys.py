"""What one answer means for everybody who uses the same key."""

from typing import Any

import pytest

from builders import NOW, ONE_VIDEO, PACE, RUNNING, at
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Check,
    Collect,
    Forbidden,
    Held,
    JobUnknown,
    Malformed,
    NoCredentials,
    RateLimited,
    Refusal,
    Reply,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.keys import (
    NOTHING_KNOWN,
    Answered,
    KeyNote,
    KeyView,
    NoteAnswer,
    NoteForbidden,
    Pause,
    key_note,
)

JOB = "job_1"
CHECK, COLLECT, CANCEL = Check(job_id=JOB), Collect(job_id=JOB), Cancel(job_id=JOB)

NOTES: list[tuple[str, Call, Reply, KeyNote | None]] = [
    ("401 holds everybody, one may probe", CHECK, Unauthorized(), Pause(reason="Unauthorized", hold_s=60, probe=True)),
    ("401 on cancel, too", CANCEL, Unauthorized(), Pause(reason="Unauthorized", hold_s=60, probe=True)),
    ("403 is counted by job", CHECK, Forbidden(), NoteForbidden(job_id=JOB)),
    ("429 holds all reads", CHECK, RateLimited(retry_after_s=90), Pause(reason="RateLimited", hold_s=90, probe=False)),
    ("429 on a result", COLLECT, RateLimited(), Pause(reason="RateLimited", hold_s=PACE.error_s, probe=False)),
    (
        "429 for longer than a day",
        CHECK,
        RateLimited(retry_after_s=1e9),
        Pause(reason="RateLimited", hold_s=86_400, probe=False),
    ),
    ("429 on a cancel holds no reads", CANCEL, RateLimited(retry_after_s=90), None),
    ("an answer", CHECK, RUNNING, NoteAnswer(job_id=JOB)),
    ("a result", COLLECT, ONE_VIDEO, NoteAnswer(job_id=JOB)),
    ("a cancel", CANCEL, CancelAccepted(), NoteAnswer(job_id=JOB)),
    ("404", CHECK, JobUnknown(), None),
    ("a refusal", COLLECT, Refusal(http_status=409), None),
    ("no answer", CHECK, Unavailable(detail="x"), None),
    ("nonsense", CHECK, Malformed(detail="x"), None),
    ("nothing sent: on hold", CHECK, Held(reason="RateLimited", retry_after_s=5), None),
    ("nothing sent: no key", CHECK, NoCredentials(reason="x", message="x"), None),
]


@pytest.mark.parametrize(("call", "reply", "note"), [row[1:] for row in NOTES], ids=[row[0] for row in NOTES])
def test_what_is_remembered_of_a_key(call: Call, reply: Reply, note: KeyNote | None) -> None:
    assert key_note(call, reply, NOTHING_KNOWN, NOW, PACE) == note


def view(*answered: tuple[str, float], **fields: Any) -> KeyView:
    return KeyView(answered=tuple(Answered(job_id=job_id, time=at(s)) for job_id, s in answered), **fields)


KNOWN: list[tuple[str, KeyView, bool]] = [
    ("nothing known", view(), False),
    ("this one a moment ago", view((JOB, -5)), True),
    ("another one a moment ago", view(("job_2", -5)), False),
    ("two others a moment ago", view(("job_2", -5), ("job_3", -9)), True),
    ("this one and another", view((JOB, -5), ("job_2", -9)), True),
    ("this one long ago", view((JOB, -60)), False),
    ("two others, one of them long ago", view(("job_2", -5), ("job_3", -61)), False),
    ("the key is in doubt", view((JOB, -5), ("job_2", -5), in_doubt=True), False),
]


@pytest.mark.parametrize(("known", "is_known"), [row[1:] for row in KNOWN], ids=[row[0] for row in KNOWN])
def test_what_is_known_already_is_not_written_again(known: KeyView, is_known: bool) -> None:
    assert key_note(CHECK, RUNNING, known, NOW, PACE) == (None if is_known else NoteAnswer(job_id=JOB))


@pytest.mark.parametrize("reply", [Unauthorized(), Forbidden(), RateLimited()], ids=lambda reply: type(reply).__name__)
def test_trouble_with_a_key_is_always_remembered(reply: Reply) -> None:
    assert key_note(CHECK, reply, view((JOB, 0), ("job_2", 0)), NOW, PACE) is not None


@pytest.mark.parametrize(
    ("answered", "since_s", "was"),
    [
        ([("job_2", 10)], 0, True),
        ([("job_2", 0)], 0, True),
        ([("job_2", -1)], 0, False),
        ([(JOB, 10)], 0, False),
        ([(JOB, 10), ("job_2", -5), ("job_3", 5)], 0, True),
        ([], 0, False),
    ],
    ids=str,
)
def test_whether_another_job_was_answered(answered: list[tuple[str, float]], since_s: float, was: bool) -> None:
    assert view(*answered).another_was_answered(JOB, at(since_s)) is was
