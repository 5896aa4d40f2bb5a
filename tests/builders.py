"""Renders, replies and statuses for the unit tests: what a test does not name is as ordinary as can be."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sume_operator.core.job import (
    Call,
    Cancel,
    Check,
    Collect,
    Found,
    JobResult,
    JobStatus,
    Reply,
    Submit,
    Submitted,
    Unavailable,
)
from sume_operator.core.keys import NOTHING_KNOWN, KeyView
from sume_operator.core.pace import Pace, Terms
from sume_operator.core.render import FINALIZER, Ref, Render, Request
from sume_operator.core.settle import settle
from sume_operator.core.status import Status
from sume_operator.core.submitting import intended
from sume_operator.core.verdict import Again, Verdict

NOW: Final = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
JOB: Final = "job_0b6f"
API_URL: Final = "https://api.sume.com/v1"
PACE: Final = Pace()
TERMS: Final = Terms(pace=PACE, api_url=API_URL)
REF: Final = Ref("studio", "intro", "5e0b-1")

QUEUED: Final = JobStatus(word="queued", terminal=False)
RUNNING: Final = JobStatus(word="processing", terminal=False)
COMPLETED: Final = JobStatus(word="completed", terminal=True)
FAILED: Final = JobStatus(word="failed", terminal=True)
CANCELED: Final = JobStatus(word="canceled", terminal=True)
MADE: Final = Submitted(job_id=JOB)
FINGERPRINT: Final = "f1"
KEY: Final = KeyView(fingerprint=FINGERPRINT)
ONE_VIDEO: Final = JobResult(found=(Found(url="https://media.sume.com/1.mp4", content_type="video/mp4"),))


def at(seconds: float) -> datetime:
    """So long after NOW."""
    return NOW + timedelta(seconds=seconds)


def following(**fields: Any) -> Render:
    """A render that follows a job and that nobody has looked at."""
    ordinary: dict[str, Any] = {"ref": REF, "followed_job_id": JOB, "creation_time": NOW}
    return Render(**ordinary | fields)


def requesting(**fields: Any) -> Render:
    """A render that asks for a job it does not have."""
    request = Request(model="sume/avatar-video/v1.0", arguments={"prompt": "Hi"})
    ordinary: dict[str, Any] = {"ref": REF, "creation_time": NOW, "request": request}
    return Render(**ordinary | fields)


def submit_of(render: Render) -> Submit:
    """The call that asks for its job."""
    assert render.request is not None
    return Submit(
        endpoint=render.request.entry_point,
        model=render.request.model,
        idempotency_key=render.idempotency_key,
        arguments=render.request.arguments,
    )


def intending(render: Render, now: datetime = NOW) -> Render:
    """The render as a turn has it on record before it asks."""
    asked_before = render.is_being_submitted
    noted = replace(render, noted_key=render.base_key)
    status = intended(noted, submit_of(render), now, TERMS, fingerprint=FINGERPRINT, asked_before=asked_before)
    return noted.with_status(status)


def asked(render: Render, reply: Reply, now: datetime = NOW) -> Verdict:
    """The verdict on a request that was sent."""
    return answered(intending(render, now), reply, now)


def answered(render: Render, reply: Reply, now: datetime = NOW) -> Verdict:
    """The verdict on a request, sent or not, of a render as it is on record."""
    return _settled(render, submit_of(render), reply, now, KEY)


def submitted(**fields: Any) -> Render:
    """A render whose job was made at NOW."""
    return asked(requesting(**fields), MADE).render


def unanswered(**fields: Any) -> Render:
    """A render that asked for its job at NOW, and got no answer."""
    return asked(requesting(**fields), Unavailable(detail="no complete answer within 90 s")).render


def running(**fields: Any) -> Render:
    """A render whose job was seen running at NOW."""
    return checked(following(**fields), RUNNING).render


def collecting(**fields: Any) -> Render:
    """A render whose job was seen running, then completed, at NOW; its outputs are still to be read."""
    return checked(running(**fields), COMPLETED).render


def completed(**fields: Any) -> Render:
    """A render that ended with one video at NOW."""
    return collected(collecting(**fields), ONE_VIDEO).render


def failed(**fields: Any) -> Render:
    """A render whose job failed at NOW."""
    return checked(running(**fields), FAILED).render


def leaving(render: Render) -> Render:
    """The same render being deleted, and waiting for us."""
    changes: dict[str, Any] = {"deletion_time": NOW, "finalizers": (FINALIZER,), "generation": render.generation + 1}
    return edited(render, **changes)


def edited(render: Render, **changes: Any) -> Render:
    """The same render after its owner's edit of the spec."""
    fields = {name: getattr(render, name) for name in Render.__dataclass_fields__}
    return Render(**fields | {"generation": render.generation + 1} | changes)


def checked(render: Render, reply: Reply, now: datetime = NOW, key: KeyView = NOTHING_KNOWN) -> Verdict:
    """The verdict on a status read."""
    return _settled(render, Check(job_id=str(render.job_id)), reply, now, key)


def collected(render: Render, reply: Reply, now: datetime = NOW) -> Verdict:
    """The verdict on a result read."""
    return _settled(render, Collect(job_id=str(render.job_id)), reply, now, NOTHING_KNOWN)


def canceled(render: Render, reply: Reply, now: datetime = NOW) -> Verdict:
    """The verdict on a cancel."""
    return _settled(render, Cancel(job_id=str(render.job_id)), reply, now, NOTHING_KNOWN)


def _settled(render: Render, call: Call, reply: Reply, now: datetime, key: KeyView) -> Verdict:
    return settle(render, call, reply, now, TERMS, key)


def reason(render: Render, kind: str) -> str | None:
    """`True/Observed`: what one condition says; None where it is not set."""
    condition = render.status.condition(kind)
    return f"{condition.status}/{condition.reason}" if condition else None


def delay_of(verdict: Verdict) -> float:
    """In how many seconds it is looked at again; asserts that it is."""
    assert isinstance(verdict.next, Again)
    return verdict.next.delay_s


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386: what a merge patch makes of a document."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def ended(status: Status) -> tuple[Any, ...]:
    """What may never change again once a render has ended."""
    outcome = [
        (c.type, c.status, c.reason, c.message, c.last_transition_time)
        for c in status.conditions
        if c.type in ("Succeeded", "Finished")
    ]
    return status.state, status.terminal, status.completion_time, status.start_time, outcome
