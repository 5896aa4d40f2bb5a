"""What the sandbox saw of those who fetched files: how often, which parts, how many bytes, and which headers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class FileLog:
    """Every request for one file."""

    requests: int = 0
    bytes_sent: int = 0  # of bodies, handed to the connection
    ranges: list[str] = field(default_factory=list)  # as they were asked for; empty: the whole
    answers: Counter[str] = field(default_factory=Counter)


class MediaLog:
    """All files, by `JOB/NAME`, and the names of all request headers. Their values are not kept."""

    def __init__(self) -> None:
        self._files: dict[str, FileLog] = {}
        self._header_names: set[str] = set()

    def asked(self, file: str, headers: Mapping[str, str]) -> FileLog:
        """Count one request."""
        self._header_names.update(name.lower() for name in headers)
        log = self._files.setdefault(file, FileLog())
        log.requests += 1
        log.ranges.append(headers.get("Range", ""))
        return log

    def describe(self) -> dict[str, Any]:
        """All of it as JSON."""
        files = {
            name: {
                "requests": log.requests,
                "bytes_sent": log.bytes_sent,
                "ranges": log.ranges,
                "answers": dict(log.answers),
            }
            for name, log in sorted(self._files.items())
        }
        return {"files": files, "header_names": sorted(self._header_names)}
