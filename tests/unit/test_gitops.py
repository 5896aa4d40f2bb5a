"""What deploy/gitops says of a render to Argo CD and Flux: their own languages, run on statuses of every kind."""

from pathlib import Path
from typing import Any, Final

import celpy
import pytest
import yaml
from celpy.adapter import json_to_cel
from lupa.lua51 import LuaRuntime

GITOPS: Final = Path(__file__).parents[2] / "deploy" / "gitops"
ENDED: Final = {"terminal": True}

# Description, spec, status -> health in Argo CD, state in Flux.
ROWS: Final = [
    ("just applied", {}, None, "Progressing", "inProgress"),
    ("looked at once", {}, {"terminal": False, "state": "Pending"}, "Progressing", "inProgress"),
    ("at work", {}, {"terminal": False, "state": "Processing", "message": "m"}, "Progressing", "inProgress"),
    ("a word that nobody knows", {}, {"terminal": False, "state": "Unknown"}, "Progressing", "inProgress"),
    ("suspended", {"suspend": True}, {"terminal": False, "state": "Queued"}, "Suspended", "inProgress"),
    ("suspended before the first look", {"suspend": True}, None, "Suspended", "inProgress"),
    ("suspended and canceled", {"suspend": True, "cancel": True}, {"terminal": False}, "Progressing", "inProgress"),
    ("completed", {}, ENDED | {"state": "Completed"}, "Healthy", "current"),
    ("completed, suspended afterwards", {"suspend": True}, ENDED | {"state": "Completed"}, "Healthy", "current"),
    ("failed", {}, ENDED | {"state": "Failed", "message": "m"}, "Degraded", "failed"),
    ("canceled", {"cancel": True}, ENDED | {"state": "Canceled"}, "Degraded", "failed"),
    ("nobody knows how it ended", {}, ENDED | {"state": "Unknown"}, "Degraded", "failed"),
]
rows = pytest.mark.parametrize(
    ("spec", "status", "argo", "flux"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)


def _body(spec: Any, status: Any) -> dict[str, Any]:
    body = {"apiVersion": "render.sume.com/v1alpha1", "metadata": {"name": "x", "generation": 1}, "spec": spec}
    return body if status is None else body | {"status": status}


def _argo_cd(key: str) -> str:
    file = yaml.safe_load((GITOPS / "argocd-cm.yaml").read_text(encoding="utf-8"))
    return str(file["data"][f"resource.customizations.{key}.render.sume.com_SumeRender"])


def _run(script: str, body: dict[str, Any]) -> Any:
    lua = LuaRuntime()
    lua.globals().obj = lua.table_from(body, recursive=True)
    return lua.execute(script)


@rows
def test_health_in_argo_cd(spec: Any, status: Any, argo: str, flux: str) -> None:
    health = _run(_argo_cd("health"), _body(spec, status))
    assert health.status == argo
    assert isinstance(health.message, str)
    if status and "message" in status:
        assert health.message == status["message"]


@pytest.mark.parametrize(
    ("spec", "status", "enabled"),
    [
        ({}, None, {"refresh", "suspend", "cancel"}),
        ({"suspend": True}, {"terminal": False}, {"refresh", "resume", "cancel"}),
        ({"cancel": True}, {"terminal": False}, {"refresh", "suspend"}),
        ({}, {"terminal": True}, {"refresh"}),
    ],
    ids=["waiting", "suspended", "canceled", "ended"],
)
def test_actions_on_offer_in_argo_cd(spec: Any, status: Any, enabled: set[str]) -> None:
    actions = yaml.safe_load(_argo_cd("actions"))
    offered = _run(actions["discovery.lua"], _body(spec, status))
    assert {name for name, action in offered.items() if not action.disabled} == enabled
    assert set(offered) == {each["name"] for each in actions["definitions"]}


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [("suspend", "suspend", True), ("resume", "suspend", False), ("cancel", "cancel", True)],
)
def test_an_action_in_argo_cd_changes_one_field(action: str, field: str, value: bool) -> None:
    assert _acted(action, _body({}, None)).spec[field] is value


@pytest.mark.parametrize("annotations", [{}, {"annotations": {"mine": "kept"}}], ids=str)
def test_refresh_in_argo_cd_is_an_annotation(annotations: Any) -> None:
    body = _body({}, None)
    after = _acted("refresh", body | {"metadata": body["metadata"] | annotations})
    assert after.metadata.annotations["render.sume.com/poll-requested-at"].endswith("Z")
    assert after.metadata.annotations["mine"] == ((annotations and "kept") or None)


def _acted(name: str, body: dict[str, Any]) -> Any:
    actions = yaml.safe_load(_argo_cd("actions"))
    (script,) = [each["action.lua"] for each in actions["definitions"] if each["name"] == name]
    return _run(script, body)


@rows
def test_state_in_flux(spec: Any, status: Any, argo: str, flux: str) -> None:
    """Exactly one holds. (Where there is no status at all, Flux waits, as if it said inProgress.)"""
    file = yaml.safe_load((GITOPS / "flux-kustomization.yaml").read_text(encoding="utf-8"))
    (expressions,) = file["spec"]["healthCheckExprs"]
    assert (expressions["apiVersion"], expressions["kind"]) == ("render.sume.com/v1alpha1", "SumeRender")
    environment = celpy.Environment()
    fields = {name: json_to_cel(value) for name, value in _body(spec, status).items()}
    said = [
        name
        for name in ("inProgress", "failed", "current")
        if environment.program(environment.compile(expressions[name])).evaluate(fields)
    ]
    assert said == [flux]
