"""Bodies of Sume -> reply values. Tolerant on purpose: every field may be missing, or of another type than expected.

A field of a wrong type counts as missing. What a word or a number *means* is decided in core, not here.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from sume_operator.adapters.bodies import Body, ErrorBody, error_of, json_object, text_of, usage_of
from sume_operator.adapters.rate_headers import parse_retry_after
from sume_operator.adapters.results import found_in
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Collect,
    Forbidden,
    JobError,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    RateLimited,
    Refusal,
    Reply,
    Submit,
    Submitted,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.wording import one_line

_DETAIL_CHARS: Final = 300


def read_reply(call: Call, http_status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Reply:
    """One HTTP answer to `call` -> Reply. Never raises. `headers` must look names up in any case."""
    root = json_object(body)
    if 200 <= http_status < 300:
        return _success(call, root, headers, body)
    retry_after_s = parse_retry_after(headers.get("Retry-After"), now)
    error = error_of(root)
    message = one_line(error.message, _DETAIL_CHARS) if error and error.message else None
    match http_status:
        case 401:
            return Unauthorized(message=message)
        case 403:
            return Forbidden(message=message)
        case 429:
            return RateLimited(retry_after_s=retry_after_s, code=error.code if error else None)
        case code if isinstance(call, Submit) and error and error.retryable is False and (code >= 500 or code == 408):
            return _refusal(http_status, error)
        case 408 | 503:
            return Unavailable(detail=f"HTTP {http_status}", retry_after_s=retry_after_s)
        case code if code >= 500:
            return Unavailable(detail=f"HTTP {http_status}")
        case code if code < 400:
            return Malformed(detail=f"HTTP {http_status}, a redirect, which is not followed with a key")
    if error is None or not (error.code or http_status not in (404, 410)):
        return Malformed(detail=f"HTTP {http_status} without an error body of Sume's")
    if http_status in (404, 410):
        return JobUnknown(http_status=http_status, message=message)
    return _refusal(http_status, error)


def _success(call: Call, root: dict[str, Any] | None, headers: Mapping[str, str], raw: bytes) -> Reply:
    if root is None:
        if isinstance(call, Cancel) and not raw.strip():
            return CancelAccepted()
        return Malformed(detail=_why_not_json(raw))
    try:
        body = Body(root)
    except ValidationError:
        return Malformed(detail="its fields are of unexpected types")
    if isinstance(call, Submit):
        return _submitted(body)
    if isinstance(call, Collect):
        return JobResult(found=tuple(found_in(body)), usage=usage_of(body.first("usage")))
    if isinstance(call, Cancel):
        if body.first("canceled") is False:
            return Refusal(http_status=200, code="not_canceled", message="Sume answered canceled: false")
        return CancelAccepted()
    return _job_status(body, headers)


def _submitted(body: Body) -> Reply:
    """The job has its id under one of four names. Without `data` a request_id may be a trace id: it comes last."""
    payload, job = body.payload, body.job
    names = (payload.job_id, payload.request_id, payload.id, job.id, job.job_id)
    if not body.is_wrapped:
        names = (payload.job_id, job.id, job.job_id, payload.id, payload.request_id)
    job_id = next((name for name in names if name), None)
    if job_id is None:
        return Malformed(detail="it names no job")
    return Submitted(
        job_id=job_id,
        replayed=bool(body.first("idempotency_hit")),
        word=body.first("sume_status") or body.first("status"),
        next_poll_s=body.first("next_poll_after_seconds"),
        usage=usage_of(body.first("usage")),
    )


def _refusal(http_status: int, error: ErrorBody) -> Refusal:
    """Sume's no, with what it says of each field."""
    parts = [error.message] if error.message else []
    raw = (error.details or {}).get("errors")
    for item in raw if isinstance(raw, list) else ():
        if isinstance(item, dict):
            parts.append(": ".join(text for text in (text_of(item.get("path")), text_of(item.get("message"))) if text))
    message = one_line("; ".join(part for part in parts if part), 4 * _DETAIL_CHARS)
    code = one_line(error.code, 128) if error.code else None
    return Refusal(http_status=http_status, code=code, message=message or None, retryable=error.retryable)


def _why_not_json(raw: bytes) -> str:
    text = raw.lstrip()[:1]
    if not text:
        return "it is empty"
    return "it is HTML" if text == b"<" else "it is not a JSON object"


def _job_status(body: Body, headers: Mapping[str, str]) -> Reply:
    word = body.first("sume_status") or body.first("status")
    terminal = body.first("terminal")
    if word is None and terminal is None:
        return Malformed(detail="it has neither a status word nor `terminal`")
    return JobStatus(
        word=word,
        terminal=terminal,
        next_poll_s=body.first("next_poll_after_seconds"),
        error=_job_error(body, headers),
        usage=usage_of(body.first("usage")),
    )


def _job_error(body: Body, headers: Mapping[str, str]) -> JobError | None:
    raw = body.first("error")
    if raw is None:
        return None
    error = ErrorBody.model_validate(raw)
    if not (error.code or error.message or error.public_reason):
        return None
    return JobError(
        code=error.code,
        message=error.message,
        public_reason=error.public_reason,
        request_id=error.request_id or body.trace_id or text_of(headers.get("x-sume-request-id")),
    )
