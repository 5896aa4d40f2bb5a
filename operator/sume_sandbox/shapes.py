"""The same fact in any legal shape of Sume's API: pure functions from facts to response bodies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sume_sandbox import digest, links
from sume_sandbox.outputs import API_BASE, CONTENT_POLICY_REJECTED, JobError, Output
from sume_sandbox.shape_table import Shape
from sume_sandbox.states import CONTENT_POLICY_WORD, SYNONYMS, JobState

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """What a status answer says, whatever its shape."""

    job_id: str
    word: str  # a state's plainest word is put in the shape's synonym and case; any other is said as it is
    ended: bool
    terminal: bool | None = None  # said as it is, whatever the shape; None: `ended`, where the shape says it
    next_poll_s: float | str | None = None
    model: str | None = None
    kind: str = "video"
    error: JobError | None = None
    cost_usd_micros: int = 420_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """What a result answer says, whatever its shape."""

    job_id: str
    outputs: tuple[Output, ...]
    expires_at_s: int  # epoch; said where the shape signs
    link_round: int = 0  # of the signatures


def status_body(facts: StatusFacts, shape: Shape) -> Body:
    """The answer to `GET /jobs/{id}/status`."""
    payload = _named(facts.job_id, shape, _words(facts.word, shape, facts.error))
    if facts.terminal is not None:
        payload["terminal"] = facts.terminal
    elif shape.says_terminal:
        payload["terminal"] = facts.ended
        payload["result_ready"] = facts.word == JobState.COMPLETED
    payload.update(_pace(facts, shape))
    if shape.tells_usage:
        payload["usage"] = _usage(facts, shape)
        _job(payload, facts.job_id).update(type=facts.kind, **({"model": facts.model} if facts.model else {}))
    if facts.error is not None:
        job = _job(payload, facts.job_id)
        job.setdefault("status", _words(facts.word, shape, facts.error)["job.status"])
        job["error"] = _error(facts.error)
    return _enveloped(payload, facts.job_id, shape)


def result_body(facts: ResultFacts, shape: Shape) -> Body:
    """The answer to `GET /jobs/{id}/result` of a completed job."""
    payload = _named(facts.job_id, shape, _words(JobState.COMPLETED, shape, None))
    layout = _layout(facts.outputs, shape)
    if layout.outputs_in == "loose":
        loose = {f"{output.kind}_url": _address(output, facts, layout) for output in facts.outputs}
        payload["result"] = {**loose, "status_url": f"{API_BASE}/jobs/{facts.job_id}/status"}
        return _enveloped(payload, facts.job_id, shape)
    artifacts: list[Body] | dict[str, Body]
    if layout.by_kind:
        artifacts = {output.kind: _artifact(output, facts, layout) for output in facts.outputs}
    else:
        artifacts = [_artifact(output, facts, layout) for output in facts.outputs]
    payload.update(
        {"result": {"artifacts": artifacts}} if layout.outputs_in != "artifacts" else {"artifacts": artifacts}
    )
    return _enveloped(payload, facts.job_id, shape)


def submit_body(job_id: str, word: str, *, replayed: bool, shape: Shape) -> Body:
    """The answer to a submission."""
    payload = _worded(job_id, shape, _words(word, shape, None))
    if shape.submit_id == "job.id":
        _job(payload, job_id)
    else:
        payload[shape.submit_id] = job_id
    return _enveloped({**payload, "idempotency_hit": replayed}, job_id, shape)


def cancel_body(job_id: str, shape: Shape) -> Body:
    """The answer to a cancellation that was carried out."""
    body = {"request_id": job_id, "job_id": job_id, "status": "CANCELED", "canceled": True}
    return _enveloped(body, job_id, shape)


def _named(job_id: str, shape: Shape, words: Mapping[str, str]) -> Body:
    """A payload with the job's id and its status word, each where the shape has it."""
    payload: Body = {**dict.fromkeys(shape.ids, job_id), **_worded(job_id, shape, words)}
    if not shape.ids:
        _job(payload, job_id)
    return payload


