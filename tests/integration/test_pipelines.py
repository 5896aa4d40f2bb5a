"""What deploy/pipelines says, on a real API server: its script is run, its conditions are put to what reads them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controlplane import ControlPlane
from controlplane.cluster import as_user
from stack import Stack

PIPELINES: Final = Path(__file__).parents[2] / "deploy" / "pipelines"


@pytest.mark.parametrize(
    ("terminal", "state", "met"),
    [
        (False, "Processing", None),
        (False, "Unknown", None),
        (True, "Completed", "successCondition"),
        (True, "Failed", "failureCondition"),
        (True, "Canceled", "failureCondition"),
        (True, "Unknown", "failureCondition"),
    ],
)
def test_an_argo_workflow_ends_with_the_render(cluster: ControlPlane, terminal: bool, state: str, met: str) -> None:
    """Argo reads the fields that a condition names as if they were labels of that name."""
    name = f"argo-{terminal}-{state}".lower()
    labels = (f"status.terminal={str(terminal).lower()}", f"status.state={state}")
    cluster.kubectl("create", "configmap", name)
    cluster.kubectl("label", "configmap", name, *labels)
    resource = _template()["resource"]
    for condition in ("successCondition", "failureCondition"):
        found = cluster.kubectl("get", "configmap", "-l", resource[condition], "-o", "name").stdout.split()
        assert (f"configmap/{name}" in found) == (condition == met)


def test_what_an_argo_workflow_makes_is_a_render(cluster: ControlPlane) -> None:
    template = _template()
    text = str(template["resource"]["manifest"])
    values = {each["name"]: each.get("value", 'a "dog"') for each in template["inputs"]["parameters"]}
    for name, value in values.items():
        text = text.replace(f"{{{{inputs.parameters.{name}}}}}", value)
    text = text.replace("{{=toJson(inputs.parameters.prompt)}}", '"a \\"dog\\""')
    cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


def test_the_rights_of_a_pipeline(cluster: ControlPlane) -> None:
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(PIPELINES / "rights.yaml"))


@pytest.mark.parametrize(("model", "code"), [("sume/clip-fast", 0), ("sume/fail", 1)])
def test_a_tekton_step_ends_as_its_render_did(stack: Stack, tmp_path: Path, model: str, code: int) -> None:
    """Run twice, as after a lost pod: it is the same job."""
    stack.start_sandbox("--queue-s", "0", "--process-s", "1")
    stack.start("controller", ready=False)
    stack.start("poller")
    task = yaml.safe_load((PIPELINES / "tekton.yaml").read_text(encoding="utf-8"))
    (step,) = task["spec"]["steps"]
    control_plane, namespace = stack.control_plane, stack.namespaces[0]
    kubeconfig = as_user(control_plane.kubeconfig, tmp_path / "kubeconfig", control_plane.token, namespace)
    message = tmp_path / "message"
    values = {
        "NAME": "trailer",
        "MODEL": model,
        "PROMPT": 'a "dog"\n$(date)',
        "TIMEOUT": "60s",
        "MESSAGE": str(message),
    }
    assert {each["name"] for each in step["env"]} == set(values)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = dict(os.environ) | values | {"KUBECONFIG": str(kubeconfig), "PATH": path}
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-c", step["script"]], env=env, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == code, done.stderr
        assert f"{1 - code} succeeded" in message.read_text(encoding="utf-8")
    (render,) = stack.kube.all_in([namespace])
    assert render["spec"]["request"]["arguments"] == {"prompt": values["PROMPT"]}
    assert stack.sandbox.stats()["jobs"]["submitted"] == 1


def _template() -> Any:
    (template,) = yaml.safe_load((PIPELINES / "argo-workflow.yaml").read_text(encoding="utf-8"))["spec"]["templates"]
    return template
