"""Places where a test may kill the process: between any two steps of a turn. Harmless unless asked for.

`SUME_FAILPOINT=after-fetch` makes the process end there with SIGKILL, as if its machine had lost power; with
`SUME_FAILPOINT_FILE` only the one process that can create that file does, so that one of several dies, once.
Both are read once, at start; without them a failpoint costs one comparison.
"""

import contextlib
import os
import signal
from enum import StrEnum


class Failpoint(StrEnum):
    """Every gap between two steps of a turn, in order."""

    AFTER_CLAIM = "after-claim"
    AFTER_FETCH = "after-fetch"
    AFTER_SLOT = "after-slot"
    AFTER_INTENT = "after-intent"
    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"
    BEFORE_WRITE = "before-write"
    AFTER_WRITE = "after-write"
    AFTER_JOB_NOTE = "after-job-note"
    AFTER_EVENTS = "after-events"
    BEFORE_SETTLE = "before-settle"
    AFTER_SETTLE = "after-settle"


_armed = os.environ.get("SUME_FAILPOINT")
_once = os.environ.get("SUME_FAILPOINT_FILE")


def reach(point: Failpoint) -> None:
    """Die here, if a test wants it."""
    if _armed != point:
        return
    with contextlib.suppress(FileExistsError):
        if _once:
            os.close(os.open(_once, os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)