def _worded(job_id: str, shape: Shape, words: Mapping[str, str]) -> Body:
    payload: Body = {}
    for field in shape.word_fields:
        if field == "job.status":
            _job(payload, job_id)["status"] = words[field]
        else:
            payload[field] = words[field]
    return payload


def _job(payload: Body, job_id: str) -> Body:
    job: Body = payload.setdefault("job", {"id": job_id})
    return job


def _words(word: str, shape: Shape, error: JobError | None) -> Mapping[str, str]:
    """The status word for each field that can hold one."""
    if word not in tuple(JobState):
        return dict.fromkeys(("sume_status", "status", "job.status"), word)
    by_policy = error is not None and error.public_reason == CONTENT_POLICY_REJECTED.public_reason
    if word == JobState.FAILED and by_policy and shape.synonym:
        word = CONTENT_POLICY_WORD
    else:
        synonyms = SYNONYMS[JobState(word)]
        word = synonyms[shape.synonym % len(synonyms)]
    cased = {"lower": word, "upper": word.upper(), "title": word.title(), "padded": f" {word} "}[shape.casing]
    return {"sume_status": word, "status": cased, "job.status": cased}


def _pace(facts: StatusFacts, shape: Shape) -> Body:
    """When to look again: absent or null once nothing more will come."""
    if facts.next_poll_s is None:
        return {"next_poll_after_seconds": None} if facts.ended and shape.says_terminal else {}
    delay = _number(facts.next_poll_s, shape)
    pace: Body = {"next_poll_after_seconds": delay}
    if shape.recommends:
        pace["recommended_poll_interval_seconds"] = delay
    return pace


def _number(value: float | str, shape: Shape) -> float | int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if shape.numbers_as_text else value


def _usage(facts: StatusFacts, shape: Shape) -> Body:
    """What the job costs: reserved while it lives, charged on success, given back otherwise."""
    kept = "charged" if facts.word == JobState.COMPLETED else "refunded"
    status = kept if facts.ended else "reserved"
    return {
        "status": status,
        "currency": "USD",
        f"{status}_amount_usd_micros": _number(facts.cost_usd_micros, shape),
        f"{status}_amount_usd_cents": _number(facts.cost_usd_micros // 10_000, shape),
    }


def _error(error: JobError) -> Body:
    fields = {"code": error.code, "message": error.message, "public_reason": error.public_reason}
    return {name: value for name, value in fields.items() if value is not None}


def _layout(outputs: tuple[Output, ...], shape: Shape) -> Shape:
    """The shape, or its list form where a mapping or loose keys could not hold these outputs without a loss."""
    kinds = {output.kind for output in outputs}
    if len(kinds) < len(outputs) or (shape.outputs_in == "loose" and not kinds <= {"video", "image", "audio"}):
        plain = "result.artifacts" if shape.outputs_in == "loose" else shape.outputs_in
        return replace(shape, outputs_in=plain, by_kind=False)
    return shape


def _artifact(output: Output, facts: ResultFacts, shape: Shape) -> Body:
    url_key: str = shape.url_key
    if url_key == "typed":
        url_key = f"{output.kind}_url" if output.kind in ("video", "image") else "url"
    artifact: Body = {url_key: _address(output, facts, shape)}
    if not shape.by_kind:  # there the key of the mapping is the kind
        artifact[shape.kind_key] = output.kind
    if output.content_type is not None:
        artifact["content_type"] = output.content_type
    if output.size_bytes is not None:
        artifact["size_bytes"] = output.size_bytes
    if shape.signed:
        artifact["expires_at"] = datetime.fromtimestamp(facts.expires_at_s, UTC).isoformat()
    return artifact


def _address(output: Output, facts: ResultFacts, shape: Shape) -> str:
    if not shape.signed or "?" in output.url:
        return output.url
    return links.signed(output.url, facts.expires_at_s, facts.link_round)


def _enveloped(payload: Body, job_id: str, shape: Shape) -> Body:
    if not shape.wrapped:
        return payload
    trace = {"request_id": f"req_{digest.fingerprint(job_id)}"} if shape.root_trace else {}
    return {**trace, "data": payload}
