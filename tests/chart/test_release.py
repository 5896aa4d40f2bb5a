"""The life of a release on a real API server: installed, upgraded, rolled back, removed; and what stays the same."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controlplane import Binaries, ControlPlane
from controlplane.cluster import as_user
from helm import CHART, NAMESPACE, RELEASE, Helm, HelmError, named, pods
from kube import Body, Kube, eventually

ROOT: Final = CHART.parents[1]
BIN: Final = Path(sys.executable).parent / "sume-operator"
CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sumerenders.render.sume.com"
SECRET: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets/{RELEASE}-redis"
LATER: Final = "activeDeadlineSeconds"  # a field that the older chart's CRD lacks


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, programs: Binaries) -> Iterator[ControlPlane]:
    """A control plane of its own: the CRD comes and goes with the releases."""
    with ControlPlane(tmp_path_factory.mktemp("releases"), programs) as control_plane:
        yield control_plane


@pytest.fixture
def release(server: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """Helm on it; what is left of releases and of the CRD is gone afterwards."""
    helm = Helm(tmp_path, server.kubeconfig)
    yield helm
    for each in json.loads(helm.run("list", "--all-namespaces", "--all", "--output", "json")):
        helm.run("uninstall", each["name"], "--namespace", each["namespace"])
    server.kubectl("delete", "crd", "sumerenders.render.sume.com", "--ignore-not-found")
    server.kubectl("delete", "secret,job", "--all", "--namespace", NAMESPACE)


@pytest.fixture
def kube(server: ControlPlane) -> Kube:
    return Kube(server)


def install(helm: Helm, *options: str, name: str = RELEASE, chart: Path = CHART, **values: Any) -> str:
    return helm.run("install", name, chart, "--namespace", NAMESPACE, "--create-namespace", *options, values=values)


def upgrade(helm: Helm, *options: str, **values: Any) -> str:
    return helm.run("upgrade", RELEASE, CHART, "--namespace", NAMESPACE, *options, values=values or None)


def make_render(kube: Kube, name: str = "kept") -> None:
    """As soon as the server takes them."""
    path = "/apis/render.sume.com/v1alpha1/namespaces/default/sumerenders"
    eventually(lambda: kube.request("GET", path).status_code == 200, within_s=20, what="the CRD served")
    kube.create("default", name, {"jobID": "job_1"})


def fill_password(server: ControlPlane, directory: Path) -> str:
    """What the Job does, with the arguments and the account of its pod: a real process on the real API server."""
    jobs = json.loads(server.kubectl("get", "jobs", "-n", NAMESPACE, "-o", "json").stdout)["items"]
    ((component, pod),) = pods(jobs)
    assert component == "redis-password"
    account = pod["spec"]["serviceAccountName"]
    token = server.kubectl("create", "token", account, "-n", NAMESPACE).stdout.strip()
    kubeconfig = as_user(server.kubeconfig, directory / "job", token)
    loaded = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    loaded["contexts"][0]["context"]["namespace"] = NAMESPACE
    kubeconfig.write_text(yaml.safe_dump(loaded), encoding="utf-8")
    result = subprocess.run(
        [BIN, *pod["spec"]["containers"][0]["args"]],
        env=os.environ | {"KUBECONFIG": str(kubeconfig)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def password(kube: Kube) -> str:
    """What the Secret holds; empty if nothing."""
    data = kube.request("GET", SECRET).json().get("data") or {}
    return base64.b64decode(data.get("password", "")).decode()


def deployments(server: ControlPlane) -> list[Body]:
    found = json.loads(server.kubectl("get", "deployments", "-n", NAMESPACE, "-o", "json").stdout)["items"]
    return list(found)


def older_chart(directory: Path) -> Path:
    """The chart as it might have been: one field of the CRD, one value and one template fewer."""
    chart = directory / "older" / "sume-operator"
    shutil.copytree(CHART, chart, ignore=shutil.ignore_patterns("__pycache__"))
    crd_file, values_file = chart / "files" / "crds" / "sumerenders.yaml", chart / "values.yaml"
    crd = yaml.safe_load(crd_file.read_text(encoding="utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec[LATER]
    crd_file.write_text(yaml.safe_dump(crd), encoding="utf-8")
    values = yaml.safe_load(values_file.read_text(encoding="utf-8"))
    del values["networkPolicy"], values["metrics"]["podMonitor"], values["redis"]["internal"]["maxMemory"]
    values_file.write_text(yaml.safe_dump(values), encoding="utf-8")
    (chart / "templates" / "networkpolicies.yaml").unlink()
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.9", "appVersion": "0.0.9"}))
    return chart


def fields(kube: Kube) -> Body:
    """The fields of a render's spec, as the server has them."""
    version = kube.request("GET", CRD).json()["spec"]["versions"][0]
    return dict(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


def test_install_says_what_is_missing_and_what_to_do_next(release: Helm, kube: Kube) -> None:
    notes = install(release)
    assert "kubectl -n sume-system create secret generic sume-api-key --from-literal=apiKey=YOUR_KEY" in notes
    assert "helm test sume-operator -n sume-system" in notes
    kube.make_secret(NAMESPACE, "sume-api-key", {"apiKey": "k"})
    assert "create secret" not in upgrade(release, "--reuse-values")
    assert "THE SANDBOX IS ON" in upgrade(release, "--reuse-values", sandbox={"enabled": True})
    assert "has to name a Secret of its own" in upgrade(release, "--reset-values", sume={"existingSecret": ""})
    assert "sume-operator-redis-password needs" in upgrade(release, "--reset-values", rbac={"create": False})


def test_the_password_is_made_once_and_kept(release: Helm, kube: Kube, server: ControlPlane, tmp_path: Path) -> None:
    install(release)
    assert password(kube) == ""
    assert "has a new password" in fill_password(server, tmp_path)
    first = password(kube)
    assert len(first) >= 32
    assert "keeps its password" in fill_password(server, tmp_path)
    upgrade(release, "--reuse-values", image={"tag": "other"})
    assert password(kube) == first
    fill_password(server, tmp_path)
    release.run("rollback", RELEASE, "1", "--namespace", NAMESPACE)
    fill_password(server, tmp_path)
    assert password(kube) == first
    release.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    assert kube.request("GET", SECRET).status_code == 404, "it goes with the release"
    install(release)
    fill_password(server, tmp_path)
    assert password(kube) not in ("", first)


def test_applying_the_manifest_again_keeps_the_password(
    release: Helm, kube: Kube, server: ControlPlane, tmp_path: Path
) -> None:
    """As kubectl apply and GitOps tools do, on the client's side and on the server's."""
    for options in ((), ("--server-side",)):
        server.kubectl("apply", *options, "-f", str(CHART.parent / "install.yaml"))
        fill_password(server, tmp_path)
        first = password(kube)
        server.kubectl("apply", *options, "-f", str(CHART.parent / "install.yaml"))
        assert password(kube) == first != ""
        server.kubectl("delete", "-f", str(CHART.parent / "install.yaml"), "--wait=false")
        server.kubectl("patch", "namespace", NAMESPACE, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        finalize(kube)


def finalize(kube: Kube) -> None:
    """What the namespace controller would do."""
    namespace = f"/api/v1/namespaces/{NAMESPACE}"
    for path in ("secrets", "serviceaccounts", "configmaps", "services"):
        for each in kube.request("GET", f"{namespace}/{path}").json().get("items", ()):
            kube.request("DELETE", f"{namespace}/{path}/{each['metadata']['name']}")
    body = kube.request("GET", namespace).json()
    if body.get("kind") == "Namespace":
        kube.request("PUT", f"{namespace}/finalize", json={**body, "spec": {"finalizers": []}})
    eventually(lambda: kube.request("GET", namespace).status_code == 404, within_s=10, what="the namespace gone")


def test_upgrade_rollback_and_uninstall_keep_crd_and_renders(release: Helm, kube: Kube, server: ControlPlane) -> None:
    install(release)
    make_render(kube)
    upgrade(release, "--reuse-values", poller={"replicas": 3})
    assert named(deployments(server), "Deployment", "-poller")["spec"]["replicas"] == 3
    assert kube.exists("default", "kept")
    release.run("rollback", RELEASE, "1", "--namespace", NAMESPACE)
    assert named(deployments(server), "Deployment", "-poller")["spec"]["replicas"] == 1
    assert kube.exists("default", "kept")
    release.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    assert deployments(server) == []
    assert kube.exists("default", "kept")
    left = json.loads(
        server.kubectl("get", "secrets,configmaps,sa,roles,services,jobs", "-n", NAMESPACE, "-o", "json").stdout
    )
    assert [each["metadata"]["name"] for each in left["items"]] == []


def test_uninstall_takes_the_crd_if_that_is_said(release: Helm, kube: Kube) -> None:
    install(release, crds={"keep": False})
    release.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    eventually(lambda: kube.request("GET", CRD).status_code == 404, within_s=20, what="the CRD gone")


def test_another_release_takes_over_a_crd_that_was_kept(release: Helm, kube: Kube) -> None:
    install(release)
    make_render(kube)
    release.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    with pytest.raises(HelmError, match="cannot be imported into the current release"):
        install(release, name="second")
    install(release, "--take-ownership", name="second")
    assert kube.exists("default", "kept")
    owner = kube.request("GET", CRD).json()["metadata"]["annotations"]["meta.helm.sh/release-name"]
    assert owner == "second"


def test_upgrade_from_an_older_chart_with_its_values(release: Helm, kube: Kube, tmp_path: Path) -> None:
    """The values that are new are missing, as --reuse-values has it; the CRD comes along, the renders stay."""
    install(release, chart=older_chart(tmp_path), sume={"leaseSeconds": 60})
    assert LATER not in fields(kube)
    make_render(kube)
    upgrade(release, "--reuse-values")
    assert LATER in fields(kube)
    assert kube.exists("default", "kept")
    deployed = release.run("get", "manifest", RELEASE, "--namespace", NAMESPACE)
    assert 'value: "60"' in deployed
    assert "maxmemory 192mb" in deployed
    release.run("rollback", RELEASE, "1", "--namespace", NAMESPACE)
    assert LATER not in fields(kube)
    assert kube.exists("default", "kept")


def test_the_released_crd_is_the_one_of_the_repository(release: Helm, kube: Kube, server: ControlPlane) -> None:
    install(release)
    released = kube.request("GET", CRD).json()["spec"]
    release.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    server.kubectl("delete", "crd", "sumerenders.render.sume.com")
    server.apply_crd(ROOT / "crds" / "sumerenders.yaml")
    assert kube.request("GET", CRD).json()["spec"] == released
