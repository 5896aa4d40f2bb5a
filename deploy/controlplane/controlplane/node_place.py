"""Folder and cgroup of one node, on record in a file that its owner holds locked; what a dead owner left is cleared."""

import contextlib
import fcntl
import json
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from controlplane.cgroups import make_cgroup, remove_cgroup
from controlplane.golang import cache_folder

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of a node that runs. Its record is locked as long as this process lives."""

    directory: Path
    cgroup: str
    record: Path
    lock: IO[str]

    def remove(self) -> None:
        """Everything away, the record last: what could not be removed now is found by the next run."""
        if _clear(self.directory, self.cgroup):
            self.record.unlink(missing_ok=True)
        self.lock.close()


def make_place() -> Place:
    """A new one, on record before anything of it is made."""
    name = f"sume-node-{secrets.token_hex(4)}"
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    directory, record = folder / name, folder / f"{name}{_SUFFIX}"
    lock = record.open("w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    json.dump({"directory": str(directory), "cgroup": f"/{name}"}, lock)
    lock.flush()
    directory.mkdir()
    make_cgroup(f"/{name}")
    return Place(directory=directory, cgroup=f"/{name}", record=record, lock=lock)


def clear_leftovers() -> list[Path]:
    """Clear what dead owners left, as their records say; answers the folders. Nodes in use are not touched."""
    cleared = []
    for record in sorted(_folder().glob(f"*{_SUFFIX}")):
        with contextlib.suppress(FileNotFoundError), record.open("r", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            left = _read(file)
            if left is None or _clear(*left):
                record.unlink(missing_ok=True)
            if left is not None:
                cleared.append(left[0])
    return cleared


def _read(file: IO[str]) -> tuple[Path, str] | None:
    """Folder and cgroup; None if its owner died before it could write them, and so before it made them."""
    try:
        loaded = json.load(file)
        return Path(loaded["directory"]), str(loaded["cgroup"])
    except (ValueError, KeyError, TypeError):
        return None


def _clear(directory: Path, cgroup: str) -> bool:
    """Whether both are gone. The processes are: they ended with their owner (see `enclosure`)."""
    gone = remove_cgroup(cgroup)
    shutil.rmtree(directory, ignore_errors=True)
    return gone and not directory.exists()


def _folder() -> Path:
    return cache_folder() / "nodes"
