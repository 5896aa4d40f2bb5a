"""Which files a download is about, and what each is called: from objects and index to names. Pure.

A file is NAME.EXT, or NAME-1.EXT and so on where a render made several. A name that is taken (`a` made two files, and
there is a render `a-1`) gets six digits more after a `_`, which no name of Kubernetes has. What the index names keeps
its name, so that a file is the same in every run, whatever else is chosen.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from kubectl_sumerender.download_index import INDEX, Entry, Key
from kubectl_sumerender.errors import clean
from kubectl_sumerender.render import condition, read_render

PART: Final = "part"
ABOUT: Final = "about"
LONGEST_STEM: Final = 150  # file names end at 255 bytes, and ours grow by suffixes

_EXTENSION: Final = re.compile(r"[a-z0-9]{1,8}")
_SAFE: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")  # a name of Kubernetes
# Our own, for Python's knows too few of them, and others on each machine.
_BY_TYPE: Final = {
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mp4": "m4a",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "application/json": "json",
    "model/gltf-binary": "glb",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output of a render. The address may be a secret: it is in no repr."""

    key: Key
    uid: str
    number: int  # from 1; 0: it is the only one
    url: str = field(repr=False)
    content_type: str = ""
    size_bytes: int | None = None
    expires: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A file (or all of a render's files) that will not be there, and why."""

    ref: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An output, and the file that it becomes (a path below the folder)."""

    output: Output
    file: str


def outputs_of(body: Mapping[str, Any]) -> list[Output] | Lacking:
    """What a render has to offer, or why it has nothing."""
    render = read_render(body)
    if not render.terminal:
        why = f"has not ended yet ({render.reason or 'nothing has looked at it'})"
        return Lacking(ref=render.ref, why=f"{why}. Wait: {_verb('wait', render.namespace, render.name)}")
    if render.succeeded != "True":
        return Lacking(ref=render.ref, why=f"made no file ({render.reason}: {clean(render.message, 200)})")
    listed = (body.get("status") or {}).get("outputs")
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    if not found:
        available = condition(body, "OutputsAvailable")
        return Lacking(ref=render.ref, why=f"has no outputs on record ({available.get('reason') or 'none listed'})")
    single = len(found) == 1
    return [
        Output(
            key=Key(namespace=render.namespace, name=render.name, job=render.job, output=str(each.get("name") or "")),
            uid=render.uid,
            number=0 if single else number,
            url=str(each.get("url") or ""),
            content_type=str(each.get("contentType") or ""),
            size_bytes=each.get("sizeBytes") if isinstance(each.get("sizeBytes"), int) else None,
            expires=str(each.get("expirationTime") or ""),
        )
        for number, each in enumerate(found, start=1)
    ]


def named(outputs: Iterable[Output], index: Mapping[Key, Entry], *, by_namespace: bool) -> list[Wanted]:
    """A file for each output. `by_namespace`: in a folder of its namespace, where several are downloaded at once."""
    ordered = sorted(outputs, key=lambda output: (output.key.namespace, output.key.name, output.number))
    taken = {INDEX, *(entry.file for entry in index.values())}
    wanted = []
    for output in ordered:
        entry = index.get(output.key)
        file = entry.file if entry else _free_name(output, taken, by_namespace=by_namespace)
        taken.add(file)
        wanted.append(Wanted(output=output, file=file))
    return wanted


def extension(content_type: str, url: str) -> str:
    """By the media type, else by the end of the address' path, else `bin`."""
    kind = content_type.partition(";")[0].strip().lower()
    found = _BY_TYPE.get(kind) or PurePosixPath(urlsplit(url).path).suffix.removeprefix(".").lower()
    return found if _EXTENSION.fullmatch(found) and found not in (PART, ABOUT) else "bin"


def _free_name(output: Output, taken: Sequence[str] | set[str], *, by_namespace: bool) -> str:
    name = output.key.name if _SAFE.fullmatch(output.key.name) else "render"
    stem = f"{name}-{output.number}" if output.number else name
    suffix = extension(output.content_type, output.url)
    namespace = output.key.namespace if _SAFE.fullmatch(output.key.namespace) else "namespace"
    folder = f"{namespace}/" if by_namespace else ""
    plain = f"{folder}{stem}.{suffix}"
    if len(stem) <= LONGEST_STEM and name == output.key.name and plain not in taken:
        return plain
    return f"{folder}{stem[:LONGEST_STEM]}_{_digits(output.key)}.{suffix}"


def _digits(key: Key) -> str:
    text = "\0".join((key.namespace, key.name, key.job, key.output))
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _verb(verb: str, namespace: str, name: str) -> str:
    return f"kubectl sumerender {verb} -n {namespace} {name}"
