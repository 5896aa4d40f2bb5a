"""`python deploy/demo` as a newcomer runs it: its exit code, what it prints, and that it leaves nothing behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controlplane import Binaries, ControlPlane
from kube import Kube, eventually, status

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "deploy" / "samples"
COUNT: Final = sum("kind: SumeRender\n" in path.read_text(encoding="utf-8") for path in SAMPLES.glob("*.yaml"))
EXPECT: Final = "demo.render.sume.com/expect"
END_S: Final = 90.0
STOP_S: Final = 20.0
# What a caller's shell may hold: none of it may reach the demo's own processes.
STRANGE: Final = {
    "SUME_API_URL": "http://127.0.0.1:9/v1",
    "SUME_CONCURRENCY": "nonsense",
    "SUME_SANDBOX_PORT": "nonsense",
    "REDIS_URL": "redis://127.0.0.1:9/0",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
}


class Demo:
    """One run, with its temporary files under `directory`."""

    def __init__(self, directory: Path, **variables: str) -> None:
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self._output = directory / "output"
        ours = ("SUME_", "REDIS_", "DEMO_", "KEEP", "CONTEXT")
        outside = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        env = outside | STRANGE | {"TMPDIR": str(self.temporary), "DEMO_PROCESS_S": "1"} | variables
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, ROOT / "deploy" / "demo"],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.read_text(encoding="utf-8")

    def wait_for(self, pattern: str) -> None:
        """Until it has printed that; asserts that it goes on."""
        found = re.compile(pattern)
        eventually(lambda: found.search(self.output) or self.process.poll() is not None, within_s=END_S, what=pattern)
        assert self.process.poll() is None, self.output

    def wait(self, timeout_s: float = END_S) -> int:
        """Its exit code; asserts that nothing of it is left."""
        code = self.process.wait(timeout_s)
        assert self.processes() == {}
        assert list(self.temporary.iterdir()) == []
        return code

    def processes(self) -> dict[int, str]:
        """Every process that was started with, works in or writes into its temporary folder, but for its own."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self.process.pid:
                traces = _traces(entry)
                if str(self.temporary) in traces:
                    found[int(entry.name)] = traces.partition("\n")[0]
        return found

    def pid_of(self, words: str) -> int:
        """The process with these words in its command line."""
        return next(pid for pid, command in self.processes().items() if words in command)


