"""The rights of the chart, proven by use: real processes under its ServiceAccounts, through the whole life of renders.

Everything they do is in the audit log of a real API server: nothing is refused, and no right is left over.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from controlplane import Binaries, ControlPlane, program
from controlplane.cluster import as_user
from kube import condition, eventually, is_finished, status
from rights import Right, Use, granted, unused, uses
from stack import Stack, scripted

ROOT: Final = Path(__file__).parents[2]
REQUEST: Final = {"model": "sume/clip-fast", "arguments": {"prompt": "a dog"}}
REFUSED: Final = re.compile(r"(?<![\w,.:-])403(?![\w-])|orbidden")  # not a fraction of a second, nor part of an id
ACCOUNTS: Final = ("controller", "poller")
# Short times, given as an owner would give them.
QUICK: Final = {
    "pollSeconds": 1,
    "pollMinSeconds": 0.2,
    "pollMaxSeconds": 5,
    "errorSeconds": 0.5,
    "requestTimeoutSeconds": 2,
    "leaseSeconds": 5,
    "sweepSeconds": 4,
    "logFormat": "text",
    "logLevel": "debug",
}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory, programs: Binaries) -> Iterator[ControlPlane]:
    """A control plane that writes down every call."""
    with ControlPlane(tmp_path_factory.mktemp("audited"), programs, audited=True) as control_plane:
        yield control_plane


class Installed:
    """A release on the API server, and its pods' commands run by hand, each as its own ServiceAccount."""

    def __init__(self, stack: Stack, release: str, namespace: str, **values: Any) -> None:
        self.stack, self.release, self.namespace = stack, release, namespace
        self.cluster = stack.control_plane
        chosen = {"sume": QUICK, "redis": {"mode": "external", "external": {"url": "redis://redis.invalid:6379/0"}}}
        file = stack.directory / f"{release}.json"
        file.write_text(json.dumps(chosen | values), encoding="utf-8")
        # No node runs here, so nothing would ever become ready.
        self._helm("upgrade", "--install", release, str(ROOT / "deploy" / "chart"), "--no-hooks", "-f", str(file))

    def start(self) -> None:
        """Controller and poller, with the variables of their pods."""
        for role in ACCOUNTS:
            self.stack.start(role, f"{self.release}-{role}", ready=False, **self._environment(role))
        for role in ACCOUNTS:
            name = f"{self.release}-{role}"
            self.stack.wait_ready(self.stack.ports[name], name)

    def granted(self, role: str) -> frozenset[Right]:
        """What the role's account may do."""
        return granted(self.cluster, self.namespace, self._account(role))

    def uses(self, role: str) -> list[Use]:
        """What the role's account asked for so far."""
        return list(uses(self.cluster, self.namespace, self._account(role)))

    def log(self, role: str) -> str:
        """What the role said."""
        return self.stack.processes[f"{self.release}-{role}"].log.read_text(encoding="utf-8")

    def _environment(self, role: str) -> dict[str, str]:
        """As the pod has it, but for the addresses of a cluster's network and files of its mounts."""
        (container,) = self._deployment(role)["spec"]["template"]["spec"]["containers"]
        variables = {each["name"]: str(each.get("value", "")) for each in container["env"]}
        token = self.cluster.kubectl("create", "token", self._account(role), "-n", self.namespace).stdout.strip()
        file = self.stack.directory / f"{self.release}-{role}.kubeconfig"
        here = {
            "KUBECONFIG": str(as_user(self.cluster.kubeconfig, file, token, self.namespace)),
            "REDIS_URL": self.stack.redis.url,
            "SUME_API_URL": self.stack.sandbox.url,
            "SUME_API_KEY_FILE": "",
        }
        variables.pop("SUME_HTTP_PORT")  # two pods may have the same port, two processes may not
        return {"SUME_WATCH_NAMESPACES": ""} | variables | here

    def _account(self, role: str) -> str:
        return str(self._deployment(role)["spec"]["template"]["spec"]["serviceAccountName"])

    def _deployment(self, role: str) -> dict[str, Any]:
        labels = f"app.kubernetes.io/instance={self.release},app.kubernetes.io/component={role}"
        found = self.cluster.kubectl("get", "deploy", "-n", self.namespace, "-l", labels, "-o", "json").stdout
        (deployment,) = json.loads(found)["items"]
        return dict(deployment)

    def _helm(self, *arguments: str) -> None:
        where = (f"--kubeconfig={self.cluster.kubeconfig}", "-n", self.namespace, "--create-namespace")
        subprocess.run([program("helm"), *arguments, *where], check=True, capture_output=True, text=True, timeout=120)


