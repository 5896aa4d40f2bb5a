"""One node for the whole run, with two versions of the operator's image, the chart's Redis and a Sume outside."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane import Node, node_images
from node_diagnosis import diagnosis
from node_release import NAMESPACE, REPOSITORY, Release, values_for
from node_sume import Sume
from operator_image import OperatorImages

PREVIOUS, NOW = "v-prev", "v-now"
PREVIOUS_VERSION = "0.0.9"
_running: list[Node] = []


def _progress(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (a first build takes minutes: say so)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives:
    """Image archives."""

    previous: Path
    now: Path
    redis: Path


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Both versions are built of this tree; the previous one says that it is older."""
    images = OperatorImages(tmp_path_factory.mktemp("images"), _progress)
    return Archives(
        previous=images.build(f"localhost/{REPOSITORY}:{PREVIOUS}", PREVIOUS_VERSION),
        now=images.build(f"localhost/{REPOSITORY}:{NOW}"),
        redis=node_images.redis_image(_progress),
    )


@pytest.fixture(scope="session")
def node(archives: Archives) -> Iterator[Node]:
    """Up, with every image loaded."""
    with Node(_progress) as made:
        _running.append(made)
        for archive in (archives.previous, archives.now, archives.redis):
            made.load(archive)
        yield made
        _running.clear()


@pytest.fixture(scope="session")
def sume(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Sume:
    """The Sume that installs of `release` talk to."""
    return Sume(node, f"localhost/{REPOSITORY}:{NOW}", tmp_path_factory.mktemp("sume"))


@pytest.fixture(scope="module")
def release(node: Node, sume: Sume) -> Release:
    """The previous version, installed and ready; its key is there."""
    node.kubectl("create", "namespace", NAMESPACE, check=False)
    node.kubectl(
        "create", "secret", "generic", "sume-api-key", f"--namespace={NAMESPACE}", "--from-literal=apiKey=node-key"
    )
    installed = Release(node)
    installed.uninstall()  # what a failed test before this may have left
    installed.install(values_for(PREVIOUS))
    return installed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure is told together with what the node looked like."""
    report = yield
    if report.failed and _running:
        report.sections.append(("node", diagnosis(_running[0])))
    return report
