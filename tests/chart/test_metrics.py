"""What the monitoring reads: every metric that an alert or a panel names is one that the operator has."""

import json
import re
from typing import Any, Final

import yaml

from chart_values import MONITORS
from helm import CHART, NAMESPACE, Helm, named, pods
from kube import Body
from sume_operator.metrics import ControllerMetrics, PollerMetrics

KNOWN: Final = {
    f"{name}{'_bucket' if metric.type == 'histogram' else ''}"
    for metrics in (ControllerMetrics(), PollerMetrics())
    for metric in metrics.registry.collect()
    for name in [metric.name + ("_total" if metric.type == "counter" else "")]
}
LABELS: Final[dict[str, set[str]]] = {
    name: set(getattr(collector, "_labelnames", ()))
    for metrics in (ControllerMetrics(), PollerMetrics())
    for name, collector in metrics.registry._names_to_collectors.items()
}
# What Prometheus itself adds.
OUTSIDE: Final = {"job", "le", "namespace"}


def expressions(rule: Body, dashboard: Any) -> list[str]:
    """All that is asked of Prometheus."""
    alerts = [each["expr"] for group in rule["spec"]["groups"] for each in group["rules"]]
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert alerts
    assert panels
    return [*alerts, *panels]


def monitored(helm: Helm, **metrics: Any) -> list[Body]:
    return helm.objects({"metrics": {**MONITORS, **metrics}})


def test_every_metric_named_exists_and_has_the_labels_it_is_asked_by(helm: Helm) -> None:
    objects = monitored(helm)
    dashboard = json.loads(named(objects, "ConfigMap", "-dashboard")["data"]["sumerender-operator.json"])
    seen = set()
    for expression in expressions(named(objects, "PrometheusRule"), dashboard):
        names = set(re.findall(r"sumerender_\w+", expression))
        assert names
        assert names <= KNOWN, names - KNOWN
        seen |= names
        for name, selector in re.findall(r"(sumerender_\w+)\{([^}]*)\}", expression):
            asked = set(re.findall(r"(\w+)=", selector)) | {
                label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
            }
            assert asked <= LABELS[name] | OUTSIDE, expression
    assert KNOWN - seen == set(), "on no panel and in no alert"


def test_alerts_can_be_left_out_labelled_and_added(helm: Helm) -> None:
    more = {"alert": "Mine", "expr": "vector(1)"}
    own = {"enabled": True, "disabled": ["SumeRenderQueueLag"], "alertLabels": {"team": "x"}, "extraRules": [more]}
    (group,) = named(monitored(helm, prometheusRule=own), "PrometheusRule")["spec"]["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    shipped = [rule["alert"] for rule in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))]
    assert names == [name for name in shipped if name != "SumeRenderQueueLag"] + ["Mine"]
    assert all(rule["labels"]["team"] == "x" and rule["labels"]["severity"] for rule in group["rules"][:-1])
    assert "RELEASE_NAMESPACE" not in str(group)
    assert f'namespace="{NAMESPACE}"' in str(group)


def test_monitors_choose_the_services_and_pods_that_have_metrics(helm: Helm) -> None:
    labels = {"release": "prometheus"}
    own = {"enabled": True, "labels": labels, "interval": "30s", "namespace": "monitoring"}
    objects = monitored(helm, serviceMonitor=own, podMonitor=own)
    service_monitor, pod_monitor = named(objects, "ServiceMonitor"), named(objects, "PodMonitor")
    for each, endpoints in ((service_monitor, "endpoints"), (pod_monitor, "podMetricsEndpoints")):
        assert each["metadata"]["namespace"] == "monitoring"
        assert labels.items() <= each["metadata"]["labels"].items()
        assert each["spec"]["namespaceSelector"] == {"matchNames": [NAMESPACE]}
        (endpoint,) = each["spec"][endpoints]
        assert (endpoint["port"], endpoint["path"], endpoint["interval"]) == ("http", "/metrics", "30s")
    services = [each for each in objects if each["kind"] == "Service" and chosen(service_monitor, each["metadata"])]
    assert {each["spec"]["ports"][0]["name"] for each in services} == {"http"}
    for _name, pod in pods(objects):
        measured = pod["metadata"]["labels"]["app.kubernetes.io/component"] in ("controller", "poller")
        assert chosen(pod_monitor, pod["metadata"]) is measured
        matching = [each for each in services if each["spec"]["selector"].items() <= pod["metadata"]["labels"].items()]
        assert len(matching) == measured


def chosen(monitor: Body, metadata: Body) -> bool:
    """Whether the monitor's selector matches these labels."""
    selector, labels = monitor["spec"]["selector"], metadata["labels"]
    return selector["matchLabels"].items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in selector["matchExpressions"]
    )
