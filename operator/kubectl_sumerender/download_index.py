"""index.json: which file is which output of which job. Written whole, by rename, before a file gets its name.

So after a crash at any moment: a file that has its name is in the index, and one that is in the index but has no name
yet still lies there as its part.
"""

import json
import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubectl_sumerender.errors import WrongUseError

INDEX: Final = "index.json"
_SAFE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,250}")
WRITE_EVERY_S: Final = 1.0  # ten thousand files do not mean ten thousand writes of ten thousand lines


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """One output of one job of one render."""

    namespace: str
    name: str
    job: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of a file."""

    key: Key
    file: str
    size_bytes: int
    sha256: str


class Index:
    """The index of a folder. Safe to share between threads."""

    def __init__(self, folder: Path, entries: Mapping[Key, Entry]) -> None:
        self._folder = folder
        self._entries = dict(entries)
        self._pending: list[tuple[Path, Path]] = []
        self._lock = threading.Lock()
        self._written_s = 0.0

    @property
    def entries(self) -> Mapping[Key, Entry]:
        """As they are now."""
        return dict(self._entries)

    def add(self, entry: Entry, part: Path) -> None:
        """`part` is whole: note it, then give it its name; both within WRITE_EVERY_S, or at `flush`."""
        with self._lock:
            self._entries[entry.key] = entry
            self._pending.append((part, self._folder / entry.file))
            if time.monotonic() - self._written_s >= WRITE_EVERY_S:
                self._flush()

    def flush(self) -> None:
        """Everything that was added is on disk, under its name."""
        with self._lock:
            if self._pending:
                self._flush()

    def _flush(self) -> None:
        write_whole(self._folder / INDEX, _text(self._entries))
        self._written_s = time.monotonic()
        while self._pending:
            part, file = self._pending[0]
            os.replace(part, file)
            about(part).unlink(missing_ok=True)
            self._pending.pop(0)


def load(folder: Path) -> Index:
    """The index of a folder; an empty one where there is none."""
    path = folder / INDEX
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Index(folder, {})
    try:
        entries = [_entry(each) for each in json.loads(text)["files"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongUseError(
            f"{path} is no index that this command wrote. Move it away, or download to another folder"
        ) from None
    return Index(folder, {entry.key: entry for entry in entries})


def about(part: Path) -> Path:
    """Where it is written what a part is a part of."""
    return part.with_name(f"{part.name}.about")


def write_whole(path: Path, text: str) -> None:
    """The file is as it was, or as it shall be, whatever happens in between."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _text(entries: Mapping[Key, Entry]) -> str:
    files = [
        {
            "name": entry.key.name,
            "namespace": entry.key.namespace,
            "job": entry.key.job,
            "output": entry.key.output,
            "file": entry.file,
            "sizeBytes": entry.size_bytes,
            "sha256": entry.sha256,
        }
        for _, entry in sorted(entries.items())
    ]
    return json.dumps({"version": 1, "files": files}, indent=1, ensure_ascii=False) + "\n"


def _entry(body: Mapping[str, Any]) -> Entry:
    key = Key(**{name: str(body[name]) for name in ("namespace", "name", "job", "output")})
    entry = Entry(key=key, file=str(body["file"]), size_bytes=int(body["sizeBytes"]), sha256=str(body["sha256"]))
    if not _is_safe(entry.file):
        raise ValueError(entry.file)  # somebody else's hand: nothing is written outside of the folder
    return entry


def _is_safe(file: str) -> bool:
    """Whether a path stays below its folder."""
    parts = file.split("/")
    return len(parts) in (1, 2) and all(_SAFE.fullmatch(part) for part in parts)
