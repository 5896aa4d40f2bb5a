"""One download at a time in a folder: two would write into one part. The lock goes with its process."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubectl_sumerender.errors import WrongUseError

LOCK: Final = ".sumerender.lock"


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """For as long as it lasts; WrongUseError if another process is at work there. OSError: the folder takes nothing."""
    path = folder / LOCK
    with path.open("w", encoding="utf-8") as file:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    raise WrongUseError(
                        f"{folder}: another download is at work in this folder. Wait for its end, or choose another"
                    ) from None
                # A network volume that knows no locks: better without one than not at all.
        yield
