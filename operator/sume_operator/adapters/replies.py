"""Bodies of Sume -> reply values. Tolerant on purpose: every field may be missing, or of another type than expected.

A field of a wrong type counts as missing. What a word or a number *means* is decided in core, not here.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Collect,
    Forbidden,
    Found,
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
    Usage,
)
from sume_operator.core.wording import one_line

MAX_RETRY_AFTER_S: Final = 86_400.0
MAX_FOUND: Final = 1000
URL_KEYS: Final = ("url", "public_url", "media_url", "video_url", "image_url")
NOT_MEDIA: Final = frozenset(
    {"status_url", "result_url", "events_url", "api_url", "webhook_url", "callback_url", "cancel_url"}
)
_DETAIL_CHARS: Final = 300


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _mapping(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


Text = Annotated[str | None, BeforeValidator(_text)]
Flag = Annotated[bool | None, BeforeValidator(_flag)]
Number = Annotated[float | None, BeforeValidator(_number)]
Object = Annotated[dict[str, Any] | None, BeforeValidator(_mapping)]


class _Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Error(_Tolerant):
    code: Text = None
    message: Text = None
    public_reason: Text = None
    request_id: Text = None
    retryable: Flag = None
    details: Object = None


class _Payload(_Tolerant):
    """What a payload, or its `job`, may hold."""

    sume_status: Text = None
    status: Text = None
    terminal: Flag = None
    next_poll_after_seconds: Number = None
    canceled: Flag = None
    idempotency_hit: Flag = None
    job_id: Text = None
    request_id: Text = None
    id: Text = None
    error: Object = None
    usage: Object = None
    job: Object = None
    result: Object = None
    artifacts: Any = None


class _Artifact(_Tolerant):
    url: Text = None
    public_url: Text = None
    media_url: Text = None
    video_url: Text = None
    image_url: Text = None
    type: Text = None
    kind: Text = None
    content_type: Text = None
    size_bytes: Number = None
    expires_at: Any = None


class _Body:
    """A JSON object with the envelope taken off: fields are looked for in the payload, then in its `job`."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        wrapped = _mapping(root.get("data"))
        payload = root if wrapped is None else wrapped
        self.is_wrapped = wrapped is not None
        self.trace_id = _text(root.get("request_id")) if wrapped is not None else None
        self.payload = _Payload.model_validate(payload)
        self.job = _Payload.model_validate(self.payload.job or {})
        self.raw_payload = payload

    def first(self, name: str) -> Any:
        """The field, from the payload or else from its job; None where neither has it."""
        value = getattr(self.payload, name)
        return getattr(self.job, name) if value is None else value