def _traces(entry: Path) -> str:
    """Command line, environment, working directory and standard output of a process; empty if it has just ended."""
    try:
        command = entry.joinpath("cmdline").read_bytes().replace(b"\0", b" ").replace(b"\n", b" ")
        environment = entry.joinpath("environ").read_bytes()
        links = [os.readlink(entry / name) for name in ("cwd", "fd/1")]
    except OSError:
        return ""
    return "\n".join([command.decode(errors="replace"), environment.decode(errors="replace"), *links])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos, and kills those that a failed test has left."""
    demos: list[Demo] = []

    def started(**variables: str) -> Demo:
        demos.append(Demo(tmp_path, **variables))
        return demos[-1]

    yield started
    for demo in demos:
        demo.process.kill()
        demo.process.wait()


@pytest.fixture
def on_cluster(cluster: ControlPlane, programs: Binaries) -> dict[str, str]:
    """The variables that run a demo on the tests' control plane, as on somebody's own cluster."""
    path = f"{programs.kubectl.parent}{os.pathsep}{os.environ['PATH']}"
    return {"CONTEXT": "embedded", "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}


def some_samples(directory: Path, studio: str, **expectations: str) -> Path:
    """A folder with these samples, in namespaces of their own: a bare control plane never lets a namespace go."""
    folder = directory / "samples"
    folder.mkdir()
    for name in ("namespaces", *(name.replace("_", "-") for name in expectations)):
        text = (SAMPLES / f"{name}.yaml").read_text(encoding="utf-8").replace("studio-", f"{studio}-")
        old = _expected(text)
        new = expectations.get(name.replace("-", "_"))
        (folder / f"{name}.yaml").write_text(text.replace(f"{EXPECT}: {old}", f"{EXPECT}: {new}"), encoding="utf-8")
    return folder


def _expected(text: str) -> str:
    first: Mapping[str, Any] = next(iter(yaml.safe_load_all(text)))
    return str(first["metadata"].get("annotations", {}).get(EXPECT))


def _row(output: str, render: str) -> list[str]:
    """What the last table says of a render, cell by cell."""
    return next(line.split() for line in output.splitlines() if line.startswith(f"{render} "))


def test_all_samples_end_as_they_say(start: Callable[..., Demo]) -> None:
    demo = start()
    assert demo.wait() == 0, demo.output

    assert demo.output.startswith(f"This demo follows {COUNT} renders at a simulated Sume")
    assert "\x1b" not in demo.output
    for path in SAMPLES.glob("*.yaml"):
        sample = next(iter(yaml.safe_load_all(path.read_text(encoding="utf-8"))))
        if sample["kind"] == "SumeRender":
            expected = sample["metadata"]["annotations"][EXPECT]
            render = f"{sample['metadata']['namespace']}/{sample['metadata']['name']}"
            assert _row(demo.output, render)[1:3] == [expected, expected]
    assert f"{COUNT} of {COUNT} renders ended as expected" in demo.output
    assert "$ kubectl patch srender/festival-trailer -n studio-a" in demo.output
    assert "$ sume-operator queue\nkey          sume:polls\n" in demo.output


def test_a_wrong_expectation_is_named_and_can_be_looked_into(
    start: Callable[..., Demo], tmp_path: Path, on_cluster: dict[str, str]
) -> None:
    samples = some_samples(tmp_path, "wrong", product_loop="Failed/JobFailed", storm_sequence="Failed/JobFailed")
    demo = start(DEMO_SAMPLES=str(samples), KEEP="1", **on_cluster)
    demo.wait_for("Logs of all processes")
    problem = "not as expected: wrong-b/product-loop ended as Completed/Completed, not as Failed/JobFailed"
    assert problem in demo.output
    assert _row(demo.output, "wrong-b/product-loop")[-1] == "MISMATCH"
    assert _row(demo.output, "wrong-a/storm-sequence")[-1] == "ok"
    assert "1 of 2 renders ended as expected" in demo.output

    exports = dict(re.findall(r"^ +export (\w+)=(\S+)$", demo.output, re.MULTILINE))
    kubectl = shutil.which("kubectl", path=exports["PATH"])
    assert kubectl is not None
    command = [kubectl, "get", "srender", "product-loop", "-n", "wrong-b", "-o", "name"]
    subprocess.run(command, env=os.environ | {"KUBECONFIG": exports["KUBECONFIG"]}, check=True, timeout=20)
    demo.process.send_signal(signal.SIGINT)
    assert demo.wait(STOP_S) == 1, demo.output
    assert "kubectl --context=embedded delete namespace wrong-a wrong-b" in demo.output


def test_on_a_cluster_of_ones_own(
    start: Callable[..., Demo], tmp_path: Path, cluster: ControlPlane, on_cluster: dict[str, str]
) -> None:
    kube = Kube(cluster)
    kube.make_namespace("somebody-elses")
    kube.create("somebody-elses", "paid", {"jobID": "job_paid"})
    samples = some_samples(tmp_path, "own", product_loop="Completed/Completed")
    demo = start(DEMO_SAMPLES=str(samples), **on_cluster)
    assert demo.wait() == 0, demo.output

    assert status(kube.get("somebody-elses", "paid")) == {}, "the simulated Sume must not end other people's renders"
    assert "somebody-elses" not in demo.output
    assert kube.all_in(["own-a", "own-b"]) == []
    for name in ("own-a", "own-b"):
        namespace = kube.request("GET", f"/api/v1/namespaces/{name}").json()
        assert namespace.get("code") == 404 or namespace["metadata"]["deletionTimestamp"]
    kube.delete("somebody-elses", "paid")


def test_a_namespace_of_somebody_else_is_not_touched(
    start: Callable[..., Demo], tmp_path: Path, cluster: ControlPlane, on_cluster: dict[str, str]
) -> None:
    kube = Kube(cluster)
    kube.make_namespace("taken-b")
    samples = some_samples(tmp_path, "taken", product_loop="Completed/Completed")
    demo = start(DEMO_SAMPLES=str(samples), **on_cluster)
    assert demo.wait() == 1
    assert "namespace taken-b exists and was not made by the demo" in demo.output
    assert kube.request("GET", "/api/v1/namespaces/taken-a").status_code == 404
    assert "deletionTimestamp" not in kube.request("GET", "/api/v1/namespaces/taken-b").json()["metadata"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"CONTEXT": "nowhere"}, "CONTEXT=nowhere: error: cannot locate context nowhere\ncontexts of your kubeconfig"),
        ({"PATH": "/nonexistent"}, "CONTEXT=embedded needs kubectl on PATH"),
    ],
)
def test_what_is_missing_is_said(
    start: Callable[..., Demo], on_cluster: dict[str, str], variables: dict[str, str], said: str
) -> None:
    demo = start(**(on_cluster | variables))
    assert demo.wait() == 1
    assert said in demo.output
    assert "Traceback" not in demo.output


def test_a_process_that_dies_is_named(start: Callable[..., Demo], tmp_path: Path, on_cluster: dict[str, str]) -> None:
    samples = some_samples(tmp_path, "dies", intro_teaser="Completed/Completed")
    demo = start(DEMO_SAMPLES=str(samples), **on_cluster)
    demo.wait_for("intro-teaser +Processing")
    os.kill(demo.pid_of("sume-operator controller"), signal.SIGKILL)
    assert demo.wait() == 1
    assert "controller ended with -9. The end of its log:" in demo.output
    assert "sume-operator" in demo.output.rpartition("The end of its log:")[2]


def test_sigterm_in_the_middle_leaves_nothing(start: Callable[..., Demo]) -> None:
    demo = start()
    demo.wait_for("intro-teaser +Processing")
    assert len(demo.processes()) >= len(("etcd", "apiserver", "redis", "sandbox", "controller", "poller", "poller"))
    demo.process.terminate()
    assert demo.wait(STOP_S) == 128 + signal.SIGTERM
    assert demo.output.endswith("stopping\n")
