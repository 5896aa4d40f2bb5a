"""What accounts may do and what they did: RBAC objects and the audit log of a real API server, as the same triples."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from controlplane import ControlPlane


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """One verb on one kind of thing. `namespace`: where it holds; empty: in all. `group`: empty for the core."""

    namespace: str
    group: str
    resource: str
    verb: str

    def covers(self, used: "Right") -> bool:
        """Whether `used` is a use of this right."""
        here = self.namespace in ("", used.namespace)
        return here and (self.group, self.resource, self.verb) == (used.group, used.resource, used.verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One call of the audit log."""

    right: Right
    code: int
    path: str


def granted(control_plane: ControlPlane, namespace: str, account: str) -> frozenset[Right]:
    """Every right bound to the ServiceAccount, leaving out what each authenticated user has."""
    rights: set[Right] = set()
    for binding in _items(control_plane, "rolebindings,clusterrolebindings"):
        subjects = binding.get("subjects") or ()
        if any(
            (each["kind"], each.get("namespace"), each["name"]) == ("ServiceAccount", namespace, account)
            for each in subjects
        ):
            rights |= set(_rights_of(control_plane, binding))
    return frozenset(rights)


def uses(control_plane: ControlPlane, namespace: str, account: str) -> Iterator[Use]:
    """What the ServiceAccount asked of resources so far. Discovery and health are no resources."""
    user = f"system:serviceaccount:{namespace}:{account}"
    for line in control_plane.audit_log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        what = entry.get("objectRef")
        if entry["user"]["username"] != user or what is None:
            continue
        subresource = f"/{what['subresource']}" if "subresource" in what else ""
        right = Right(
            namespace=what.get("namespace", ""),
            group=what.get("apiGroup", ""),
            resource=what.get("resource", "") + subresource,
            verb=entry["verb"],
        )
        yield Use(right=right, code=int(entry.get("responseStatus", {}).get("code", 0)), path=entry["requestURI"])


def unused(rights: Iterable[Right], done: Iterable[Use]) -> list[Right]:
    """Rights that no successful call needed."""
    used = {use.right for use in done if use.code < 400}
    return sorted(right for right in rights if not any(right.covers(each) for each in used))


def _rights_of(control_plane: ControlPlane, binding: dict[str, Any]) -> Iterator[Right]:
    namespace = binding["metadata"].get("namespace", "")
    kind, name = binding["roleRef"]["kind"].lower(), binding["roleRef"]["name"]
    place = ("-n", namespace) if kind == "role" else ()
    role = json.loads(control_plane.kubectl("get", kind, name, *place, "-o", "json").stdout)
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(namespace=namespace, group=group, resource=resource, verb=verb)


def _items(control_plane: ControlPlane, kinds: str) -> list[dict[str, Any]]:
    return list(json.loads(control_plane.kubectl("get", kinds, "-A", "-o", "json").stdout)["items"])
