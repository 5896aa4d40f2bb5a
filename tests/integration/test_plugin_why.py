"""`kubectl sumerender why` over a real API server: what the operator wrote, or hands set, and what it answers."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest

from controlplane import ControlPlane
from kube import MERGE, Kube, condition, eventually, is_finished
from kubectl_sumerender.advice import ADVICE
from plugin import Plugin
from stack import Stack

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces"
LEASE: Final = "sume-operator-controller"
RUNNING: Final = sorted(set(ADVICE) - {"Completed", "Collected"})


@pytest.fixture
def kube(cluster: ControlPlane) -> Kube:
    return Kube(cluster)


@pytest.fixture
def plugin(cluster: ControlPlane, kube: Kube, request: pytest.FixtureRequest) -> Plugin:
    """In a namespace of the test's own."""
    namespace = f"t-why-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]}"
    kube.make_namespace(namespace)
    return Plugin(cluster, namespace)


def why(plugin: Plugin, name: str, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(plugin.ok("why", name, "-o", "json", *arguments))
    return told


def set_status(kube: Kube, namespace: str, name: str, reason: str, **more: Any) -> None:
    """As the operator would write it."""
    entry = {
        "type": "Succeeded",
        "status": "Unknown",
        "reason": reason,
        "message": f"About {reason}.",
        "lastTransitionTime": "2026-07-01T00:00:00Z",
    }
    known = {"state": "Pending", "message": entry["message"], "observedGeneration": 1, "conditions": [entry]}
    answer = kube.patch(namespace, name, {"status": known | more}, status=True)
    assert answer.ok, answer.text


def beat(kube: Kube, namespace: str, renewed: datetime | None) -> None:
    """A sign of life of a controller in that namespace, or none."""
    path = f"{LEASES}/{namespace}/leases"
    if renewed is None:
        kube.request("DELETE", f"{path}/{LEASE}")
        return
    spec = {"holderIdentity": "x", "leaseDurationSeconds": 40, "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": spec}
    if kube.request("POST", path, json=body).status_code == 409:
        answer = kube.request("PATCH", f"{path}/{LEASE}", json={"spec": spec}, headers={"Content-Type": MERGE})
        assert answer.ok, answer.text


def test_every_reason_on_a_real_object(plugin: Plugin, kube: Kube) -> None:
    for reason in RUNNING:
        kube.create(plugin.namespace, reason.lower(), {"jobID": "job_1"})
        set_status(kube, plugin.namespace, reason.lower(), reason)
    for reason in RUNNING[:: len(RUNNING) // 6]:  # each is a process; the whole table stands in the unit tests
        text = plugin.ok("why", reason.lower())
        assert text.startswith(f"{plugin.namespace}/{reason.lower()}   Pending   {reason}\n  About {reason}.")
        assert f"What it means\n  {ADVICE[reason].meaning}" in text
        assert "What to do\n" in text
        told = why(plugin, reason.lower())
        assert (told["reason"], told["message"]) == (reason, f"About {reason}.")
        assert told["commands"] or told["todo"].startswith("Nothing")


def test_a_render_that_nothing_has_touched(plugin: Plugin, kube: Kube) -> None:
    """The Lease is told from outside: none, old, fresh; then whether others of the namespace were touched."""
    kube.create(plugin.namespace, "intro", {"jobID": "job_1"})
    now = datetime.now(UTC)
    here = ("--operator-namespace", plugin.namespace)
    assert why(plugin, "intro", *here)["reason"] == "NoController"
    beat(kube, plugin.namespace, now - timedelta(hours=1))
    down = why(plugin, "intro", *here)
    assert (down["reason"], down["controller"].split(":")[0]) == ("ControllerDown", "down")
    beat(kube, plugin.namespace, now + timedelta(minutes=5))  # far enough for a slow machine
    assert why(plugin, "intro", *here)["reason"] == "JustMade"
    eventually(lambda: why(plugin, "intro", *here)["reason"] != "JustMade", within_s=60, every_s=1)
    assert why(plugin, "intro", *here)["reason"] == "NamespaceNotWatched"
    kube.create(plugin.namespace, "other", {"jobID": "job_2"})
    set_status(kube, plugin.namespace, "other", "Queued")
    assert why(plugin, "intro", *here)["reason"] == "NoPoller"
    beat(kube, plugin.namespace, None)


def test_events_are_told_in_order_and_only_of_this_object(plugin: Plugin, kube: Kube) -> None:
    uids = {name: kube.create(plugin.namespace, name, {"jobID": "job_1"})["metadata"]["uid"] for name in ("a", "b")}
    for number, name in enumerate(("a", "b", "a")):
        event = {
            "metadata": {"name": f"e{number}"},
            "eventTime": f"2026-07-01T00:00:0{number}.000000Z",
            "type": "Warning",
            "reason": f"Reason{number}",
            "note": f"Note {number}",
            "action": "Turn",
            "reportingController": "test",
            "reportingInstance": "test",
            "regarding": {"kind": "SumeRender", "namespace": plugin.namespace, "name": name, "uid": uids[name]},
        }
        answer = kube.request("POST", f"/apis/events.k8s.io/v1/namespaces/{plugin.namespace}/events", json=event)
        assert answer.status_code == 201, answer.text
    set_status(kube, plugin.namespace, "a", "Queued")
    assert [each["note"] for each in why(plugin, "a")["events"]] == ["Note 0", "Note 2"]
    text = plugin.ok("why", "a")
    assert text.index("Note 0") < text.index("Note 2")
    assert "Note 1" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("nobody",), 3, "kubectl sumerender list -A"),
        (("nobody", "-A"), 2, "a name is in one namespace"),
        ((), 2, "Missing argument"),
    ],
)
def test_exit_codes(plugin: Plugin, arguments: tuple[str, ...], code: int, text: str) -> None:
    done = plugin.run("why", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr


def test_who_may_see_little_still_gets_an_answer(plugin: Plugin, kube: Kube, cluster: ControlPlane) -> None:
    """An account that may read renders of one namespace, and nothing else: no Leases, no events."""
    namespace = plugin.namespace
    kube.create(namespace, "intro", {"jobID": "job_1"})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": ["render.sume.com"], "resources": ["sumerenders"], "verbs": ["get", "list"]}
    kube.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", json={"metadata": {"name": "guest"}})
    kube.request("POST", f"{rbac}/roles", json={"metadata": {"name": "guest"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "guest"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"},
        "subjects": [{"kind": "ServiceAccount", "name": "guest", "namespace": namespace}],
    }
    kube.request("POST", f"{rbac}/rolebindings", json=binding)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/guest/token"
    token = kube.request("POST", path, json={"spec": {}}).json()["status"]["token"]
    config = cluster.kubeconfig.read_text().replace(cluster.token, token)
    guest = cluster.directory / f"{namespace}.kubeconfig"
    guest.write_text(config)
    told = why(plugin, "intro", "--kubeconfig", str(guest))
    assert told["reason"] == "NotTouched"
    assert "--operator-namespace" in told["controller"]


def _says(kube: Kube, namespace: str, name: str, reason: str) -> bool:
    return condition(kube.get(namespace, name), "Succeeded")[1] == reason


@pytest.mark.timeout(180)
def test_with_a_real_operator(stack: Stack, cluster: ControlPlane) -> None:
    """The place in line, the next look, the end; and the controller's own Lease."""
    stack.start_sandbox("--process-s", "3600", "--queue-s", "0")
    stack.start("controller", ready=False, SUME_MAX_ACTIVE_JOBS="1")
    stack.start("poller", SUME_MAX_ACTIVE_JOBS="1")
    namespace, request = stack.namespaces[0], {"request": {"model": "m", "arguments": {"prompt": "a dog"}}}
    plugin = Plugin(cluster, namespace)
    stack.kube.create(namespace, "first", request)
    eventually(lambda: condition(stack.kube.get(namespace, "first"), "Submitted")[0] == "True", within_s=60)
    for name in ("second", "third"):
        stack.kube.create(namespace, name, request)
        eventually(partial(_says, stack.kube, namespace, name, "WaitingForSlot"), within_s=60)
    told = why(plugin, "third")
    assert told["reason"] == "WaitingForSlot"
    assert "1 other is before it" in told["message"]
    assert told["nextPollTime"]
    assert told["controller"].startswith("alive: last sign of life")
    assert "RenderSubmitted" in [event["reason"] for event in why(plugin, "first")["events"]]

    stack.kube.create(namespace, "fails", {"jobID": "job_fail-quick"})
    stack.sandbox.script({"job_fail-quick": {"script": [{"status": "failed"}], "error": {"message": "It broke."}}})
    eventually(lambda: is_finished(stack.kube.get(namespace, "fails")), within_s=60)
    text = plugin.ok("why", "fails")
    for part in ("Failed   JobFailed", "It broke.", f"kubectl sumerender retry -n {namespace} fails", "RenderFailed"):
        assert part in text, text
