"""The files that jobs made: always the same bytes for the same job, and the answer to whoever asks for a part of them.

Pure: who may have them is decided in `contract`, sending them is the routes' job.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from sume_sandbox.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFile:
    """One file, as it is now. Another `revision` is another content under the same name."""

    job_id: str
    name: str
    size_bytes: int
    revision: int = 0
    content_type: str | None = None

    @property
    def content(self) -> bytes:
        """All of its bytes."""
        return _content(f"{self.job_id}/{self.name} revision {self.revision}", self.size_bytes)

    @property
    def etag(self) -> str:
        """Strong: another content has another one."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


@lru_cache(maxsize=16)
def _content(seed: str, size_bytes: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size_bytes)


def media_answer(file: MediaFile, wanted: slice, if_range: str | None) -> Answer:
    """All of the file, or the part that `wanted` asks for, if `if_range` is (or could be) its validator."""
    headers = {"etag": file.etag, "accept-ranges": "bytes"}
    headers["content-type"] = file.content_type or "application/octet-stream"
    asks_for_part = (wanted.start, wanted.stop) != (None, None)
    if not asks_for_part or if_range not in (None, file.etag):
        return Answer(http_status=200, body=file.content, headers=headers)
    part = range(file.size_bytes)[wanted]
    if not part:
        return Answer(http_status=416, headers={**headers, "content-range": f"bytes */{file.size_bytes}"})
    headers["content-range"] = f"bytes {part.start}-{part.stop - 1}/{file.size_bytes}"
    return Answer(http_status=206, body=file.content[part.start : part.stop], headers=headers)
