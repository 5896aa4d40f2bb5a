"""The processes themselves: how they start, what they say of their health, how they stop."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Binaries, ControlPlane
from kube import condition, eventually, is_finished, status
from slow_line import SlowLine
from stack import BIN, Stack, scripted
from sume_operator.adapters.cluster import Cluster, load_configuration
from sume_operator.core.render import FINALIZER, parse_render
from sume_operator.metrics import ControllerMetrics
from sume_operator.runtime.announcer import Announcer
from sume_operator.runtime.rescue import Rescue

ROOT = Path(__file__).parents[2]


def test_a_poller_finishes_what_it_has_in_hand(stack: Stack) -> None:
    """SIGTERM in the middle of a read: the answer is written, no lease is left, nothing new is claimed."""
    stack.start_all()
    namespace = stack.namespaces[0]
    script = scripted("processing", next_poll_s=30)
    script["script"][0]["delay_s"] = 1.5
    stack.sandbox.script({"job_one": script, "job_two": scripted("completed")})
    stack.kube.create(namespace, "one", {"jobID": "job_one"})
    eventually(lambda: stack.sandbox.reads("job_one") == 1, within_s=10)
    poller = stack.processes["poller-0"]
    poller.signal(signal.SIGTERM)
    stack.kube.create(namespace, "two", {"jobID": "job_two"})
    assert poller.wait(timeout_s=10) == 0
    assert status(stack.kube.get(namespace, "one"))["polling"]["count"] == 1
    assert status(stack.kube.get(namespace, "two")) == {}
    assert all(score % 1 == 0 for score in stack.alarms().values())
    assert "turns left to their lease: 0" in poller.log.read_text()


def test_the_controller_shows_that_it_lives(stack: Stack) -> None:
    stack.start_sandbox()
    controller = stack.start("controller")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/sume-operator-controller"
    lease = eventually(lambda: _holder(stack, path, controller.pid), within_s=10)
    assert lease["leaseDurationSeconds"] == 40


def _holder(stack: Stack, path: str, pid: int) -> Any:
    """The Lease's spec, once the process `pid` holds it."""
    spec = stack.kube.request("GET", path).json().get("spec") or {}
    return spec if str(spec.get("holderIdentity")).endswith(f"-{pid}") else None


def test_the_controller_stops_at_once(stack: Stack) -> None:
    stack.start_sandbox()
    controller = stack.start("controller")
    controller.signal(signal.SIGTERM)
    assert controller.wait(timeout_s=10) == 0


def test_health(stack: Stack) -> None:
    stack.start_all()
    for name, port in stack.ports.items():
        assert stack.http(port, "/healthz") == (200, "ok\n"), name
        assert stack.http(port, "/readyz") == (200, "ok\n"), name
        assert stack.http(port, "/")[0] == 404
        metrics = stack.http(port, "/metrics")[1]
        assert f'sumerender_build_info{{component="{name.split("-")[0]}",version=' in metrics
        assert "sumerender_queue_size 0.0" in metrics
    stack.redis.kill()
    for port in stack.ports.values():
        code, text = eventually(lambda port=port: _if_not_ready(stack, port), within_s=25)  # type: ignore[misc]
        assert code == 503
        assert "redis: does not answer" in text
        assert stack.http(port, "/healthz")[0] == 200  # restarting would not bring Redis back
    stack.redis.start()
    for port in stack.ports.values():
        eventually(lambda port=port: stack.http(port, "/readyz")[0] == 200, within_s=10)  # type: ignore[misc]


def _if_not_ready(stack: Stack, port: int) -> tuple[int, str] | None:
    answer = stack.http(port, "/readyz")
    return answer if answer[0] == 503 else None


def test_without_redis_it_waits_without_spinning(stack: Stack) -> None:
    """Redis gone from the start: the processes stay, use next to no CPU, and work as soon as it is there."""
    stack.redis.kill()
    stack.start_sandbox()
    stack.sandbox.script({"job_one": scripted("completed")})
    names = ["controller", "poller"]
    for name in names:
        stack.start(name, ready=False)
    stack.kube.create(stack.namespaces[0], "one", {"jobID": "job_one"})
    for name in names:
        eventually(lambda name=name: "Redis does not answer" in _log(stack, name), within_s=20)  # type: ignore[misc]
    used_s, watched_s = {name: _cpu_s(stack, name) for name in names}, 4.0
    time.sleep(watched_s)  # what is measured is a rate over this time
    for name in names:
        assert _cpu_s(stack, name) - used_s[name] < 0.15 * watched_s, name
        assert _log(stack, name).count("Redis does not answer") == 1
    stack.redis.start()
    eventually(lambda: is_finished(stack.kube.get(stack.namespaces[0], "one")), within_s=15)


