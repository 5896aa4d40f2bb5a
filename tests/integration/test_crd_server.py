"""What a Kubernetes user meets: the API server refuses bad manifests in clear words, and guards an end by itself."""

import json
from typing import Any

import pytest

from controlplane import ControlPlane
from kube import Kube, manifest
from sume_operator.core.render import GROUP

NAMESPACE = "t-crd"
REQUEST = {"model": "sume/avatar-video/v1.0", "arguments": {"prompt": "a dog", "seconds": 5}}


@pytest.fixture
def kube(cluster: ControlPlane) -> Kube:
    made = Kube(cluster)
    made.make_namespace(NAMESPACE)
    return made


def _apply(cluster: ControlPlane, name: str, spec: Any, *arguments: str) -> tuple[int, str]:
    text = json.dumps(manifest(name, spec, namespace=NAMESPACE))
    result = cluster.kubectl("apply", "-f", "-", *arguments, stdin=text, check=False)
    return result.returncode, result.stdout + result.stderr


TAKEN: dict[str, Any] = {
    "a job": {"jobID": "job_0b6f7c1e-5d0a"},
    "a request": {"request": REQUEST},
    "a request by a router": {"request": {"endpoint": "ImageRouter", "model": "flux.2"}},
    "everything": {
        "request": REQUEST | {"idempotencyKey": "july/intro"},
        "suspend": True,
        "priority": -5,
        "backoffLimit": 2,
        "activeDeadlineSeconds": 600,
        "ttlSecondsAfterFinished": 0,
        "deletionPolicy": "Orphan",
        "credentialsSecretRef": {"name": "sume"},
    },
}


@pytest.mark.parametrize("spec", TAKEN.values(), ids=TAKEN)
def test_taken(cluster: ControlPlane, kube: Kube, spec: Any) -> None:
    code, text = _apply(cluster, "taken", spec, "--dry-run=server")
    assert code == 0, text


REFUSED: dict[str, tuple[Any, str]] = {
    "neither": ({"suspend": True}, "set exactly one of spec.jobID"),
    "both": ({"jobID": "job_1", "request": REQUEST}, "set exactly one of spec.jobID"),
    "a path as job": ({"jobID": "../x"}, "spec.jobID in body should match"),
    "an empty job": ({"jobID": ""}, "spec.jobID in body should be at least 1 chars long"),
    "a long job": ({"jobID": "j" * 129}, "may not be more than 128"),
    "a model with dots": ({"request": {"model": "sume/../x"}}, "spec.request.model in body should match"),
    "no model": ({"request": {"arguments": {}}}, "spec.request.model: Required value"),
    "an unknown endpoint": ({"request": REQUEST | {"endpoint": "Audio"}}, "Unsupported value"),
    "a webhook": ({"request": {"model": "m", "arguments": {"webhook_url": "https://x"}}}, "are set by the operator"),
    "retries of a followed job": ({"jobID": "job_1", "backoffLimit": 1}, "backoffLimit needs spec.request"),
    "no deadline at all": ({"jobID": "job_1", "activeDeadlineSeconds": 0}, "greater than or equal to 1"),
    "an unknown policy": ({"jobID": "job_1", "deletionPolicy": "Keep"}, "Unsupported value"),
    "a misspelt field": ({"jobID": "job_1", "suspended": True}, 'unknown field "spec.suspended"'),
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(cluster: ControlPlane, kube: Kube, spec: Any, message: str) -> None:
    code, text = _apply(cluster, "refused", spec)
    assert code != 0
    assert message in text, text
    assert not kube.exists(NAMESPACE, "refused")


CHANGES: dict[str, tuple[Any, Any, str]] = {
    "another job": ({"jobID": "job_1"}, {"jobID": "job_2"}, "spec.jobID cannot change"),
    "another prompt": (
        {"request": REQUEST},
        {"request": {"arguments": {"prompt": "a cat"}}},
        "spec.request cannot change, a render costs money",
    ),
    "from job to request": ({"jobID": "job_1"}, {"jobID": None, "request": REQUEST}, "cannot change"),
    "cancel taken back": ({"jobID": "job_1", "cancel": True}, {"cancel": False}, "cannot be made active again"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_that_are_refused(kube: Kube, name: str) -> None:
    spec, change, message = CHANGES[name]
    own = f"change-{list(CHANGES).index(name)}"
    kube.create(NAMESPACE, own, spec)
    answer = kube.patch(NAMESPACE, own, {"spec": change})
    assert answer.status_code == 422
    assert message in answer.json()["message"]
    assert kube.edit(NAMESPACE, own, suspend=True)["spec"]["suspend"] is True  # other edits pass
    kube.delete(NAMESPACE, own)


def test_an_end_cannot_be_taken_back(kube: Kube) -> None:
    """Not even by someone who may write the status: the CRD itself refuses."""
    kube.create(NAMESPACE, "ended", {"jobID": "job_1"})
    end = {"status": {"state": "Completed", "terminal": True, "jobID": "job_1"}}
    assert kube.patch(NAMESPACE, "ended", end, status=True).ok
    for revert in (
        {"terminal": False},
        {"terminal": None},
        {"state": "Processing"},
        {"state": None},
        {"state": "Failed", "terminal": True},
    ):
        answer = kube.patch(NAMESPACE, "ended", {"status": revert}, status=True)
        assert answer.status_code == 422, revert
        assert "a render that has ended stays as it ended" in answer.json()["message"]
    assert kube.patch(NAMESPACE, "ended", {"status": {"message": "still fine"}}, status=True).ok
    assert kube.get(NAMESPACE, "ended")["status"]["state"] == "Completed"
    kube.delete(NAMESPACE, "ended")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sumerender", "durable record of one AI video render"),
        ("srender.spec.request", "It can spend credits"),
        ("sumerenders.spec.suspend", "nothing is asked of Sume"),
        ("sumerenders.status.conditions", "Wait for Finished"),
        ("sumerenders.status.polling.streak", "not believed at once"),
    ],
)
def test_explain(cluster: ControlPlane, path: str, text: str) -> None:
    assert text in " ".join(cluster.kubectl("explain", path).stdout.split())


def test_it_is_found_under_its_names(cluster: ControlPlane) -> None:
    listed = cluster.kubectl("api-resources", f"--api-group={GROUP}", "--categories=sume", "-o", "wide").stdout
    assert "sumerenders" in listed
    assert "srender" in listed
