"""The whole operator as real processes: controller, pollers, a Redis and a sandbox, on the shared control plane."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import redis
import requests

from controlplane import Child, ControlPlane, RedisServer, free_port
from kube import Kube, eventually
from sume_operator.runtime.failpoints import Failpoint
from sume_operator.settings import Settings

BIN: Final = Path(sys.executable).parent / "sume-operator"
START_S: Final = 30.0
# Reached only by a render that asks for its job; every other failpoint by one that follows a job, too.
POINTS_OF_A_REQUEST: Final = (Failpoint.AFTER_SLOT, Failpoint.AFTER_INTENT, Failpoint.AFTER_JOB_NOTE)
QUEUE_KEY: Final = "sume:polls"
# Short times, so that a lease and a sweep fit into a test; in the proportions of the defaults.
QUICK: Final = {
    "SUME_POLL_SECONDS": "1",
    "SUME_POLL_MIN_SECONDS": "0.2",
    "SUME_POLL_MAX_SECONDS": "5",
    "SUME_ERROR_SECONDS": "0.5",
    "SUME_REQUEST_TIMEOUT_SECONDS": "2",
    "SUME_KUBERNETES_TIMEOUT_SECONDS": "3",
    "SUME_LEASE_SECONDS": "5",
    "SUME_SWEEP_SECONDS": "4",
    # Hundreds of looks in seconds: budgets have tests of their own.
    "SUME_READS_PER_MINUTE": "0",
    "SUME_SUBMISSIONS_PER_MINUTE": "0",
    "SUME_LOG_FORMAT": "text",
    "SUME_LOG_LEVEL": "debug",
}

# As users have them, where a test must show how long things take for them.
DEFAULT_TIMES: Final = {
    name: str(Settings.model_fields[name.lower()].default) for name in QUICK if name.endswith("_SECONDS")
}


class Sandbox:
    """The admin routes of a sandbox."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._admin = f"{url}/_sandbox"

    def script(self, jobs: Mapping[str, Any]) -> None:
        """What each job answers, read by read."""
        self._call("PUT", "/jobs", {"jobs": dict(jobs)})

    def jobs(self) -> dict[str, Any]:
        """What was asked of each job."""
        return dict(self._call("GET", "/jobs")["jobs"])

    def job(self, job: str) -> dict[str, Any]:
        """What was asked of one job; empty if nothing was."""
        answer = requests.get(f"{self._admin}/jobs/{job}", timeout=5)
        return dict(answer.json()) if answer.ok else {}

    def reads(self, job: str) -> int:
        """How many status reads one job has had."""
        return int(self.job(job).get("status_reads", 0))

    def fault(self, **fault: Any) -> str:
        """Add a fault; answers its id."""
        return str(self._call("POST", "/faults", fault)["id"])

    def mend(self) -> None:
        """Take every fault away."""
        requests.delete(f"{self._admin}/faults", timeout=5).raise_for_status()

    def keys(self, keys: Any) -> None:
        """Which API keys it takes."""
        self._call("PUT", "/keys", {"keys": keys})

    def stats(self) -> dict[str, Any]:
        """Totals."""
        return dict(self._call("GET", "/stats"))

    def answered(self, operation: str) -> int:
        """How many requests of one kind it answered with 200."""
        return int(self.stats()["requests"].get(operation, {}).get("200", 0))

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, f"{self._admin}{path}", json=body, timeout=10)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None


