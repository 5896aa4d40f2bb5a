"""Values: what is taken, what is refused, what is documented, and that one missing does no harm."""

import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_values import COMBINATIONS, MONITORS, POD_OPTIONS
from helm import CHART, Helm, HelmError, named, pods
from sume_operator import __version__
from sume_operator.settings import Settings

ROOT = CHART.parents[1]
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
EVERYTHING_ON: dict[str, Any] = {
    "sandbox": {"enabled": True},
    "poller": {"autoscaling": {"enabled": True}},
    "redis": {"internal": {"persistence": {"enabled": True}}},
    "networkPolicy": {"enabled": True},
    "metrics": MONITORS,
}
# Where nothing says something of its own: no key; what the program does by itself.
MEANS_NOTHING = {
    ("sume", "existingSecret"),
    ("sume", "submissionsEnabled"),
    ("poller", "autoscaling", "targetCPUUtilizationPercentage"),
}
WHOLE = {"resources", "podSecurityContext", "securityContext", "labels"}  # taken or left as a whole


def paths(values: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key, the maps too."""
    for name, value in values.items():
        yield (*above, name)
        if isinstance(value, dict) and name not in WHOLE:
            yield from paths(value, (*above, name))


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def at(values: Any, path: tuple[str, ...]) -> Any:
    """What `values` say there; None if nothing."""
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def merged(values: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(values)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both else value
    return result


def test_lint(helm: Helm) -> None:
    helm.run("lint", "--strict", "--kube-version", "1.34.0", CHART)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_lint_and_schema_take_every_combination(helm: Helm, name: str) -> None:
    helm.run("lint", "--strict", "--kube-version", "1.34.0", CHART, values=COMBINATIONS[name])


MAPS = [path for path in paths(DEFAULTS) if isinstance(at(DEFAULTS, path), dict)]
# Maps whose keys are Kubernetes' business, or the user's own.
FREE = {
    "global", "labels", "annotations", "alertLabels", "commonLabels", "commonAnnotations", "behavior", "affinity",
    "podAnnotations", "podLabels", "nodeSelector", "podSecurityContext", "securityContext", "dnsConfig",
}  # fmt: skip


@pytest.mark.parametrize("path", [(), *(path for path in MAPS if not FREE & set(path))], ids=".".join)
def test_a_misspelt_key_is_refused_by_name(helm: Helm, path: tuple[str, ...]) -> None:
    with pytest.raises(HelmError, match="'misspelt' not allowed"):
        helm.text(nested((*path, "misspelt"), 1))


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"sume": {"authMode": "basic"}}, "authMode"),
        ({"sume": {"url": "api.sume.com"}}, "url"),
        ({"sume": {"maxActiveJobs": "many"}}, "maxActiveJobs"),
        ({"sume": {"pollSeconds": -1}}, "pollSeconds"),
        ({"sume": {"defaultKeyNamespaces": "team-a"}}, "defaultKeyNamespaces"),
        ({"watch": {"namespaces": ["*"]}}, "namespaces"),
        ({"redis": {"mode": "cluster"}}, "mode"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"poller": {"replicas": "two"}}, "replicas"),
        ({"controller": {"tolerations": {"key": "a"}}}, "tolerations"),
        ({"tests": {"extraEnv": [{"name": "A", "valu": "b"}]}}, "valu"),
        ({"redis": {"mode": "external"}}, "redis.external.url"),
        ({"redis": {"mode": "external", "external": {"url": "rediss://:secret@r:6379"}}}, "existingSecret"),
        ({"redis": {"mode": "external", "external": {"url": "redis://r", "caSecret": "ca"}}}, "rediss://"),
        ({"watch": {"namespaces": ["a"]}, "sume": {"credentialsFromNamespaces": ["b"]}}, "watch.namespaces"),
        ({"serviceAccount": {"poller": {"create": False}}}, "serviceAccount.poller.name"),
        ({"metrics": {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}}, "metrics.service"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_value_is_refused_and_the_message_names_it(helm: Helm, values: dict[str, Any], word: str) -> None:
    with pytest.raises(HelmError, match=re.escape(word)) as refusal:
        helm.text(values)
    assert "secret@" not in str(refusal.value)


def test_a_missing_value_counts_as_its_default(helm: Helm) -> None:
    """As an upgrade with --reuse-values from a chart that did not have it yet."""
    default = helm.text(EVERYTHING_ON)
    for path in paths(DEFAULTS):
        rendered = helm.text(merged(EVERYTHING_ON, nested(path, None)))
        value = functools.reduce(lambda values, name: values[name], path, DEFAULTS)
        if path not in MEANS_NOTHING and not isinstance(value, dict) and not at(EVERYTHING_ON, path):
            assert rendered == default, path


def test_every_setting_of_the_program_has_a_value(helm: Helm) -> None:
    """And reaches it under its name."""
    elsewhere = {
        "SUME_API_KEY",  # a Secret, as a file
        "SUME_API_KEY_FILE",
        "REDIS_URL",
        "REDIS_PASSWORD_FILE",
        "SUME_WATCH_NAMESPACES",
        "SUME_CONCURRENCY",
        "SUME_HTTP_PORT",
    }
    fields = {name.upper() for name in Settings.model_fields} - elsewhere
    special = {"url": "SUME_API_URL"}
    values = {
        key: special.get(key, "SUME_" + re.sub("([A-Z])", r"_\1", key).upper())
        for key in DEFAULTS["sume"]
        if key not in ("existingSecret", "existingSecretKey", "credentialsFromNamespaces")
    }
    assert set(values.values()) == fields


def test_default_values_in_comments_are_those_of_the_program() -> None:
    comments = re.findall(r"# -- (.*)\n  (\w+): \"\"", (CHART / "values.yaml").read_text(encoding="utf-8"))
    said = {key: match[1] for text, key in comments if (match := re.search(r"empty: (.+)\.$", text))}
    for key in DEFAULTS["sume"]:
        if key in said:
            field = "sume_api_url" if key == "url" else "sume_" + re.sub("([A-Z])", r"_\1", key).lower()
            default = Settings.model_fields[field].default
            assert str(default).removesuffix(".0") == said[key].rstrip("."), key


def test_readme_lists_every_value_with_its_default() -> None:
    table = (CHART / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(.+?)` \| ", table, re.M))
    told = {tuple(key.split(".")): json.loads(default) for key, default in rows.items()}

    def missing(values: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, value in values.items():
            path = (*above, name)
            if path in told:
                assert told.pop(path) == value, path
            elif isinstance(value, dict) and value:
                yield from missing(value, path)
            else:
                yield path

    assert list(missing(DEFAULTS, ())) == []
    assert told == {}, "values that are not in values.yaml"


def test_versions_agree() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__
    assert chart["version"] == __version__


def test_rendered_files_are_up_to_date() -> None:
    """The copy of the CRD, the table in README.md, install.yaml."""
    result = subprocess.run(
        [sys.executable, CHART / "render.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_the_check_of_rendered_files_can_fail(tmp_path: Path) -> None:
    """On a copy with another CRD."""
    for part in ("deploy/chart", "deploy/controlplane", "crds"):
        subprocess.run(["cp", "-r", "--parents", part, tmp_path], cwd=ROOT, check=True)
    crd = tmp_path / "crds" / "sumerenders.yaml"
    crd.write_text(crd.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    command: list[str | Path] = [sys.executable, tmp_path / "deploy" / "chart" / "render.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "deploy/chart/files/crds/sumerenders.yaml is out of date" in result.stdout
    assert "deploy/install.yaml is out of date" in result.stdout


@pytest.fixture
def parent(tmp_path: Path, helm: Helm) -> Path:
    """A chart that has ours as a dependency, under another name, on a condition."""
    chart = tmp_path / "parent"
    (chart / "charts").mkdir(parents=True)
    helm.run("package", CHART, "--destination", str(chart / "charts"))
    dependency = {"name": "sume-operator", "version": __version__, "alias": "renders", "condition": "renders.enabled"}
    text = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")
    return chart


def test_as_a_subchart_with_alias_and_globals(helm: Helm, parent: Path) -> None:
    """Packaged: the CRD and the dashboard come along, and the schema takes what Helm passes down."""
    shared = {"imageRegistry": "mirror.example.com", "imagePullSecrets": [{"name": "pull"}], "storageClass": "any"}
    values = {"global": shared, "renders": {"enabled": True, "metrics": {"dashboard": {"enabled": True}}}}
    objects = helm.objects(values, chart=parent)
    named(objects, "CustomResourceDefinition", "sumerenders.render.sume.com")
    assert "panels" in named(objects, "ConfigMap", "-dashboard")["data"]["sumerender-operator.json"]
    controller = named(objects, "Deployment", "-renders-controller")["spec"]["template"]["spec"]
    assert controller["imagePullSecrets"] == [{"name": "pull"}]
    assert controller["containers"][0]["image"].startswith("mirror.example.com/sume-operator:")
    assert not helm.objects({"renders": {"enabled": False}}, chart=parent)
    with pytest.raises(HelmError, match="'controler' not allowed"):
        helm.objects({"renders": {"controler": {}}}, chart=parent)


def test_every_component_takes_every_pod_option(helm: Helm) -> None:
    """On its own, beside the common one: maps merged, lists appended, all else replaced."""
    own: dict[str, Any] = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "own"}],
        "priorityClassName": "own",
        **{
            key: POD_OPTIONS[key]
            for key in POD_OPTIONS
            if key not in ("nodeSelector", "tolerations", "priorityClassName")
        },
    }
    common = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "common"}], "priorityClassName": "common"}
    values: dict[str, Any] = {
        **common,
        "controller": own,
        "poller": own,
        "sandbox": {**own, "enabled": True},
        "tests": own,
        "redis": {"internal": {**own, "passwordJob": own}},
    }
    seen = set()
    for component, pod in pods(helm.objects(values)):
        seen.add(component)
        spec = pod["spec"]
        assert spec["nodeSelector"] == {"disk": "ssd", "zone": "a"}
        assert spec["tolerations"] == [{"key": "common"}, {"key": "own"}]
        assert spec["priorityClassName"] == "own"
        assert spec["hostAliases"] == POD_OPTIONS["hostAliases"]
    assert seen == {"controller", "poller", "sandbox", "redis", "redis-password", "test"}
