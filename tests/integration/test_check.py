"""`sume-operator check` and `redis-secret`, as real processes against real parts."""

import base64
import os
import subprocess
from pathlib import Path

import pytest

from controlplane import ControlPlane, free_port
from kube import Kube
from stack import BIN, Stack

MISSING = "http://127.0.0.1:1"


def check(stack: Stack, *options: str, **variables: str) -> tuple[int, dict[str, str]]:
    """Exit code, and what it says of each part."""
    environment = stack.environment(**variables)
    result = subprocess.run([BIN, "check", *options], env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr, result.stderr
    assert "test-key" not in result.stdout + result.stderr
    lines = [line.split(None, 1) for line in result.stdout.splitlines()]
    return result.returncode, {name: " ".join(text.split()) for name, text in lines}


def test_all_is_well(stack: Stack) -> None:
    stack.start_sandbox()
    code, found = check(stack)
    assert (code, found) == (
        0,
        {"crd": "ok served, with every field of this version", "redis": "ok answers", "sume": "ok takes the key"},
    )
    assert stack.sandbox.stats().get("submitted", 0) == 0


def test_one_check_alone(stack: Stack) -> None:
    for option, name in (("--crd", "crd"), ("--redis", "redis")):
        code, found = check(stack, option)
        assert (code, set(found)) == (0, {name})


def test_redis_that_is_not_there(stack: Stack) -> None:
    code, found = check(stack, "--redis", REDIS_URL=f"redis://:s3cret@127.0.0.1:{free_port()}/0")
    assert code == 1
    assert found["redis"].startswith("FAILED does not answer (REDIS_URL): ConnectionError")
    assert "s3cret" not in found["redis"]


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SUME_API_KEY": "wrong"}, "FAILED refuses the key (401)"),
        ({"SUME_API_KEY": "with\x7fcontrol"}, "FAILED The API key in default is empty, or holds characters"),
        ({"SUME_API_URL": MISSING}, "FAILED does not answer (SUME_API_URL)"),
    ],
    ids=["wrong", "odd", "away"],
)
def test_a_key_that_is_not_taken(stack: Stack, variables: dict[str, str], says: str) -> None:
    stack.start_sandbox()
    stack.sandbox.keys(["test-key"])
    code, found = check(stack, "--sume", **variables)
    assert code == 1
    assert found["sume"].startswith(says)


def test_an_address_that_is_not_sumes(stack: Stack) -> None:
    """A bare 404 proves nothing of a key."""
    stack.start_sandbox()
    stack.sandbox.fault(operation="status", http_status=404, body="<html>not here</html>")
    code, found = check(stack, "--sume")
    assert code == 1
    assert found["sume"].startswith("FAILED gives an answer that is not Sume's (SUME_API_URL)")


def test_no_key_fails_only_where_one_is_asked_for(stack: Stack) -> None:
    """Renders may all bring their own."""
    code, found = check(stack, SUME_API_KEY="")
    assert code == 0
    assert found["sume"].startswith("nothing The operator has no API key of its own")
    assert check(stack, "--sume", SUME_API_KEY="")[0] == 1


def test_a_render_is_followed_to_its_end_and_leaves_nothing(stack: Stack) -> None:
    stack.start_all()
    namespace = stack.namespaces[0]
    code, found = check(stack, "--follow", namespace)
    assert (code, set(found)) == (0, {"render"})
    assert found["render"].startswith("ok ended as Completed after")
    assert stack.kube.all_in([namespace]) == []


def test_a_render_that_nobody_works_on(stack: Stack) -> None:
    namespace = stack.namespaces[0]
    code, found = check(stack, "--follow", namespace, "--timeout-s", "1")
    assert code == 1
    assert "did not end in 1 s (Pending: nobody has looked at it)" in found["render"]
    assert stack.kube.all_in([namespace]) == []


def test_bad_settings_end_it_as_they_end_the_roles(stack: Stack) -> None:
    assert check(stack, SUME_LEASE_SECONDS="1")[0] == 2


@pytest.fixture
def kube(cluster: ControlPlane) -> Kube:
    return Kube(cluster)


def redis_secret(cluster: ControlPlane, name: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BIN, "redis-secret", "--name", name],
        env=os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_secret_is_filled_once(cluster: ControlPlane, kube: Kube, tmp_path: Path) -> None:
    """The rest of its data stays."""
    kube.make_secret("default", "to-fill", {"other": "x"})
    first = redis_secret(cluster, "to-fill")
    assert (first.returncode, first.stdout) == (0, "Secret default/to-fill: has a new password\n")
    data = kube.request("GET", "/api/v1/namespaces/default/secrets/to-fill").json()["data"]
    assert data["other"] == base64.b64encode(b"x").decode()
    assert len(base64.b64decode(data["password"])) >= 32
    again = redis_secret(cluster, "to-fill")
    assert (again.returncode, again.stdout) == (0, "Secret default/to-fill: keeps its password\n")
    assert kube.request("GET", "/api/v1/namespaces/default/secrets/to-fill").json()["data"] == data


def test_a_secret_that_is_not_there(cluster: ControlPlane) -> None:
    result = redis_secret(cluster, "not-there")
    assert (result.returncode, result.stderr) == (1, "Secret default/not-there could not be filled: secret: HTTP 404\n")
