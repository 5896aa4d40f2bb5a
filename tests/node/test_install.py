"""An install with nothing but the image, the chart and the documentation, and renders that outlive what happens to it.

In the order of the file: the tests of `release` share one, as people do.
"""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from controlplane import Node
from controlplane.node_config import NAME as NODE_NAME
from kube import Body, condition, eventually, manifest, status
from node_release import NAMESPACE, RELEASE, REPOSITORY, Release, image_of, is_running, values_for
from node_sume import Sume

ROOT = Path(__file__).parents[2]
SAMPLES, README = ROOT / "deploy" / "samples", ROOT / "README.md"
PREVIOUS, NOW = "v-prev", "v-now"
CRD = "customresourcedefinition/sumerenders.render.sume.com"
EXPECT, MIDWAY = "demo.render.sume.com/expect", "demo.render.sume.com/midway"
# What README.md tells whoever has uninstalled the operator and wants to delete a render that still runs.
FREE = '{"metadata":{"finalizers":null}}'


def assert_one_job_each(sume: Sume, renders: list[Body], count: int, before: int) -> None:
    """None lost, none asked for twice."""
    assert len(renders) == count
    assert {condition(body, "Succeeded")[0] for body in renders} == {"True"}
    jobs = sume.jobs_of(renders)
    assert set(jobs.values()) == {1}
    assert jobs.keys() <= sume.known().keys()
    assert sume.submitted() - before == count


def test_from_nothing_to_ended_samples(node: Node) -> None:
    """helm install, helm test, the samples, and helm uninstall, which leaves the CRD and every object."""
    trial = Release(node)
    sandbox = {"enabled": True, "args": ["--queue-s", "1", "--process-s", "3"]}
    values = values_for(NOW, sandbox=sandbox)
    del values["sume"]["url"]
    trial.install(values)
    assert "Phase:          Succeeded" in trial.helm("test", RELEASE, "--timeout=60s")

    node.kubectl("apply", "--recursive", "-f", str(SAMPLES / "namespaces.yaml"), "-f", str(SAMPLES))
    # A cancel that comes too late is what one sample is about: its job must run by then.
    node.kubectl("wait", "--for=jsonpath={.status.state}=Processing", "sumerender/festival-trailer", "-nstudio-a")
    for namespace in ("studio-a", "studio-b"):
        for body in trial.renders(namespace):
            edit = body["metadata"]["annotations"].get(MIDWAY)
            if edit:
                patch = ("patch", "sumerender", body["metadata"]["name"], f"--namespace={namespace}")
                node.kubectl(*patch, "--type=merge", f"--patch={edit}")
    ended = [body for namespace in ("studio-a", "studio-b") for body in trial.eventually_ended(namespace)]
    for body in ended:
        state = f"{status(body)['state']}/{condition(body, 'Finished')[1]}"
        assert state == body["metadata"]["annotations"][EXPECT], body["metadata"]["name"]

    trial.uninstall()
    assert not node.kubectl("get", CRD, check=False).returncode
    assert len(trial.renders("studio-a") + trial.renders("studio-b")) == len(ended)


def test_the_pods_are_hardened(node: Node, release: Release) -> None:
    """By number, with nothing to write to, and without pip or a compiler; the kubectl plugin is there."""
    pod = release.pods("poller")[0]["metadata"]["name"]
    found = "for each in pip gcc cc kubectl-sumerender; do command -v $each; done"
    script = f"id -u; touch /x 2>&1; python -m pip 2>&1; {found}; sume-operator --version"
    said = node.kubectl("exec", f"--namespace={NAMESPACE}", pod, "--", "sh", "-c", script).stdout
    assert said.startswith("65532\n")
    assert "Read-only file system" in said
    assert "No module named pip" in said
    assert said.splitlines()[3:] == ["/opt/sume-operator/bin/kubectl-sumerender", "sume-operator, version 0.0.9"]


