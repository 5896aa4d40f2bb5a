"""One answer as a value: what is sent, and how (late, byte by byte, or not at all)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request gets. Header names are in lower case, so that two of them can be merged."""

    http_status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0  # before anything is sent; the work is done by then
    trickle_s: float = 0.0  # between two bytes of the body
    bytes_per_s: float = 0.0  # of the body; 0: as fast as they go
    cut_after_bytes: int | None = None  # of the body; then the connection is closed
    drop: bool = False  # the connection is closed instead
    job_id: str | None = None  # of the job that a submission made or found

    @property
    def is_sent_at_once(self) -> bool:
        """Whether nothing about its sending is out of the ordinary."""
        return not self.trickle_s and not self.bytes_per_s and self.cut_after_bytes is None


def json_answer(http_status: int, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with a JSON body."""
    content = {"content-type": "application/json; charset=utf-8", **(headers or {})}
    return Answer(http_status=http_status, body=json.dumps(body).encode(), headers=content)


def text_answer(http_status: int, body: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer whose body is sent as it is."""
    content = {"content-type": "text/plain; charset=utf-8", **(headers or {})}
    return Answer(http_status=http_status, body=body.encode("utf-8", "surrogatepass"), headers=content)