class Stack:
    """A Redis and a sandbox of its own; controller and pollers are started by name."""

    def __init__(self, directory: Path, control_plane: ControlPlane, namespaces: tuple[str, ...]) -> None:
        self.directory = directory
        self.control_plane = control_plane
        self.kube = Kube(control_plane)
        self.namespaces = namespaces
        self.redis = RedisServer(directory / "redis")
        self.processes: dict[str, Child] = {}
        self.ports: dict[str, int] = {}
        self._sandbox_port = free_port()
        self.sandbox = Sandbox(f"http://127.0.0.1:{self._sandbox_port}")
        self.client: Any = redis.Redis.from_url(self.redis.url, decode_responses=True)

    def __enter__(self) -> "Stack":
        self.redis.start()
        for namespace in self.namespaces:
            self.kube.make_namespace(namespace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in reversed(self.processes.values()):
            process.kill()
        self.client.close()
        self.redis.process.resume()
        self.redis.process.kill()

    def start_sandbox(self, *options: str) -> None:
        """Start the simulated Sume."""
        address = ("--host", "127.0.0.1", "--port", str(self._sandbox_port))
        command = [str(BIN), "sandbox", *address, *options]
        self._launch("sandbox", Child("sandbox", command, self.directory / "sandbox.log", dict(os.environ)))
        self.wait_ready(self._sandbox_port, "sandbox")

    def start(self, role: str, name: str = "", *, ready: bool = True, **variables: str) -> Child:
        """Start `controller` or `poller` under `name`, with settings beside QUICK."""
        name = name or role
        self.ports[name] = free_port()
        env = self.environment(SUME_HTTP_PORT=str(self.ports[name]), **variables)
        child = self._launch(name, Child(name, [BIN, role], self.directory / f"{name}.log", env))
        if ready:
            self.wait_ready(self.ports[name], name)
        return child

    def start_all(self, pollers: int = 1, **variables: str) -> None:
        """Sandbox, controller and pollers, all at once."""
        self.start_sandbox()
        self.start("controller", ready=False, **variables)
        for number in range(pollers):
            self.start("poller", f"poller-{number}", ready=False, **variables)
        for name, port in self.ports.items():
            self.wait_ready(port, name)

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of a process of this stack."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("SUME_", "REDIS_"))}
        return (
            outside
            | QUICK
            | {
                "KUBECONFIG": str(self.control_plane.kubeconfig),
                "REDIS_URL": self.redis.url,
                "SUME_API_URL": self.sandbox.url,
                "SUME_API_KEY": "test-key",
                "SUME_WATCH_NAMESPACES": ",".join(self.namespaces),
            }
            | variables
        )

    def wait_ready(self, port: int, name: str) -> None:
        """Until /readyz says so."""
        self.processes[name].wait_ready(lambda: self.http(port, "/readyz")[0] == 200, START_S)

    def http(self, port: int, path: str) -> tuple[int, str]:
        """Status and text of a process' own HTTP; 0 if it does not answer."""
        try:
            answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=10)
        except requests.RequestException as error:
            return 0, type(error).__name__
        return answer.status_code, answer.text

    def metric(self, name: str, line: str) -> float:
        """The value of a metric of one process; 0 if it has none."""
        for each in self.http(self.ports[name], "/metrics")[1].splitlines():
            if each.startswith(f"{line} "):
                return float(each.rpartition(" ")[2])
        return 0.0

    def queue(self) -> dict[str, Any]:
        """What `sume-operator queue` prints."""
        result = subprocess.run(
            [BIN, "queue", "--output", "json"], env=self.environment(), capture_output=True, text=True, check=True
        )
        return dict(json.loads(result.stdout))

    def alarms(self) -> dict[str, float]:
        """The sorted set as it stands."""
        return dict(self.client.zrange(QUEUE_KEY, 0, -1, withscores=True))

    def wait_empty(self, within_s: float) -> None:
        """Until no alarm is left."""
        eventually(lambda: not self.alarms(), within_s=within_s, what="an empty sorted set")

    def _launch(self, name: str, child: Child) -> Child:
        self.processes[name] = child
        child.start()
        return child


def scripted(*words: str, next_poll_s: float = 0.3, **more: Any) -> dict[str, Any]:
    """A script that gives these words in turn, and the last one for ever."""
    steps = [{"status": word, "next_poll_after_seconds": next_poll_s} for word in words]
    return {"script": steps, **more}


def settled_for(seconds: float, value: Any) -> Any:
    """The value that `value()` has kept for `seconds`: for showing that nothing more happens."""
    last, since_s = value(), time.monotonic()
    while time.monotonic() - since_s < seconds:
        time.sleep(0.05)
        now = value()
        if now != last:
            last, since_s = now, time.monotonic()
    return last
