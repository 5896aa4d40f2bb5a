"""Stable choices made from text: the same in every process, unlike `hash`."""

import hashlib
import uuid


def fingerprint(api_key: str) -> str:
    """Stand-in for a key wherever it may be seen: the first 12 hex digits of its SHA-256."""
    return hashlib.sha256(api_key.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def share(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(_digest(parts)[:6], "big") / float(1 << 48)


def choice(count: int, *parts: object) -> int:
    """A number in [0, count) that depends on the parts alone."""
    return int.from_bytes(_digest(parts)[:6], "big") % count


def job_id(*parts: object) -> str:
    """A job id of Sume's kind. Its hexadecimal digits cannot spell any of the magic words of `fates`."""
    return f"job_{uuid.UUID(bytes=_digest(parts)[:16], version=4)}"


def _digest(parts: tuple[object, ...]) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).digest()
