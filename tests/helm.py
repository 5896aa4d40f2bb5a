"""Helm as tests use it: the chart rendered to objects, and releases on a control plane."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from controlplane import program
from controlplane.programs import kubernetes_version
from kube import Body

CHART: Final = Path(__file__).parents[1] / "deploy" / "chart"
RELEASE, NAMESPACE = "sume-operator", "sume-system"
HELM_S: Final = 120.0
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built

Values = Mapping[str, Any]


class HelmError(Exception):
    """Helm's own words."""


class Helm:
    """Runs helm with a home of its own in `directory`; on a cluster if there is a kubeconfig."""

    def __init__(self, directory: Path, kubeconfig: Path | None = None) -> None:
        self._directory = directory
        self._kubeconfig = kubeconfig
        self._program = program("helm")
        self._known: dict[str, list[Body]] = {}

    def run(self, *arguments: str | Path, values: Values | None = None) -> str:
        """What it prints; HelmError if it fails."""
        homes = {f"HELM_{name}_HOME": str(self._directory / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        given = {} if values is None else {"input": json.dumps(values)}
        result = subprocess.run(
            [self._program, *arguments, *(() if values is None else ("--values", "-"))],
            env=os.environ | homes | {"KUBECONFIG": str(self._kubeconfig or self._directory / "none")},
            capture_output=True,
            text=True,
            check=False,
            timeout=HELM_S,
            **given,  # type: ignore[call-overload]
        )
        if result.returncode:
            raise HelmError(f"{result.stdout}\n{result.stderr}")
        return str(result.stdout)

    def text(self, values: Values | None = None, *options: str, chart: Path = CHART, release: str = RELEASE) -> str:
        """The chart rendered, as text."""
        version = ("--kube-version", kubernetes_version())
        return self.run("template", release, chart, "--namespace", NAMESPACE, *version, *options, values=values or {})

    def objects(self, values: Values | None = None, *options: str, chart: Path = CHART) -> list[Body]:
        """The chart rendered, as objects; the same ones for the same question, so nobody may change them."""
        question = json.dumps([values, options, str(chart)])
        if question not in self._known:
            self._known[question] = parsed(self.text(values, *options, chart=chart))
        return self._known[question]


def parsed(text: str) -> list[Body]:
    """The objects of a manifest."""
    return [body for body in yaml.load_all(text, Loader=_LOADER) if body]


def named(objects: Iterable[Body], kind: str, name: str = "") -> Body:
    """The one object of that kind (whose name ends so)."""
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(name)]
    assert len(found) == 1, [each["metadata"]["name"] for each in objects if each["kind"] == kind]
    return found[0]


def kinds(objects: Iterable[Body]) -> set[str]:
    """Which kinds there are."""
    return {each["kind"] for each in objects}


def pods(objects: Iterable[Body]) -> Iterator[tuple[str, Body]]:
    """(component, pod) of everything that runs."""
    for each in objects:
        if each["kind"] == "Pod":
            pod = each
        elif "template" in (each.get("spec") or {}) and each["kind"] != "CustomResourceDefinition":
            pod = each["spec"]["template"]
        else:
            continue
        yield pod["metadata"]["labels"]["app.kubernetes.io/component"], pod


def environment(pod: Body) -> dict[str, str]:
    """The variables of its container."""
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0].get("env", ())}
