"""A real API server takes what the chart makes: every combination of values; each pod under the strictest policy."""

import json

import pytest

from chart_values import COMBINATIONS, WATCHED
from controlplane import ControlPlane
from helm import CHART, NAMESPACE, Helm, named, parsed, pods
from kube import Body, Kube

# The CRD is the business of test_release.py; the others are served by operators that are not here: test_metrics.py.
ELSEWHERE = {"CustomResourceDefinition", "ServiceMonitor", "PodMonitor", "PrometheusRule"}
STRICT = "strict"


@pytest.fixture(scope="module")
def server(cluster: ControlPlane) -> ControlPlane:
    kube = Kube(cluster)
    for name in (NAMESPACE, *WATCHED):
        kube.make_namespace(name)
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    answer = kube.request("POST", "/api/v1/namespaces", json={"metadata": {"name": STRICT, "labels": label}})
    assert answer.status_code in (201, 409), answer.text
    kube.request(
        "POST", "/apis/node.k8s.io/v1/runtimeclasses", json={"metadata": {"name": "gvisor"}, "handler": "runsc"}
    )
    return cluster


def dry_run(server: ControlPlane, objects: list[Body]) -> tuple[int, str]:
    """Exit code and messages of a server-side apply that changes nothing."""
    result = server.kubectl(
        "apply", "--server-side", "--dry-run=server", "-f", "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), check=False, timeout_s=120,
    )  # fmt: skip
    return result.returncode, result.stderr


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_server_takes_every_object(server: ControlPlane, helm: Helm, name: str) -> None:
    objects = [each for each in helm.objects(COMBINATIONS[name]) if each["kind"] not in ELSEWHERE]
    assert dry_run(server, objects) == (0, "")


def test_every_pod_runs_in_a_restricted_namespace(server: ControlPlane, helm: Helm) -> None:
    """But on the host's network, which that policy does not allow."""
    specs = {
        json.dumps(pod["spec"])
        for name, values in COMBINATIONS.items()
        if name != "host network"
        for _component, pod in pods(helm.objects(values))
    }
    made = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{number}", "namespace": STRICT},
            "spec": json.loads(spec),
        }
        for number, spec in enumerate(specs)
    ]
    assert len(made) > 20
    assert dry_run(server, made) == (0, "")


def test_a_laxer_pod_would_be_refused(server: ControlPlane, helm: Helm) -> None:
    """That the policy above does look."""
    (_component, pod), *_others = pods(helm.objects({"securityContext": {"allowPrivilegeEscalation": True}}))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lax", "namespace": STRICT}, "spec": pod["spec"]}
    code, messages = dry_run(server, [body])
    assert code
    assert "allowPrivilegeEscalation" in messages


def test_the_file_for_kubectl(server: ControlPlane) -> None:
    """deploy/install.yaml: with its namespace, without hooks."""
    objects = parsed((CHART.parent / "install.yaml").read_text(encoding="utf-8"))
    assert objects[0]["kind"] == "Namespace"
    assert not [each for each in objects if "helm.sh/hook" in (each["metadata"].get("annotations") or {})]
    assert named(objects, "Job")["spec"]["template"]["spec"]["containers"][0]["args"][0] == "redis-secret"
    assert dry_run(server, [each for each in objects[1:] if each["kind"] not in ELSEWHERE]) == (0, "")
