"""Rights, as the manifest gives them: each account has what it calls, where it calls it, and no more."""

from typing import Any

import pytest

from chart_values import COMBINATIONS, WATCHED
from helm import NAMESPACE, Helm, kinds, named
from kube import Body

Rules = set[tuple[str, str, str, str]]  # group, resource, name, verb
RENDERS, STATUS = ("render.sume.com", "sumerenders", ""), ("render.sume.com", "sumerenders/status", "")
EVENT = ("events.k8s.io", "events", "", "create")
WATCH: Rules = {(*RENDERS, verb) for verb in ("get", "list", "watch", "patch")} | {EVENT}
TURN: Rules = {(*RENDERS, verb) for verb in ("get", "patch", "delete")} | {(*STATUS, "patch"), EVENT}
LEASE: Rules = {
    ("coordination.k8s.io", "leases", "", "create"),
    ("coordination.k8s.io", "leases", "sume-operator-controller", "patch"),
}
KEYS: Rules = {("", "secrets", "", "get")}
PASSWORD: Rules = {("", "secrets", "sume-operator-redis", verb) for verb in ("get", "patch")}
EVERYWHERE = ""


def rules(role: Body) -> Rules:
    return {
        (group, resource, name, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def granted(objects: list[Body], account: str) -> dict[str, Rules]:
    """Namespace -> what the account may do there."""
    found: dict[str, Rules] = {}
    for each in objects:
        if not each["kind"].endswith("RoleBinding"):
            continue
        if {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE} not in each["subjects"]:
            continue
        namespace = each["metadata"].get("namespace", EVERYWHERE)
        (role,) = (
            role
            for role in objects
            if (role["kind"], role["metadata"]["name"]) == (each["roleRef"]["kind"], each["roleRef"]["name"])
            and role["metadata"].get("namespace", EVERYWHERE) == namespace
        )
        found.setdefault(namespace, set()).update(rules(role))
    return found


@pytest.mark.parametrize(
    ("name", "controller", "poller"),
    [
        ("defaults", {EVERYWHERE: WATCH}, {EVERYWHERE: TURN | KEYS}),
        ("namespaced", {"team-a": WATCH, "team-b": WATCH}, {"team-a": TURN | KEYS, "team-b": TURN | KEYS}),
        ("no keys from renders", {EVERYWHERE: WATCH}, {EVERYWHERE: TURN}),
        ("keys from one namespace", {EVERYWHERE: WATCH}, {EVERYWHERE: TURN, "team-a": KEYS}),
        ("namespaced, keys from one", {"team-a": WATCH, "team-b": WATCH}, {"team-a": TURN | KEYS, "team-b": TURN}),
    ],
)
def test_rights_of_both_roles(helm: Helm, name: str, controller: dict[str, Rules], poller: dict[str, Rules]) -> None:
    objects = helm.objects(COMBINATIONS[name])
    assert granted(objects, "sume-operator-controller") == {NAMESPACE: LEASE, **controller}
    assert granted(objects, "sume-operator-poller") == poller
    assert granted(objects, "sume-operator-redis-password") == {NAMESPACE: PASSWORD}
    assert granted(objects, "sume-operator-test") == {}


@pytest.mark.parametrize(
    ("watched", "where"), [([], NAMESPACE), (WATCHED, "team-a"), ([NAMESPACE, "team-a"], NAMESPACE)]
)
def test_the_test_may_follow_a_render_where_one_is_worked_on(helm: Helm, watched: list[str], where: str) -> None:
    objects = helm.objects({"sandbox": {"enabled": True}, "watch": {"namespaces": watched}})
    assert granted(objects, "sume-operator-test") == {where: {(*RENDERS, verb) for verb in ("create", "get", "delete")}}
    arguments = named(objects, "Pod")["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--follow") + 1] == where


def test_namespaced_there_is_nothing_cluster_wide_but_the_crd(helm: Helm) -> None:
    for name in ("namespaced", "namespaced, keys from one", "sandbox, namespaced"):
        objects = helm.objects(COMBINATIONS[name])
        assert {each["kind"] for each in objects if "namespace" not in each["metadata"]} == {"CustomResourceDefinition"}
        assert {each["metadata"]["namespace"] for each in objects if "namespace" in each["metadata"]} == {
            NAMESPACE, *WATCHED,
        }  # fmt: skip


def test_every_account_that_is_named_exists(helm: Helm) -> None:
    for name, values in COMBINATIONS.items():
        objects = helm.objects(values)
        made = {each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount"}
        subjects = {
            subject["name"] for each in objects if each["kind"].endswith("Binding") for subject in each["subjects"]
        }
        assert subjects <= made | ({"mine"} if name == "own accounts" else set())


def test_no_rights_are_made_where_that_is_said(helm: Helm) -> None:
    assert not kinds(helm.objects({"rbac": {"create": False}, "sandbox": {"enabled": True}})) & {
        "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
    }  # fmt: skip


def test_people_get_their_rights_by_aggregation(helm: Helm) -> None:
    def aggregated(values: dict[str, Any]) -> dict[str, set[str]]:
        prefix = "rbac.authorization.k8s.io/aggregate-to-"
        return {
            rule[3]: {label.removeprefix(prefix) for label in role["metadata"]["labels"] if label.startswith(prefix)}
            for role in helm.objects(values)
            if role["kind"] == "ClusterRole" and any(key.startswith(prefix) for key in role["metadata"]["labels"])
            for rule in rules(role)
        }

    found = aggregated({})
    everybody, editors = {"view", "edit", "admin"}, {"edit", "admin"}
    assert found == {
        **dict.fromkeys(("get", "list", "watch"), everybody),
        **dict.fromkeys(("create", "update", "patch", "delete", "deletecollection"), editors),
    }
    assert aggregated({"rbac": {"aggregate": False}}) == {}


@pytest.mark.parametrize("clients", ["redis", "sandbox"])
def test_network_policies_let_in_only_the_operator(helm: Helm, clients: str) -> None:
    spec = named(helm.objects(COMBINATIONS["network policies"]), "NetworkPolicy", f"-{clients}")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in spec
    (rule,) = spec["ingress"]
    who = {peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in rule["from"]}
    assert who == {"controller", "poller", "test"}
    assert len(rule["ports"]) == 1


def test_network_policies_of_the_operator(helm: Helm) -> None:
    for role in ("controller", "poller"):
        spec = named(helm.objects(COMBINATIONS["network policies"]), "NetworkPolicy", f"-{role}")["spec"]
        assert spec["policyTypes"] == ["Ingress"]
        assert spec["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]
        limited = named(helm.objects(COMBINATIONS["network policies with egress"]), "NetworkPolicy", f"-{role}")["spec"]
        assert limited["policyTypes"] == ["Ingress", "Egress"]
        assert limited["egress"] == [{"ports": [{"port": 443, "protocol": "TCP"}]}]
        assert "namespaceSelector" in limited["ingress"][0]["from"][0]