def _log(stack: Stack, name: str) -> str:
    return stack.processes[name].log.read_text()


def _cpu_s(stack: Stack, name: str) -> float:
    fields = Path(f"/proc/{stack.processes[name].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        ({"SUME_POLL_SECONDS": "soon"}, ["SUME_POLL_SECONDS:"]),
        ({"SUME_LEASE_SECONDS": "3"}, ["SUME_LEASE_SECONDS: wants at least"]),
        ({"REDIS_URL": "http://:secret@x", "SUME_API_URL": "nowhere"}, ["REDIS_URL: wants", "SUME_API_URL: wants"]),
        ({"KUBECONFIG": "/nowhere/at/all"}, ["KUBECONFIG"]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_bad_settings(stack: Stack, variables: dict[str, str], lines: list[str]) -> None:
    result = subprocess.run(
        [BIN, "poller"], env=stack.environment(**variables), capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 2
    assert "secret" not in result.stderr
    assert "Traceback" not in result.stderr
    for line in lines:
        assert line in result.stderr


def test_it_says_what_it_runs_with_but_no_secret(stack: Stack) -> None:
    stack.start_sandbox()
    stack.start("poller", SUME_API_KEY="marker-key", SUME_LOG_FORMAT="json")
    first = json.loads(_log(stack, "poller").splitlines()[0])
    assert '"sume_api_key": "set"' in first["message"]
    assert '"sume_lease_seconds": 5.0' in first["message"]
    assert "marker-key" not in _log(stack, "poller")


def test_only_the_watched_namespaces(stack: Stack) -> None:
    watched, other = stack.namespaces[:2]
    stack.start_all(SUME_WATCH_NAMESPACES=watched)
    stack.sandbox.script({"job_w": scripted("completed"), "job_o": scripted("completed")})
    stack.kube.create(other, "one", {"jobID": "job_o"})
    stack.kube.create(watched, "one", {"jobID": "job_w"})
    eventually(lambda: is_finished(stack.kube.get(watched, "one")), within_s=10)
    eventually(lambda: stack.metric("controller", "sumerender_sweep_duration_seconds") > 0, within_s=10)
    assert status(stack.kube.get(other, "one")) == {}


def test_a_crd_that_is_missing_or_too_old(tmp_path: Path, programs: Binaries) -> None:
    """The controller says so and is not ready, and starts to work as soon as the right one is there."""
    crd: Any = yaml.safe_load((ROOT / "crds" / "sumerenders.yaml").read_text())
    with (
        ControlPlane(tmp_path / "bare", programs) as bare,
        Stack(tmp_path, bare, ("t-crd-a",)) as stack,
    ):
        stack.start_sandbox()
        stack.start("controller", ready=False)
        port = stack.ports["controller"]
        eventually(lambda: "is not installed" in stack.http(port, "/readyz")[1], within_s=15)
        assert stack.http(port, "/healthz")[0] == 200

        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        api_url = properties.pop("apiURL")
        (tmp_path / "old.yaml").write_text(yaml.safe_dump(crd))
        bare.apply_crd(tmp_path / "old.yaml")
        eventually(lambda: "CRD too old: its status lacks apiURL" in stack.http(port, "/readyz")[1], within_s=15)

        properties["apiURL"] = api_url
        (tmp_path / "new.yaml").write_text(yaml.safe_dump(crd))
        bare.apply_crd(tmp_path / "new.yaml")
        eventually(lambda: stack.http(port, "/readyz")[0] == 200, within_s=20)
        stack.sandbox.script({"job_one": scripted("completed")})
        stack.start("poller")
        stack.kube.create("t-crd-a", "one", {"jobID": "job_one"})
        eventually(lambda: is_finished(stack.kube.get("t-crd-a", "one")), within_s=10)
        assert stack.processes["controller"].is_running


def test_a_deletion_that_nobody_works_on_is_freed(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """No poller, no Redis, no Sume: the controller's rescue lets the object go, and says so."""
    namespace = stack.namespaces[0]
    spec = {"jobID": "job_one", "deletionPolicy": "Cancel"}
    stack.kube.create(namespace, "one", spec, finalizers=[FINALIZER])
    monkeypatch.setenv("KUBECONFIG", str(stack.control_plane.kubeconfig))
    cluster, metrics = Cluster(load_configuration(2), timeout_s=5), ControllerMetrics()
    rescue = Rescue(cluster, Announcer(cluster, "test", "test-1"), metrics, lambda: datetime.now(UTC), patience_s=2.0)
    rescue.start()
    try:
        rescue.saw(parse_render(stack.kube.get(namespace, "one")))  # not deleted yet: nothing to free
        stack.kube.delete(namespace, "one")
        rescue.saw(parse_render(stack.kube.get(namespace, "one")))
        since_s = time.monotonic()
        eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=10)
        assert time.monotonic() - since_s > 0.9  # deletionTimestamp has whole seconds
        events = eventually(lambda: stack.kube.events(namespace, "one"), within_s=10)  # it is told after the deed
    finally:
        rescue.stop()
    assert [event["reason"] for event in events] == ["CancelAbandoned"]


def test_many_deletions_are_freed_side_by_side(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Callable[[str], None]
) -> None:
    """A deleted namespace makes hundreds late at once, and the API server may be far away."""
    namespace, count, delay_s = stack.namespaces[0], 24, 0.1
    renders = []
    for number in range(count):
        stack.kube.create(
            namespace, f"r-{number}", {"jobID": "job", "deletionPolicy": "Cancel"}, finalizers=[FINALIZER]
        )
        stack.kube.delete(namespace, f"r-{number}")
        renders.append(parse_render(stack.kube.get(namespace, f"r-{number}")))
    with SlowLine(int(stack.control_plane.url.rpartition(":")[2]), delay_s) as line:
        far = stack.control_plane.kubeconfig.read_text().replace(stack.control_plane.url, line.url)
        (tmp_path / "far").write_text(far)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "far"))
        cluster, metrics = Cluster(load_configuration(8), timeout_s=5), ControllerMetrics()
        rescue = Rescue(cluster, Announcer(cluster, "test", "test-1"), metrics, lambda: datetime.now(UTC), patience_s=0)
        for render in renders:
            rescue.saw(render)
        since_s = time.monotonic()
        rescue.start()
        try:
            eventually(lambda: not stack.kube.all_in([namespace]), within_s=30)
        finally:
            rescue.stop()
    took_s, one_by_one_s = time.monotonic() - since_s, 3 * delay_s * count
    figures(f"rescue of {count} over a line of {delay_s:g} s: {took_s:.1f} s, one by one {one_by_one_s:.1f} s")
    assert took_s < one_by_one_s


def test_a_poller_that_no_controller_helps(stack: Stack) -> None:
    """An alarm that is there is worked off, and comes back, whether a controller lives or not."""
    stack.start_all()
    stack.sandbox.script({"job_one": scripted("processing", "processing", "processing", "completed")})
    stack.kube.create(stack.namespaces[0], "one", {"jobID": "job_one"})
    eventually(lambda: stack.sandbox.reads("job_one") == 1, within_s=10)
    stack.processes["controller"].kill()
    render = eventually(lambda: _if_finished(stack), within_s=15)
    assert condition(render, "Succeeded") == ("True", "Completed")


def _if_finished(stack: Stack) -> Any:
    render = stack.kube.get(stack.namespaces[0], "one")
    return render if is_finished(render) else None


def test_members_that_are_no_render_are_kept(stack: Stack) -> None:
    """Somebody's own loop used the same key with bare job ids and seconds."""
    stack.client.zadd("sume:polls", {"job_0b6f": 1_700_000_000, "a/b": 5})
    stack.start_all()
    eventually(lambda: stack.queue()["foreign"] == 2, within_s=10)
    assert stack.client.zrange("sume:polls:foreign", 0, -1, withscores=True) == [("a/b", 5.0), ("job_0b6f", 1.7e9)]
    assert _log(stack, "poller-0").count("set aside") == 1
