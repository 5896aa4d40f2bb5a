"""Text for people: cut to what the schema takes, with nothing secret in it."""

import re

_QUERY_OF_URL = re.compile(r"(https?://[^\s?#\"<>]++)[?#][^\s\"<>]*", re.IGNORECASE)
_USERINFO_OF_URL = re.compile(r"\b(\w{1,16}://)[^\s/]+@")
_BEARER = re.compile(r"\bbearer\s+[\"']?[^\s\"',;]+", re.IGNORECASE)
_KEY_HEADER = re.compile(r"\b(x-api-key|authorization)([\"']?\s*[:=]\s*[\"']?|\s+)[^\s\"',;]+", re.IGNORECASE)
_READ_AHEAD = 8  # so many times what fits is read, for masking makes a text shorter; the rest of a megabyte is not
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def masked(text: str) -> str:
    """`text` without query strings (signatures), user names in URLs and anything that looks like a key."""
    text = _QUERY_OF_URL.sub(r"\1?…", text)
    text = _USERINFO_OF_URL.sub(r"\1…@", text)
    text = _BEARER.sub("Bearer…", text)  # first: what follows an Authorization is then one word
    return _KEY_HEADER.sub(r"\1\2…", text)


def one_line(text: str, max_chars: int) -> str:
    """`text` masked, on one line, and cut to `max_chars` with a mark where it was cut."""
    flat = _CONTROL.sub(" ", masked(text[: _READ_AHEAD * max_chars])).strip()
    return flat if len(flat) <= max_chars else flat[: max_chars - 1] + "…"


def one_line_or_none(text: str | None, max_chars: int) -> str | None:
    """As one_line; None for nothing at all."""
    return one_line(text, max_chars) or None if text else None


def in_seconds(delay_s: float) -> str:
    """A duration as people say it: `45 s`, `12 min`, `3.5 h`."""
    if delay_s < 120:
        return f"{delay_s:.0f} s"
    return f"{delay_s / 60:.0f} min" if delay_s < 7200 else f"{delay_s / 3600:.1f} h"
