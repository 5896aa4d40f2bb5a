"""`kubectl sumerender wait`: five exit codes, and nothing that happens to the API server changes them."""

import json
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from controlplane import Binaries, ControlPlane
from kube import Kube, eventually
from plugin import Plugin
from stack import Stack, scripted

ROOT = Path(__file__).parents[2]
ENDED = {
    "state": "Completed",
    "terminal": True,
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "Completed",
            "message": "",
            "lastTransitionTime": "2026-07-01T00:00:00Z",
        }
        for kind in ("Succeeded", "Finished")
    ],
}


@pytest.fixture
def plugin(stack: Stack) -> Plugin:
    return Plugin(stack.control_plane, stack.namespaces[0])


def test_with_the_operator_the_exit_code_tells_the_outcome(stack: Stack, plugin: Plugin) -> None:
    stack.start_all()
    stack.sandbox.script(
        {
            "job_good": scripted("queued", "processing", "completed"),
            "job_bad": scripted("processing", "failed", error={"code": "generation_failed", "message": "It broke."}),
            "job_runs": scripted("processing"),
        }
    )
    for name in ("good", "bad", "runs"):
        stack.kube.create(plugin.namespace, name, {"jobID": f"job_{name}"}, labels={"set": name})

    good = plugin.run("wait", "good", "--timeout", "30s")
    assert (good.returncode, good.stdout) == (0, "1 succeeded, 0 did not\n")

    bad = plugin.run("wait", "good", "bad", "--timeout", "30s")
    assert bad.returncode == 1
    assert f"{plugin.namespace}/bad   JobFailed: The job failed: It broke." in bad.stdout
    assert bad.stdout.splitlines()[-1] == "1 succeeded, 1 did not"

    late = plugin.run("wait", "-l", "set in (good, runs)", "--timeout", "1s", "--output", "json")
    assert late.returncode == 124
    told = json.loads(late.stdout)
    assert told["succeeded"] == [f"{plugin.namespace}/good"]
    assert [each["render"] for each in told["notEnded"]] == [f"{plugin.namespace}/runs"]
    assert told["timedOut"] is True

    for arguments in (("-l", "set=nothing"), ("absent",), ("good", "absent")):
        none = plugin.run("wait", *arguments, "--timeout", "30s")
        assert none.returncode == 3
        assert "absent" in none.stderr or "nothing matches -l set=nothing" in none.stderr

    assert plugin.run("wait", "-l", "((").returncode == 2
    assert plugin.run("wait").returncode == 2


def _lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    assert process.stderr
    for line in process.stderr:
        yield line.partition(" ")[2].rstrip() if line[2:3] == ":" else line.rstrip()


def _end(kube: Kube, namespace: str, name: str) -> None:
    answer = kube.patch(namespace, name, {"status": ENDED}, status=True)
    assert answer.ok, answer.text


def test_each_change_is_a_line_and_deletion_is_no_success(stack: Stack, plugin: Plugin) -> None:
    for name in ("a", "b", "c"):
        stack.kube.create(plugin.namespace, name, {"jobID": f"job_{name}"}, labels={"set": "x"})
    with plugin.started("wait", "-l", "set=x", "--timeout", "60s") as process:
        lines = _lines(process)
        assert next(lines).startswith("0 of 3 ended")
        stack.kube.patch(plugin.namespace, "a", {"status": {"state": "Queued"}}, status=True)
        assert next(lines) == f"{plugin.namespace}/a Queued"
        _end(stack.kube, plugin.namespace, "a")
        assert next(lines) == f"{plugin.namespace}/a Completed"
        stack.kube.create(plugin.namespace, "late", {"jobID": "job_late"}, labels={"set": "x"})
        assert next(lines) == f"{plugin.namespace}/late Pending"
        stack.kube.delete(plugin.namespace, "b")
        assert next(lines) == f"{plugin.namespace}/b deleted"
        _end(stack.kube, plugin.namespace, "c")
        _end(stack.kube, plugin.namespace, "late")
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 1
        assert f"{plugin.namespace}/b   Deleted: " in output
        assert output.endswith("3 succeeded, 1 did not\n")


def test_one_that_ended_well_and_then_went_has_succeeded(stack: Stack, plugin: Plugin) -> None:
    for name in ("a", "b"):
        stack.kube.create(plugin.namespace, name, {"jobID": f"job_{name}"}, labels={"set": "x"})
    with plugin.started("wait", "-l", "set=x", "--timeout", "60s") as process:
        lines = _lines(process)
        next(lines)
        _end(stack.kube, plugin.namespace, "a")
        stack.kube.delete(plugin.namespace, "a")
        assert [next(lines), next(lines)] == [f"{plugin.namespace}/a Completed", f"{plugin.namespace}/a deleted"]
        _end(stack.kube, plugin.namespace, "b")
        output, _ = process.communicate(timeout=30)
        assert (process.returncode, output) == (0, "2 succeeded, 0 did not\n")


