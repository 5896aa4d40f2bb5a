"""The processes of the demo: started with an environment of their own, minded while it runs, stopped at its end."""

import os
import re
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from deploy.demo.errors import DemoError
from deploy.demo.kubectl import Kubectl
from deploy.demo.options import Options

from controlplane import Child, RedisServer, free_port
from controlplane.answering import answers

BIN: Final = Path(sys.executable).parent / "sume-operator"
READY_S: Final = 60.0
PROBE_S: Final = 3.0
_SETTINGS: Final = {
    "SUME_API_KEY": "demo-key",
    "SUME_POLL_SECONDS": "2",
    "SUME_POLL_MIN_SECONDS": "1",
    "SUME_ERROR_SECONDS": "2",
    "SUME_HTTP_PORT": "0",
    "SUME_LOG_FORMAT": "text",
}
_PORT: Final = re.compile(r"health and metrics on port (\d+)")


class Fleet:
    """Everything that runs besides this process."""

    def __init__(self, directory: Path) -> None:
        self.logs = directory / "logs"
        self.logs.mkdir()
        self._scratch = directory / "scratch"
        self._scratch.mkdir()
        self._started: list[Child] = []
        self._minded: list[Child] = []

    def mind(self, *children: Child) -> None:
        """From now on it is an error if one of them ends."""
        self._minded += children

    def start(self, name: str, *arguments: str, env: Mapping[str, str]) -> Child:
        """`sume-operator ARGUMENTS`, not waited for."""
        # The Kubernetes client and kopf leave certificates in temporary files.
        scratch = {"TMPDIR": str(self._scratch)}
        child = Child(name, [BIN, *arguments], self.logs / f"{name}.log", {**env, **scratch})
        self._started.append(child)
        child.start()
        self.mind(child)
        return child

    def check(self) -> None:
        """DemoError, with the end of its log, if one has ended."""
        for child in self._minded:
            if not child.is_running:
                raise DemoError(f"{child.name} ended with {child.exit_code}. The end of its log:\n{child.tail()}")

    def stop(self) -> None:
        """All of it."""
        for child in self._started:  # all at once, then wait
            child.signal(signal.SIGTERM)
        for child in self._started:
            child.stop()


class Parts:
    """Redis, the simulated Sume, one controller and two pollers."""

    def __init__(self, directory: Path, fleet: Fleet, options: Options) -> None:
        self.fleet = fleet
        self._options = options
        self._port = free_port()
        self.sandbox_url = f"http://127.0.0.1:{self._port}"
        self.redis = RedisServer(directory / "redis")

    def start_outside(self) -> None:
        """What the operator talks to besides Kubernetes."""
        address = ("--host", "127.0.0.1", "--port", str(self._port))
        times = ("--process-s", f"{self._options.process_s:g}", "--next-poll-s", "1")
        sandbox = self.fleet.start("sandbox", "sandbox", *address, *times, env=_cleared())
        self.redis.start()
        self.fleet.mind(self.redis.process)
        sandbox.wait_ready(lambda: answers(f"{self.sandbox_url}/readyz", {}, timeout_s=PROBE_S), READY_S)

    def start_operator(self, env: Mapping[str, str]) -> None:
        """Controller and pollers, all ready when this returns."""
        roles = {"controller": "controller", "poller-1": "poller", "poller-2": "poller"}
        children = [self.fleet.start(name, role, env=env) for name, role in roles.items()]
        for child in children:
            child.wait_ready(partial(_is_ready, child), READY_S)

    def environment(self, kubectl: Kubectl, namespaces: tuple[str, ...]) -> dict[str, str]:
        """What the operator runs with. `namespaces`: those it may look at; empty: all."""
        watched = {"SUME_WATCH_NAMESPACES": ",".join(namespaces)} if namespaces else {}
        return (
            _cleared()
            | _SETTINGS
            | watched
            | {
                "KUBECONFIG": str(kubectl.kubeconfig),
                "REDIS_URL": self.redis.url,
                "SUME_API_URL": self.sandbox_url,
            }
        )


def _cleared() -> dict[str, str]:
    """The caller's environment without what would set up another operator; and no proxy on the way to the sandbox."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SUME_", "REDIS_"))}
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, (env.get(name), "127.0.0.1")))
    return env


def _is_ready(child: Child) -> bool:
    """Whether its /readyz says so; it tells its port in its log."""
    found = _PORT.search(child.log.read_text(encoding="utf-8", errors="replace"))
    return found is not None and answers(f"http://127.0.0.1:{found.group(1)}/readyz", {}, timeout_s=PROBE_S)
