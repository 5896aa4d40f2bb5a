"""One file over HTTP into its part: what is there is not fetched again, and nothing short or wrong gets through.

The part grows in FILE.part; FILE.part.about says what it is a part of, and the validator with which it can be gone on
with. Addresses are secrets: no text of this module holds one, and no error of a library (they quote them) leaves it.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests
import urllib3

from kubectl_sumerender.download_index import about, write_whole
from kubectl_sumerender.output_hosts import InsecureError, cause_of, host_of

CONNECT_S: Final = 10.0
SILENCE_S: Final = 60.0  # between bytes
PIECE_BYTES: Final = 16 * 1024  # so much is lost by a kill, and waited for by a Ctrl-C
LONGEST_WAIT_S: Final = 60.0

OnSize = Callable[[int, int | None], None]

_PART_OF: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_NOTHING_OF: Final = re.compile(r"bytes \*/(\d+)")


class BrokenOffError(Exception):
    """Another try may do, in `wait_s` at the earliest."""

    def __init__(self, why: str, *, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class AddressGoneError(Exception):
    """The host does not take this address (any more): a fresh one may do."""


class RefusedError(Exception):
    """No further try will help."""


class StoppedError(Exception):
    """Told to stop; the part stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to fetch. `identity` says which output of which job it is: a part of another one is thrown away."""

    url: str = field(repr=False)
    part: Path
    identity: str
    size_bytes: int | None = None  # as Sume told it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A part that is whole."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What the host sends: from which byte on, up to which size in all, under which validator."""

    start: int
    total: int | None
    validator: str
    is_framed: bool  # a cut can be told from an end


def fetch(session: requests.Session, job: Job, stop: threading.Event, on_size: OnSize) -> Fetched:
    """Complete the part. `on_size` hears how many bytes there are now, and how many there will be."""
    have, validator = _what_is_there(job)
    headers = {"Accept-Encoding": "identity"}  # lengths are of the file, not of its packing
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    response = _ask(session, job.url, headers)
    with response:
        if response.status_code == requests.codes.requested_range_not_satisfiable and _is_all(response, have):
            _check_size(job, have)
            return Fetched(size_bytes=have, sha256=_hash_of(job.part).hexdigest())
        answer = _read_head(response, have, validator, job)
        _check_size(job, answer.total)
        digest = _begin(job, answer)
        size_bytes = answer.start
        on_size(size_bytes, answer.total)
        with job.part.open("ab") as file:
            for piece in _pieces(response):
                file.write(piece)
                digest.update(piece)
                size_bytes += len(piece)
                on_size(size_bytes, answer.total)
                if stop.is_set():
                    raise StoppedError
            file.flush()
            os.fsync(file.fileno())
    _check_end(job, answer, size_bytes)
    return Fetched(size_bytes=size_bytes, sha256=digest.hexdigest())


def discard(part: Path) -> None:
    """Start over, next time."""
    part.unlink(missing_ok=True)
    about(part).unlink(missing_ok=True)


def _what_is_there(job: Job) -> tuple[int, str]:
    """Bytes of the part, and the validator to go on with; (0, "") where it is another file's, or cannot be gone on."""
    try:
        known = json.loads(about(job.part).read_text(encoding="utf-8"))
        size, validator = job.part.stat().st_size, str(known["validator"])
        if known["identity"] == job.identity and validator and size:
            return size, validator
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0, ""


def _ask(session: requests.Session, url: str, headers: Mapping[str, str]) -> requests.Response:
    try:
        return session.get(url, headers=dict(headers), stream=True, timeout=(CONNECT_S, SILENCE_S))
    except InsecureError as error:
        raise RefusedError(str(error)) from None
    except requests.exceptions.SSLError:
        raise RefusedError(
            f"the certificate of {host_of(url)} is not trusted (a proxy's or an own authority: set REQUESTS_CA_BUNDLE)"
        ) from None
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema):
        raise RefusedError("the address on record is none") from None
    except requests.exceptions.TooManyRedirects:
        raise RefusedError(f"{host_of(url)} redirects for ever") from None
    except requests.RequestException as error:
        raise BrokenOffError(f"{host_of(url)}: {cause_of(error)}") from None


