"""What integration tests stand on: one control plane and one Redis for the whole run, both real."""

import hashlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Binaries, ControlPlane, RedisServer, binaries
from stack import Stack

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def programs() -> Binaries:
    """etcd, kube-apiserver and kubectl; built if need be. Missing ones fail the test, they do not skip it."""
    return binaries(lambda line: print(line, flush=True))  # noqa: T201 (a build takes minutes: say so)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, programs: Binaries) -> Iterator[ControlPlane]:
    """A control plane that serves SumeRenders."""
    with ControlPlane(tmp_path_factory.mktemp("controlplane"), programs) as control_plane:
        control_plane.apply_crd(ROOT / "crds" / "sumerenders.yaml")
        yield control_plane


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis, or Valkey where there is none."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def stack(tmp_path: Path, cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The operator's processes, not started yet, in namespaces of the test's own."""
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    with Stack(tmp_path, cluster, tuple(f"t-{digest}-{letter}" for letter in "abc")) as made:
        yield made


_figures: list[str] = []


@pytest.fixture(scope="session")
def figures() -> Callable[[str], None]:
    """Measured figures, printed at the end of the run."""
    return _figures.append


def pytest_configure() -> None:
    """Ctrl-C reaches the programs that are tested, also in a run from a background shell, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands on what it measured."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["figures"] = _figures


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The worker's figures arrive."""
    _figures.extend(getattr(node, "workeroutput", {}).get("figures", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if _figures:
        terminalreporter.section("measured")
        for line in _figures:
            terminalreporter.write_line(line)
