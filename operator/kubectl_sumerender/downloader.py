"""All the files of one run: a few at once, each tried again while that helps, its address refreshed once if need be.

Every file ends in one outcome. Trouble with the disk ends the run: it would meet every other file as well.
"""

import errno
import os
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from kubectl_sumerender import transfer
from kubectl_sumerender.download_index import Entry, Index
from kubectl_sumerender.download_plan import PART, Wanted
from kubectl_sumerender.errors import WrongUseError
from kubectl_sumerender.expiry import expires_at
from kubectl_sumerender.fresh_addresses import FreshAddresses, NoFreshAddressError
from kubectl_sumerender.output_hosts import InsecureError, OutputSession, check_secure

TRIES_WITHOUT_PROGRESS: Final = 5
FIRST_WAIT_S: Final = 1.0
ABOUT_TO_EXPIRE: Final = timedelta(seconds=10)
STOPPING_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a file. `why` is empty where it is there."""

    wanted: Wanted
    size_bytes: int = 0
    was_there: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told, from several threads: that a file begins, its size by now and in the end, what became of it."""

    begins: Callable[[Wanted], None]
    grew: Callable[[Wanted, int, int | None], None]
    ended: Callable[[Outcome], None]


class DiskError(WrongUseError):
    """The folder does not take what it should."""


class Downloader:
    """Fetches what is wanted into `folder`."""

    def __init__(
        self, folder: Path, index: Index, fresh: FreshAddresses, listener: Listener, stop: threading.Event
    ) -> None:
        self._folder = folder
        self._index = index
        self._entries = index.entries
        self._fresh = fresh
        self._listener = listener
        self._stop = stop
        self._local = threading.local()
        self._failure: BaseException | None = None

    def run(self, wanted: Sequence[Wanted], parallel: int) -> None:
        """Until every file has an outcome. DiskError, or KeyboardInterrupt: parts stay, and what is whole is named."""
        waiting: queue.SimpleQueue[Wanted] = queue.SimpleQueue()
        for each in wanted:
            waiting.put(each)
        # Daemons: one that hangs in a read must not keep an interrupted command from ending.
        workers = [threading.Thread(target=self._work, args=(waiting,), daemon=True) for _ in range(parallel)]
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                while worker.is_alive():
                    worker.join(0.2)
        except BaseException:
            self._stop.set()
            for worker in workers:
                worker.join(STOPPING_S / parallel)
            self._index.flush()
            raise
        try:
            self._index.flush()
        except OSError as error:
            raise self._failure or disk_error(error, self._folder) from None
        if self._failure is not None:
            raise self._failure

    def _work(self, waiting: "queue.SimpleQueue[Wanted]") -> None:
        while not self._stop.is_set():
            try:
                wanted = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._listener.begins(wanted)
                self._listener.ended(self._one(wanted))
            except transfer.StoppedError:
                return
            except OSError as error:
                self._fail(disk_error(error, self._folder))
            except BaseException as error:  # noqa: BLE001  # it is raised again where the run was asked for
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop.set()

    def _one(self, wanted: Wanted) -> Outcome:
        file = self._folder / wanted.file
        part = file.with_name(f"{file.name}.{PART}")
        entry = self._entries.get(wanted.output.key)
        if entry is not None and _size_of(file) == entry.size_bytes:
            return Outcome(wanted=wanted, size_bytes=entry.size_bytes, was_there=True)
        if entry is None and file.exists():
            why = f"{wanted.file} is there, but not in index.json: move it away, or delete it, and run the same again"
            return Outcome(wanted=wanted, why=why)
        file.parent.mkdir(exist_ok=True)
        try:
            fetched = self._fetched(wanted, part)
        except (transfer.RefusedError, transfer.AddressGoneError, NoFreshAddressError, InsecureError) as error:
            return Outcome(wanted=wanted, why=str(error))
        except transfer.BrokenOffError as error:
            return Outcome(wanted=wanted, why=f"{error}, again and again. Run the same again: it goes on from there")
        self._index.add(
            Entry(key=wanted.output.key, file=wanted.file, size_bytes=fetched.size_bytes, sha256=fetched.sha256), part
        )
        return Outcome(wanted=wanted, size_bytes=fetched.size_bytes)

    def _fetched(self, wanted: Wanted, part: Path) -> transfer.Fetched:
        """With a fresh address where the one on record has expired, or the host says so; once."""
        output, is_fresh = wanted.output, False
        url = output.url
        end = expires_at(url, output.expires)
        if end is not None and end <= datetime.now(UTC) + ABOUT_TO_EXPIRE:
            url, is_fresh = self._fresh.of(output), True
        while True:
            try:
                return self._tried(wanted, part, url)
            except transfer.AddressGoneError as error:
                if is_fresh:
                    raise transfer.RefusedError(
                        f"{error}, also to a fresh address: the file is probably gone"
                    ) from None
                url, is_fresh = self._fresh.of(output), True

    def _tried(self, wanted: Wanted, part: Path, url: str) -> transfer.Fetched:
        """Again and again while it gets on, else a few times, later and later."""
        check_secure(url)
        output, in_vain, most_bytes = wanted.output, 0, 0
        key = output.key
        identity = f"{key.namespace}/{key.name}/{key.job}/{key.output}"
        job = transfer.Job(url=url, part=part, identity=identity, size_bytes=output.size_bytes)
        while True:
            try:
                return transfer.fetch(self._session(), job, self._stop, partial(self._listener.grew, wanted))
            except transfer.BrokenOffError as error:
                reached_bytes = _size_of(part)
                in_vain = 1 if reached_bytes > most_bytes else in_vain + 1
                most_bytes = max(most_bytes, reached_bytes)
                if in_vain >= TRIES_WITHOUT_PROGRESS:
                    raise
                if self._stop.wait(max(error.wait_s, FIRST_WAIT_S * 2 ** (in_vain - 1))):
                    raise transfer.StoppedError from None

    def _session(self) -> OutputSession:
        """One for each thread: they are not made to be shared."""
        session: OutputSession | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = OutputSession()
        return session


def disk_error(error: OSError, folder: Path) -> DiskError:
    """What is wrong with the folder, and what to do."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            what = "the disk is full. Make room, and run the same again: it goes on from there"
        case errno.EFBIG:
            what = "this disk or account takes no file as large as that. Choose another folder"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            what = "it cannot be written to. Choose another folder with --to, or ask its owner"
        case errno.ENOTDIR | errno.EEXIST:
            what = "it is not a folder. Choose another with --to"
        case _:
            what = os.strerror(error.errno) if error.errno else type(error).__name__
    return DiskError(f"{folder}: {what}")


def _size_of(file: Path) -> int:
    """-1 where there is none."""
    try:
        return file.stat().st_size
    except OSError:
        return -1
