"""What deploy/pipelines says, on a real API server: the conditions of an Argo Workflow are label selectors."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controlplane import ControlPlane

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


def _template() -> Any:
    (template,) = yaml.safe_load((PIPELINES / "argo-workflow.yaml").read_text(encoding="utf-8"))["spec"]["templates"]
    return template