@pytest.fixture
def stack(tmp_path: Path, audited: ControlPlane) -> Iterator[Stack]:
    """Redis, sandbox and processes on the audited control plane."""
    with Stack(tmp_path, audited, ("films", "clips", "team-a", "team-b", "strangers")) as made:
        made.start_sandbox("--queue-s", "4", "--process-s", "1")
        yield made


def test_every_right_is_used_and_none_is_missing(stack: Stack) -> None:
    installed = Installed(stack, "sume", "sume-system")
    installed.start()
    for namespace in ("films", "clips"):
        _abandon(stack, namespace)
    _live_through_everything(stack, ["films", "clips"])
    for namespace in ("films", "clips"):  # 50 s after its deletion
        _wait_gone(stack, namespace, "abandoned", within_s=75)
    _assert_nothing_was_refused(installed)
    for role in ACCOUNTS:
        assert installed.granted(role)
        assert unused(installed.granted(role), installed.uses(role)) == []


def test_two_releases_with_roles_only(stack: Stack) -> None:
    """Each works in its own namespace and in no other; no right of theirs holds cluster-wide."""
    releases = [
        Installed(
            stack, name, name, watch={"namespaces": [name]}, sume=QUICK | {"queueKey": name}, crds={"install": False}
        )
        for name in ("team-a", "team-b")
    ]
    stack.kube.create("strangers", "untouched", {"jobID": "job_untouched"})
    for release in releases:
        release.start()
    _live_through_everything(stack, ["team-a", "team-b"])
    for release in releases:
        _assert_nothing_was_refused(release)
        for role in ACCOUNTS:
            assert {right.namespace for right in release.granted(role)} == {release.namespace}
            assert {use.right.namespace for use in release.uses(role)} == {release.namespace}
    assert "status" not in stack.kube.get("strangers", "untouched")
    assert not stack.sandbox.job("job_untouched")


def _assert_nothing_was_refused(installed: Installed) -> None:
    for role in ACCOUNTS:
        assert [use for use in installed.uses(role) if use.code == 403] == []
        assert not REFUSED.search(installed.log(role))


def _live_through_everything(stack: Stack, namespaces: list[str]) -> None:
    """Follow, ask, cancel, delete in mid-run, expire; with an own key and without."""
    for namespace in namespaces:
        stack.sandbox.script({f"job_{namespace}": scripted("queued", "processing", "completed")})
        stack.kube.make_secret(namespace, "own-key", {"apiKey": "another-key"})
        stack.kube.create(namespace, "follows", {"jobID": f"job_{namespace}"})
        stack.kube.create(namespace, "asks", {"request": REQUEST, "credentialsSecretRef": {"name": "own-key"}})
        stack.kube.create(namespace, "expires", {"request": REQUEST, "ttlSecondsAfterFinished": 1})
        stack.kube.create(namespace, "canceled", {"request": REQUEST})
        stack.kube.create(namespace, "deleted", {"request": REQUEST})
    for namespace in namespaces:
        _job_of(stack, namespace, "canceled")
        stack.kube.edit(namespace, "canceled", cancel=True)
        _job_of(stack, namespace, "deleted")
        stack.kube.delete(namespace, "deleted")
    for namespace in namespaces:
        for name in ("follows", "asks", "canceled"):
            _wait_finished(stack, namespace, name)
        assert condition(stack.kube.get(namespace, "asks"), "Succeeded") == ("True", "Completed")
        for name in ("expires", "deleted"):
            _wait_gone(stack, namespace, name, within_s=60)


def _abandon(stack: Stack, namespace: str) -> None:
    """Delete a render whose job Sume will not cancel: the controller lets it go by itself."""
    stack.kube.create(namespace, "abandoned", {"request": REQUEST | {"model": "sume/slow"}})
    stack.sandbox.fault(job=_job_of(stack, namespace, "abandoned"), http_status=503)
    stack.kube.delete(namespace, "abandoned")


def _job_of(stack: Stack, namespace: str, name: str) -> str:
    return str(eventually(lambda: status(stack.kube.get(namespace, name)).get("jobID"), within_s=30, what="a job"))


def _wait_finished(stack: Stack, namespace: str, name: str) -> None:
    eventually(lambda: is_finished(stack.kube.get(namespace, name)), within_s=60, what=f"{namespace}/{name} finished")


def _wait_gone(stack: Stack, namespace: str, name: str, *, within_s: float) -> None:
    eventually(lambda: not stack.kube.exists(namespace, name), within_s=within_s, what=f"{namespace}/{name} gone")