def test_killed_pods_lose_nothing(node: Node, release: Release, sume: Sume) -> None:
    """A poller's process gets SIGKILL, then its pod is deleted by force, then the controller's."""
    before = sume.submitted()
    release.make_renders("killed", 20)
    release.eventually_running("killed", 5)
    poller = release.pods("poller")[0]
    node.kill_container(poller["status"]["containerStatuses"][0]["containerID"])

    def restarted() -> bool:
        states = [each["status"]["containerStatuses"][0] for each in release.pods("poller")]
        return any(state["restartCount"] and state["ready"] for state in states)

    eventually(restarted, within_s=60, every_s=0.5, what="the killed poller restarted")
    release.make_renders("killed-again", 10)
    release.eventually_running("killed-again", 3)
    for component in ("poller", "controller"):
        name = release.pods(component)[0]["metadata"]["name"]
        node.kubectl("delete", "pod", name, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    renders = release.eventually_ended("killed") + release.eventually_ended("killed-again")
    assert_one_job_each(sume, renders, 30, before)


def test_an_upgrade_under_load_and_its_rollback(node: Node, release: Release, sume: Sume) -> None:
    """A hundred renders are under way; pollers of both versions run at once, and more and fewer of them."""
    before = sume.submitted()
    release.make_renders("upgraded", 100)
    release.eventually_running("upgraded", 10)
    seen: set[frozenset[str]] = set()
    with ThreadPoolExecutor(1) as helm:
        for step in (
            lambda: release.upgrade(values_for(NOW, pollers=3)),
            lambda: release.helm("rollback", RELEASE, "1", "--wait", "--timeout=240s"),
        ):
            done = helm.submit(step)
            while not done.done():
                seen.add(frozenset(image_of(pod) for pod in release.pods("poller") if is_running(pod)))
            done.result()
    assert any(len(images) == 2 for images in seen), "pods of both versions never ran at once"
    assert [image_of(pod).rpartition(":")[2] for pod in release.pods("controller")] == [PREVIOUS]
    assert_one_job_each(sume, release.eventually_ended("upgraded"), 100, before)


def test_every_pod_restarted_at_once(node: Node, release: Release, sume: Sume) -> None:
    """As when the node boots: Redis too, and with it every alarm."""
    before = sume.submitted()
    release.make_renders("rebooted", 30)
    release.eventually_running("rebooted", 10)
    old = {pod["metadata"]["uid"] for pod in release.pods()}
    node.kubectl("delete", "pods", "--all", f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    eventually(release.ready, within_s=90, every_s=0.5, what="the release is ready again")
    assert not old & {pod["metadata"]["uid"] for pod in release.pods()}
    assert_one_job_each(sume, release.eventually_ended("rebooted"), 30, before)


def test_what_renders_made_is_downloaded_in_the_cluster(node: Node, release: Release, sume: Sume) -> None:
    """The sample Job, with nothing changed but the image, and the certificate of this Sume as one to be trusted."""
    release.make_renders("filmed", 5)
    node.kubectl("label", "sumerenders", "--all", "--namespace=filmed", "render.sume.com/batch=july")
    renders = release.eventually_ended("filmed")
    films = node.directory / "films"
    films.mkdir()
    *rest, job = yaml.safe_load_all((SAMPLES / "download-job.yaml").read_text(encoding="utf-8"))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container |= {
        "image": f"localhost/{REPOSITORY}:{NOW}",
        "env": [{"name": "REQUESTS_CA_BUNDLE", "value": "/ca/tls.crt"}],
    }
    container["volumeMounts"].append({"name": "ca", "mountPath": "/ca"})
    pod["volumes"].append({"name": "ca", "configMap": {"name": "ca"}})
    node.kubectl("create", "configmap", "ca", "--namespace=filmed", f"--from-literal=tls.crt={sume.certificate}")
    node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_volume(films)))

    def run_job() -> str:
        node.kubectl("apply", "--namespace=filmed", "-f", "-", stdin=yaml.safe_dump_all([*rest, job]))
        node.kubectl("wait", "--for=condition=Complete", "job/download-renders", "--namespace=filmed", "--timeout=50s")
        text = node.kubectl("logs", "--namespace=filmed", "job/download-renders").stdout
        node.kubectl("delete", "job/download-renders", "--namespace=filmed", "--timeout=50s")
        return str(text).splitlines()[-1]

    made = sum(len(status(body)["outputs"]) for body in renders)
    assert made >= len(renders)
    assert run_job().startswith(f"{made} downloaded (")
    index = json.loads((films / "index.json").read_text(encoding="utf-8"))["files"]
    assert {each["job"] for each in index} == sume.jobs_of(renders).keys()
    assert {each["file"]: each["sha256"] for each in index} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in films.iterdir() if path.name[0] == "t"
    }
    assert run_job() == f"0 downloaded (0 B), {made} were there already, 0 missing"


def test_a_namespace_with_running_renders_can_be_deleted(node: Node, release: Release) -> None:
    """Their jobs are canceled, and nothing holds the namespace."""
    release.make_renders("doomed", 20)
    release.eventually_running("doomed", 10)
    node.kubectl("delete", "namespace", "doomed", "--timeout=80s", timeout_s=90)


def test_uninstalled_and_installed_again(node: Node, release: Release, sume: Sume) -> None:
    """Running renders stay; one can be freed by hand; the next install follows the others to their end."""
    before = sume.submitted()
    release.make_renders("survivors", 10)
    slow = manifest("slow", _request("sume/avatar-video/v1.0-slow"), namespace="survivors")
    node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(slow))
    release.eventually_running("survivors", 11)
    release.uninstall()
    assert not node.kubectl("get", CRD, check=False).returncode
    left = release.renders("survivors")
    assert len(left) == 11

    node.kubectl("delete", "sumerender", "slow", "--namespace=survivors", "--wait=false")
    kept = node.kubectl("get", "sumerender", "slow", "--namespace=survivors", "--output=yaml").stdout
    assert yaml.safe_load(kept)["metadata"]["finalizers"] == ["render.sume.com/cancel"]
    assert f"kubectl patch sumerender NAME --type merge -p '{FREE}'" in README.read_text(encoding="utf-8")
    node.kubectl("patch", "sumerender", "slow", "--namespace=survivors", "--type=merge", f"--patch={FREE}")
    node.kubectl("wait", "--for=delete", "sumerender/slow", "--namespace=survivors", "--timeout=20s")

    release.install(values_for(NOW))
    renders = release.eventually_ended("survivors")
    assert {condition(body, "Succeeded")[0] for body in renders} == {"True"}
    assert sume.submitted() - before == 11


def _volume(folder: Path) -> Body:
    """Of the node's own disk, for the sample's claim: nobody makes volumes on demand here."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "films"},
        "spec": {
            "capacity": {"storage": "50Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "filmed", "name": "renders"},
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def _request(model: str) -> Body:
    return {"request": {"model": model, "arguments": {"prompt": "A slow one"}}}