def test_ctrl_c_ends_it_cleanly(stack: Stack, plugin: Plugin) -> None:
    stack.kube.create(plugin.namespace, "a", {"jobID": "job_a"})
    for verb in ("wait", "watch"):
        with plugin.started(verb, "a") as process:
            first = process.stderr if verb == "wait" else process.stdout
            assert first
            assert "0 of 1 ended" in first.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=10)
            assert process.returncode == 130
            assert errors.split() == ["interrupted"]


@pytest.fixture
def own(tmp_path: Path, programs: Binaries) -> Iterator[ControlPlane]:
    """A control plane that a test may break."""
    with ControlPlane(tmp_path / "own", programs) as control_plane:
        control_plane.apply_crd(ROOT / "crds" / "sumerenders.yaml")
        yield control_plane


@pytest.mark.timeout(300)
def test_it_survives_what_happens_to_the_api_server(own: ControlPlane) -> None:
    kube, plugin = Kube(own), Plugin(own, "default")
    for name in ("a", "b", "c", "d"):
        kube.create("default", name, {"jobID": f"job_{name}"}, labels={"set": "x"})
    with (
        plugin.started("wait", "-l", "set=x", "--timeout", "200s") as process,
        plugin.started("watch", "-l", "set=x") as watching,
    ):
        lines = _lines(process)
        next(lines)
        assert watching.stdout
        assert "0 of 4 ended" in watching.stdout.readline()

        own.restart_apiserver()
        eventually(lambda: kube.request("GET", "/readyz").ok, within_s=60)
        eventually(lambda: kube.patch("default", "a", {"status": ENDED}, status=True).ok, within_s=30)
        _until(lines, "default/a Completed")

        # Down for longer, with a change and a deletion that no watch can tell of any more.
        own.apiserver.kill()
        _until(lines, "; waiting for it")
        own.start_apiserver()
        eventually(lambda: kube.patch("default", "b", {"status": ENDED}, status=True).ok, within_s=30)
        kube.delete("default", "c")
        _until(lines, "default/c deleted")

        _end(kube, "default", "d")
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        assert output.startswith("default/c   Deleted: ")
        assert output.endswith("3 succeeded, 1 did not\n")

        # It asks at moments of its own: it may learn of the end later than `wait` did.
        seen = _until(watching.stdout, "3 of 3 ended (0 not successfully)")
        assert any("default/a Completed" in line for line in seen)
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=20)
        assert watching.returncode == 130


def _until(lines: Iterable[str], wanted: str) -> list[str]:
    """Reads on to a line that holds this; all the lines read."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} never came: {seen}")


def test_an_api_server_that_hangs_does_not_hold_up_the_timeout(own: ControlPlane) -> None:
    Kube(own).create("default", "a", {"jobID": "job_a"})
    plugin = Plugin(own, "default")
    with plugin.started("wait", "a", "--timeout", "4s") as process:
        assert next(_lines(process)).startswith("0 of 1 ended")
        own.apiserver.pause()
        since_s = time.monotonic()
        try:
            process.communicate(timeout=40)
        finally:
            own.apiserver.resume()
        assert process.returncode == 124
        assert time.monotonic() - since_s < 30


def test_a_cluster_without_the_definition_says_so(tmp_path: Path, programs: Binaries) -> None:
    with ControlPlane(tmp_path / "bare", programs) as bare:
        plugin = Plugin(bare, "default")
        for verb in ("list", "watch", "wait"):
            result = plugin.run(verb, *(["x"] if verb == "wait" else []))
            assert result.returncode == 2
            assert "does not serve SumeRenders" in result.stderr
            assert "kubectl apply -f crds/" in result.stderr


def test_a_retry_speaks_for_the_failed_one(stack: Stack, plugin: Plugin) -> None:
    failed = json.loads(json.dumps(ENDED).replace('"Completed"', '"Failed"').replace('"True"', '"False"', 1))
    spec = {"request": {"model": "m"}}
    stack.kube.create(plugin.namespace, "a", spec, labels={"set": "x"})
    assert stack.kube.patch(plugin.namespace, "a", {"status": failed}, status=True).ok
    assert plugin.run("wait", "-l", "set=x", "--timeout", "0").returncode == 1
    plugin.ok("retry", "a")
    assert plugin.ok("list", "-o", "name").split() == ["a", "a-r2"]
    assert plugin.run("wait", "-l", "set=x", "--timeout", "0").returncode == 124
    _end(stack.kube, plugin.namespace, "a-r2")
    assert plugin.run("wait", "-l", "set=x", "--timeout", "0").stdout == "1 succeeded, 0 did not\n"