def _read_head(response: requests.Response, have: int, validator: str, job: Job) -> _Answer:
    """The answer's first lines -> what will come; an error for every answer that is not the file."""
    status, headers, host = response.status_code, response.headers, host_of(response.url)
    if status in (403, 404, 410):
        raise AddressGoneError(f"{host} answers {status}")
    if status in (408, 425, 429) or status >= 500:
        raise BrokenOffError(f"{host} answers {status}", wait_s=_asked_wait_s(headers))
    if status not in (200, 206):
        if have:  # with 416 above all: what is there is longer than the file, or not of it
            discard(job.part)
            raise BrokenOffError(f"{host} answers {status} to a request for the rest")
        raise RefusedError(f"{host} answers {status}")
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RefusedError(f"{host} sends the file packed ({headers['Content-Encoding'][:20]}), though asked not to")
    own = _validator(headers)
    if status == 200:
        length = headers.get("Content-Length", "")
        is_framed = length.isdecimal() or "chunked" in headers.get("Transfer-Encoding", "").lower()
        return _Answer(start=0, total=int(length) if length.isdecimal() else None, validator=own, is_framed=is_framed)
    part = _PART_OF.fullmatch(headers.get("Content-Range", "").strip())
    if part is None or int(part.group(1)) != have or (own and own != validator):
        discard(job.part)
        raise BrokenOffError(f"{host} sends another part than the one it was asked for")
    total = int(part.group(2)) if part.group(2) != "*" else None
    return _Answer(start=have, total=total, validator=validator, is_framed=True)


def _validator(headers: Mapping[str, str]) -> str:
    """What If-Range can name: a strong ETag, else the time of the last change; empty where there is neither."""
    etag = headers.get("ETag", "").strip()
    if etag.startswith('"') and etag.endswith('"') and len(etag) > 2:
        return etag
    return headers.get("Last-Modified", "").strip() if not etag else ""


def _begin(job: Job, answer: _Answer) -> "hashlib._Hash":
    """The hash of what is kept; the part is cut to it, and it is on record what it is a part of."""
    if answer.start:
        return _hash_of(job.part)
    discard(job.part)
    write_whole(about(job.part), json.dumps({"identity": job.identity, "validator": answer.validator}))
    return hashlib.sha256()


def _pieces(response: requests.Response) -> Iterator[bytes]:
    stream: Iterator[bytes] = response.raw.stream(PIECE_BYTES, decode_content=False)
    while True:
        try:
            piece = next(stream, None)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise BrokenOffError(f"{host_of(response.url)}: {cause_of(error)}") from None
        if piece is None:
            return
        yield piece


def _check_size(job: Job, total: int | None) -> None:
    if total is not None and job.size_bytes is not None and total != job.size_bytes:
        discard(job.part)
        raise RefusedError(f"the host's file has {total} bytes, but Sume told of {job.size_bytes}: it is not that file")


def _check_end(job: Job, answer: _Answer, size_bytes: int) -> None:
    """Whether all has come. A file of which nobody tells the length is not believed when the connection just ends."""
    expected = answer.total if answer.total is not None else job.size_bytes
    if expected is None and not answer.is_framed:
        discard(job.part)
        raise RefusedError(
            f"{host_of(job.url)} does not tell how long the file is, so nobody can say whether it came whole"
        )
    if expected is not None and size_bytes != expected:
        if size_bytes > expected:
            discard(job.part)
        raise BrokenOffError(f"{size_bytes} of {expected} bytes came")


def _is_all(response: requests.Response, have: int) -> bool:
    """416: there is nothing after what we have. It is the whole file exactly if the host says so."""
    nothing = _NOTHING_OF.fullmatch(response.headers.get("Content-Range", "").strip())
    return bool(have) and nothing is not None and int(nothing.group(1)) == have


def _asked_wait_s(headers: Mapping[str, Any]) -> float:
    text = str(headers.get("Retry-After", "")).strip()
    return min(float(text), LONGEST_WAIT_S) if text.isdecimal() and len(text) < 9 else 0.0


def _hash_of(path: Path) -> "hashlib._Hash":
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")
