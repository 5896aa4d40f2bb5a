"""Processes of the operator by the dozen: what is slow to import is imported once, each process is a fork of that.

A fork runs the command line as any process does, reads its own environment, and is killed as any process. Nothing of
the operator itself is imported before the fork: settings that are read at import are its own.
"""

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

SLOW_TO_IMPORT: Final = (
    "click",
    # Not by `kubernetes` itself, only when they are used: half of what a start costs.
    "kubernetes.client.api.core_v1_api",
    "kubernetes.client.api.custom_objects_api",
    "kubernetes.config",
    "limits.strategies",
    "prometheus_client",
    "pydantic_settings",
    "pythonjsonlogger.json",
    "redis",
    "requests",
)
_PR_SET_PDEATHSIG: Final = 1


class Nursery:
    """Forks on demand. Ends with all that it has forked."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # an end of its input ends it

    def start(self, role: str, log: Path, env: Mapping[str, str]) -> int:
        """Start `role`; answers its process id."""
        return int(self._ask({"role": role, "log": str(log), "env": dict(env)}))

    def ended(self) -> dict[int, int]:
        """Those that have ended since the last time, and with which exit code; negative: the signal."""
        return {int(pid): int(code) for pid, code in self._ask({}).items()}

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _serve() -> None:
    for name in SLOW_TO_IMPORT:
        importlib.import_module(name)
    children: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        if question:
            pid = os.fork()
            if pid == 0:
                _become(question)
            children.add(pid)
            answer: Any = pid
        else:
            answer = _reap(children)
        print(json.dumps(answer), flush=True)  # noqa: T201
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _reap(children: set[int]) -> dict[int, int]:
    ended = {}
    for pid in tuple(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ended[pid] = os.waitstatus_to_exitcode(status)
            children.discard(pid)
    return ended


def _become(question: Any) -> None:
    """The process that was asked for, instead of this one. Dies with the nursery."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    log = os.open(question["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(question["env"])
    sys.argv = ["sume-operator", question["role"]]
    try:
        importlib.import_module("sume_operator.cli").main()
    except Exception:  # into the log: nobody else would print it
        traceback.print_exc()
        raise
    finally:
        os._exit(1)  # in a test of crashes a role does not end by itself; nothing of the parent may go on in here


if __name__ == "__main__":
    _serve()
