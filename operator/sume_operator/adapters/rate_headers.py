"""What headers say of rates: `Retry-After`, and the `RateLimit-*` family."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from sume_operator.adapters.bodies import number_of

MAX_RETRY_AFTER_S: Final = 86_400.0


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """`Retry-After` in seconds or as an HTTP date -> seconds in (0, 86400]; None for anything that makes no sense."""
    if not value:
        return None
    seconds = number_of(value)
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
    remaining, reset_s = _first(headers, "Remaining"), _first(headers, "Reset")
    if remaining is None or reset_s is None or remaining < 0 or not 0 < reset_s <= MAX_RETRY_AFTER_S:
        return None
    return RateHint(remaining=remaining, reset_s=reset_s)


def _first(headers: Mapping[str, str], name: str) -> float | None:
    values = (number_of(headers.get(f"{prefix}RateLimit-{name}")) for prefix in ("", "X-"))
    return next((value for value in values if value is not None), None)
