"""When something last went well: what health is read from. No thread, no rule but the comparison of two times."""

import threading
import time


class Pulse:
    """Beats are noted from any thread; `age_s` is infinite until the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: float | None = None

    def beat(self) -> None:
        """It went well just now."""
        with self._lock:
            self._last = time.monotonic()

    @property
    def age_s(self) -> float:
        """Seconds since it last went well."""
        with self._lock:
            return float("inf") if self._last is None else time.monotonic() - self._last