def read_reply(call: Call, http_status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Reply:
    """One HTTP answer to `call` -> Reply. Never raises. `headers` must look names up in any case."""
    root = _json_object(body)
    if 200 <= http_status < 300:
        return _success(call, root, headers, body)
    retry_after_s = parse_retry_after(headers.get("Retry-After"), now)
    error = _error_of(root)
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


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """`Retry-After` in seconds or as an HTTP date -> seconds in (0, 86400]; None for anything that makes no sense."""
    if not value:
        return None
    seconds = _number(value)
    if seconds is None:
        try:
            at = parsedate_to_datetime(value)
            seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(seconds, MAX_RETRY_AFTER_S) if seconds > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateHint:
    """What the headers say: so many requests are left for so many seconds."""

    remaining: float
    reset_s: float


def read_hint(headers: Mapping[str, str]) -> RateHint | None:
    """`RateLimit-Remaining` and `-Reset`, also with `X-`; None where they are missing or make no sense."""
    numbers = [
        next((n for prefix in ("", "X-") if (n := _number(headers.get(f"{prefix}RateLimit-{name}"))) is not None), None)
        for name in ("Remaining", "Reset")
    ]
    remaining, reset_s = numbers
    if remaining is None or reset_s is None or remaining < 0 or not 0 < reset_s <= MAX_RETRY_AFTER_S:
        return None
    return RateHint(remaining=remaining, reset_s=reset_s)


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        return _mapping(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _error_of(root: dict[str, Any] | None) -> _Error | None:
    """Sume's error body in any of the shapes seen; None where the answer is none of Sume's."""
    if root is None:
        return None
    nested = root.get("error")
    if isinstance(nested, dict):
        error = _Error.model_validate(nested)
        return error if error.code or error.message else None
    message = _text(nested) or _text(root.get("message")) or _text(root.get("detail"))
    return _Error(message=message) if message else None


def _success(call: Call, root: dict[str, Any] | None, headers: Mapping[str, str], raw: bytes) -> Reply:
    if root is None:
        if isinstance(call, Cancel) and not raw.strip():
            return CancelAccepted()
        return Malformed(detail=_why_not_json(raw))
    try:
        body = _Body(root)
    except ValidationError:
        return Malformed(detail="its fields are of unexpected types")
    if isinstance(call, Submit):
        return _submitted(body)
    if isinstance(call, Collect):
        return JobResult(found=tuple(_found(body)), usage=_usage(body.first("usage")))
    if isinstance(call, Cancel):
        if body.first("canceled") is False:
            return Refusal(http_status=200, code="not_canceled", message="Sume answered canceled: false")
        return CancelAccepted()
    return _job_status(body, headers)


def _submitted(body: _Body) -> Reply:
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
        usage=_usage(body.first("usage")),
    )


def _refusal(http_status: int, error: _Error) -> Refusal:
    """Sume's no, with what it says of each field."""
    parts = [error.message] if error.message else []
    raw = (error.details or {}).get("errors")
    for item in raw if isinstance(raw, list) else ():
        if isinstance(item, dict):
            parts.append(": ".join(text for text in (_text(item.get("path")), _text(item.get("message"))) if text))
    message = one_line("; ".join(part for part in parts if part), 4 * _DETAIL_CHARS)
    code = one_line(error.code, 128) if error.code else None
    return Refusal(http_status=http_status, code=code, message=message or None, retryable=error.retryable)


def _why_not_json(raw: bytes) -> str:
    text = raw.lstrip()[:1]
    if not text:
        return "it is empty"
    return "it is HTML" if text == b"<" else "it is not a JSON object"


def _job_status(body: _Body, headers: Mapping[str, str]) -> Reply:
    word = body.first("sume_status") or body.first("status")
    terminal = body.first("terminal")
    if word is None and terminal is None:
        return Malformed(detail="it has neither a status word nor `terminal`")
    return JobStatus(
        word=word,
        terminal=terminal,
        next_poll_s=body.first("next_poll_after_seconds"),
        error=_job_error(body, headers),
        usage=_usage(body.first("usage")),
    )


def _job_error(body: _Body, headers: Mapping[str, str]) -> JobError | None:
    raw = body.first("error")
    if raw is None:
        return None
    error = _Error.model_validate(raw)
    if not (error.code or error.message or error.public_reason):
        return None
    return JobError(
        code=error.code,
        message=error.message,
        public_reason=error.public_reason,
        request_id=error.request_id or body.trace_id or _text(headers.get("x-sume-request-id")),
    )


def _usage(raw: Mapping[str, Any] | None) -> Usage | None:
    """`captured_amount_usd_micros` and its kin -> a decimal string: captured, else reserved; 0 when refunded."""
    if raw is None:
        return None
    state = _text(raw.get("status"))
    amount = Decimal(0) if state and state.lower() == "refunded" else None
    for stem in ("captured", "charged", "reserved"):
        if amount is None:
            amount = _amount(raw, stem)
    currency = _text(raw.get("currency")) or ("USD" if amount is not None else None)
    if state is None and amount is None:
        return None
    return Usage(
        state=one_line(state, 64) if state else None,
        amount=None if amount is None else f"{amount.normalize():f}"[:32],
        currency=currency[:8] if currency else None,
    )


def _amount(raw: Mapping[str, Any], stem: str) -> Decimal | None:
    for key, value in raw.items():
        if not key.startswith(stem) or isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        unit = 1_000_000 if key.endswith("_micros") else 100 if key.endswith("_cents") else None
        try:
            number = Decimal(str(value).strip())
        except InvalidOperation:
            continue
        if unit and number.is_finite() and 0 <= number < 10**15:
            return number / unit
    return None


def _found(body: _Body) -> Iterator[Found]:
    result = body.first("result")
    artifacts = (result or {}).get("artifacts") or body.first("artifacts")
    found = list(_artifacts(artifacts, None))
    if not found:
        found = list(_loose_urls(body.raw_payload if result is None else result))
    yield from found[:MAX_FOUND]


def _artifacts(value: object, kind: str | None) -> Iterator[Found]:
    """A list of outputs, a mapping by kind, one output, or a bare URL."""
    if isinstance(value, str):
        if "://" in value:
            yield Found(url=value.strip(), kind=kind)
    elif isinstance(value, list):
        for item in value:
            yield from _artifacts(item, kind) if not isinstance(item, list) else ()
    elif isinstance(value, dict):
        artifact = _Artifact.model_validate(value)
        url = next((text for key in URL_KEYS if (text := getattr(artifact, key))), None)
        if url:
            yield _one_found(artifact, url, kind)
        elif kind is None:  # one level only: a mapping by kind
            for name, item in value.items():
                yield from _artifacts(item, str(name))


def _one_found(artifact: _Artifact, url: str, kind: str | None) -> Found:
    return Found(
        url=url,
        kind=artifact.type or artifact.kind or kind,
        content_type=artifact.content_type,
        size_bytes=int(artifact.size_bytes) if artifact.size_bytes and 0 <= artifact.size_bytes < 2**62 else None,
        expires_at=_instant(artifact.expires_at),
    )


def _loose_urls(result: Mapping[str, Any]) -> Iterator[Found]:
    for key, value in result.items():
        url = _text(value)
        if url and key not in NOT_MEDIA and (key.endswith("_url") or key == "url"):
            yield Found(url=url, kind=key.removesuffix("_url") if key != "url" else None)


def _instant(value: object) -> datetime | None:
    """RFC 3339 or seconds since the epoch -> an instant from 1970 on; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    readers: tuple[Callable[[], datetime], ...] = (
        lambda: datetime.fromtimestamp(float(str(value)), UTC),
        lambda: datetime.fromisoformat(str(value)),
    )
    for read in readers:
        try:
            instant = read()
            instant = instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            continue
        return instant if instant.year >= 1970 else None
    return None
