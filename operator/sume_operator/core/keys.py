"""What the answers of one API key, over all pollers, mean for everybody who uses that key."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sume_operator.core.job import (
    Call,
    CancelAccepted,
    Check,
    Collect,
    Forbidden,
    JobResult,
    JobStatus,
    RateLimited,
    Reply,
    Submit,
    Submitted,
    Unauthorized,
)
from sume_operator.core.pace import KEY_PROBE_S, MAX_HOLD_S, Pace

UNAUTHORIZED: Final = "Unauthorized"
RATE_LIMITED: Final = "RateLimited"
FORBIDDEN_JOBS_THAT_PAUSE: Final = 3
ANSWER_IS_FRESH_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Which job Sume last answered for with this key, and when."""

    job_id: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """What is known of one key. `hold_reason` with `hold_s` > 0: nobody may read with it for so long."""

    hold_reason: str | None = None
    hold_s: float = 0.0
    in_doubt: bool = False
    fingerprint: str | None = None
    answered: tuple[Answered, ...] = ()

    def another_was_answered(self, job_id: str, since: datetime) -> bool:
        """Whether another job than `job_id` was answered after `since`: then the key and the base are right."""
        return any(a.job_id != job_id and a.time >= since for a in self.answered)


NOTHING_KNOWN: Final = KeyView()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAnswer:
    """The key works: lift a pause, forget refusals, remember the job."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteForbidden:
    """403 for this job; the key pauses after three different ones in a row."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Nobody reads with the key for `hold_s`. `probe`: afterwards one look at a time, not all at once."""

    reason: str
    hold_s: float
    probe: bool


KeyNote = NoteAnswer | NoteForbidden | Pause


def key_note(call: Call, reply: Reply, view: KeyView, now: datetime, pace: Pace) -> KeyNote | None:
    """What is to be remembered of the key after `reply`; None where that is known already."""
    match reply:
        case Unauthorized():
            return Pause(reason=UNAUTHORIZED, hold_s=KEY_PROBE_S, probe=True)
        case Forbidden() if not isinstance(call, Submit):
            return NoteForbidden(job_id=call.job_id)
        case RateLimited(code=code) if isinstance(call, Submit) and says_full(code):
            return None  # the workspace is full, which is no fault of the key
        case RateLimited(retry_after_s=asked_s) if isinstance(call, Check | Collect | Submit):
            return Pause(reason=RATE_LIMITED, hold_s=min(asked_s or pace.error_s, MAX_HOLD_S), probe=False)
        case JobStatus() | JobResult() | CancelAccepted() if not isinstance(call, Submit):
            if _is_known(call.job_id, view, now):
                return None
            return NoteAnswer(job_id=call.job_id)
        case Submitted(job_id=job_id):
            return NoteAnswer(job_id=job_id) if view.in_doubt else None
        case _:
            return None


def says_full(code: str | None) -> bool:
    """Whether an error code says that the workspace has no place for another job. Which one Sume uses is not known."""
    return any(word in (code or "").lower() for word in ("full", "queue", "capacity", "concurren", "active_jobs"))


def _is_known(job_id: str, view: KeyView, now: datetime) -> bool:
    """Whether the key is in no doubt and both this job and another one were answered a moment ago."""
    if view.in_doubt:
        return False
    fresh = [a.job_id for a in view.answered if (now - a.time).total_seconds() < ANSWER_IS_FRESH_S]
    return bool(fresh) and (len(fresh) > 1 or fresh[0] == job_id)
