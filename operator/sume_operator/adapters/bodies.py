"""The shapes of Sume's bodies: tolerant scalars, the envelope, errors and usage.

A field of a wrong type counts as missing. Nothing here raises for what Sume sends, but for pydantic's ValidationError.
"""

import json
import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from sume_operator.core.job import Usage
from sume_operator.core.wording import one_line


def text_of(value: object) -> str | None:
    """A text without blanks around it; None for anything else, or for nothing."""
    return value.strip() or None if isinstance(value, str) else None


def flag_of(value: object) -> bool | None:
    """A real bool; None for anything else."""
    return value if isinstance(value, bool) else None


def number_of(value: object) -> float | None:
    """A finite number, also as a numeric text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def mapping_of(value: object) -> dict[str, Any] | None:
    """A JSON object; None for anything else."""
    return value if isinstance(value, dict) else None


def error_fields_of(value: object) -> dict[str, Any] | None:
    """An error, which may be no more than a text."""
    return {"message": value} if isinstance(value, str) else mapping_of(value)


Text = Annotated[str | None, BeforeValidator(text_of)]
Flag = Annotated[bool | None, BeforeValidator(flag_of)]
Number = Annotated[float | None, BeforeValidator(number_of)]
Object = Annotated[dict[str, Any] | None, BeforeValidator(mapping_of)]
ErrorFields = Annotated[dict[str, Any] | None, BeforeValidator(error_fields_of)]


class Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ErrorBody(Tolerant):
    code: Text = None
    message: Text = None
    public_reason: Text = None
    request_id: Text = None
    retryable: Flag = None
    details: Object = None


class Payload(Tolerant):
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
    error: ErrorFields = None
    usage: Object = None
    job: Object = None
    result: Object = None
    artifacts: Any = None


class Body:
    """A JSON object with the envelope taken off: fields are looked for in the payload, then in its `job`."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        wrapped = mapping_of(root.get("data"))
        payload = root if wrapped is None else wrapped
        self.is_wrapped = wrapped is not None
        self.trace_id = text_of(root.get("request_id")) if wrapped is not None else None
        self.payload = Payload.model_validate(payload)
        self.job = Payload.model_validate(self.payload.job or {})
        self.raw_payload = payload

    def first(self, name: str) -> Any:
        """The field, from the payload or else from its job; None where neither has it."""
        value = getattr(self.payload, name)
        return getattr(self.job, name) if value is None else value


def json_object(body: bytes) -> dict[str, Any] | None:
    try:
        return mapping_of(json.loads(body))
    except (ValueError, RecursionError):
        return None


def error_of(root: dict[str, Any] | None) -> ErrorBody | None:
    """Sume's error body in any of the shapes seen; None where the answer is none of Sume's."""
    if root is None:
        return None
    nested = root.get("error")
    if isinstance(nested, dict):
        error = ErrorBody.model_validate(nested)
        return error if error.code or error.message else None
    message = text_of(nested) or text_of(root.get("message")) or text_of(root.get("detail"))
    return ErrorBody(message=message) if message else None


def usage_of(raw: Mapping[str, Any] | None) -> Usage | None:
    """`captured_amount_usd_micros` and its kin -> a decimal string: captured, else reserved; 0 when refunded."""
    if raw is None:
        return None
    state = text_of(raw.get("status"))
    amount = Decimal(0) if state and state.lower() == "refunded" else None
    for stem in ("captured", "charged", "reserved"):
        if amount is None:
            amount = _amount(raw, stem)
    currency = text_of(raw.get("currency")) or ("USD" if amount is not None else None)
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
