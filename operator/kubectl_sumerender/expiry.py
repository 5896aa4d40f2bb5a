"""When an address of a file ceases to work, read off the address itself where its signature says it. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qs, urlsplit

# Signed at / works for so many seconds: Amazon's and Google's way.
_LIVES: Final = (("x-amz-date", "x-amz-expires"), ("x-goog-date", "x-goog-expires"))
# Works until: seconds since the epoch (CloudFront, older S3 and Google), or a time (Azure).
_ENDS: Final = ("x-sume-expires", "expires", "exp", "se")
_EARLIEST_S: Final = 946_684_800  # the year 2000: a smaller number is no instant
_LATEST_S: Final = 32_503_680_000  # the year 3000: milliseconds, or nonsense


def expires_at(url: str, told: str = "") -> datetime | None:
    """The earliest end that the address (or `told`, a time of the API) names; None where neither does."""
    named = {name.lower(): values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    ends = [_instant(told), *(_instant(named.get(name, "")) for name in _ENDS), *_lives(named)]
    return min((end for end in ends if end is not None), default=None)


def _lives(named: Mapping[str, str]) -> list[datetime | None]:
    found: list[datetime | None] = []
    for since, seconds in _LIVES:
        start = _instant(named.get(since, ""))
        length = named.get(seconds, "")
        if start is not None and length.isdecimal() and len(length) < 10:
            found.append(start + timedelta(seconds=int(length)))
    return found


def _instant(text: str) -> datetime | None:
    """Seconds since the epoch, or a time in ISO 8601 (with or without its dashes); None for anything else."""
    if not text.isascii():
        return None
    if text.isdecimal() and "T" not in text:
        seconds = int(text) if len(text) < 12 else 0
        return datetime.fromtimestamp(seconds, UTC) if _EARLIEST_S < seconds < _LATEST_S else None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
