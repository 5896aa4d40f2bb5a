"""One child process: started, waited for, stopped; and never outliving its parent."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

CHECK_EVERY_S: Final = 0.05
TERM_S: Final = 5.0
_PORTS: Final = range(15_000, 30_000)
_given: set[int] = set()


class StartError(RuntimeError):
    """A process did not come up; the text ends with the tail of its log."""


def free_port() -> int:
    """A port on 127.0.0.1 that is free at this moment, and that this process has not been given before.

    Below the ports that kernels hand to whoever connects: so nothing takes it by chance before its server is up.
    """
    while True:
        port = secrets.choice(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


def wait_until(condition: Callable[[], bool], *, timeout_s: float, every_s: float = CHECK_EVERY_S) -> bool:
    """Whether `condition` became true within `timeout_s`."""
    over_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > over_s:
            return False
        time.sleep(every_s)
    return True


def dying_with_parent(command: list[str]) -> list[str]:
    """A test run that is killed must leave nothing behind. (Where util-linux is missing it may.)"""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command


class Child:
    """`command`, with its output in `log`. Only this very process is ever signaled."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._env = dict(env) if env is not None else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id; StartError while it was never started."""
        if self._process is None:
            raise StartError(f"{self.name} was not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with; negative: the signal that ended it; None: it has not."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start it, or start it anew. From a thread that lasts: the kernel ends it together with that thread."""
        if self.is_running:
            return
        log: IO[bytes]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                dying_with_parent(self._command),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._env,
                start_new_session=True,  # Ctrl-C in a terminal is for the parent, which stops its children in order
            )

    def signal(self, number: int) -> None:
        """Send a signal, if it still is there."""
        if self.is_running:
            os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, or None if it has not ended by then."""
        wait_until(lambda: not self.is_running, timeout_s=timeout_s)
        return self.exit_code

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self, timeout_s: float = TERM_S) -> int | None:
        """SIGTERM, and SIGKILL after `timeout_s`. Answers its exit code."""
        self.signal(signal.SIGCONT)  # a paused process takes no SIGTERM
        self.signal(signal.SIGTERM)
        if self.wait(timeout_s) is None:
            self.kill()
        return self.exit_code

    def pause(self) -> None:
        """As if it hung: connections stay open, nothing answers."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def wait_ready(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Until `is_ready`; StartError if it ends before, or takes longer than `timeout_s`."""
        wait_until(lambda: is_ready() or not self.is_running, timeout_s=timeout_s)
        if not self.is_running:
            raise StartError(f"{self.name} ended with {self.exit_code} at its start:\n{self.tail()}")
        if not is_ready():
            raise StartError(f"{self.name} was not ready within {timeout_s:.0f} s:\n{self.tail()}")
