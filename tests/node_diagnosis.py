"""What to look at when a test on a node failed: pods, events, and the ends of the logs."""

import json

from controlplane import Node

LINES = 12


def diagnosis(node: Node) -> str:
    """One text; what cannot be had says why."""
    parts = [
        _said(node, "get", "pods", "--all-namespaces", "--output=wide"),
        _said(node, "get", "sumerenders", "--all-namespaces", "--no-headers"),
        _said(node, "get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
    ]
    for namespace, name in _pods(node):
        parts.append(
            _said(node, "logs", f"--namespace={namespace}", name, "--all-containers", "--prefix", f"--tail={LINES}")
        )
    return "\n\n".join([*parts, node.logs(LINES)])


def _said(node: Node, *arguments: str) -> str:
    result = node.kubectl(*arguments, check=False)
    lines = (result.stdout or result.stderr).splitlines()
    return "\n".join([f"--- kubectl {' '.join(arguments)}", *lines[-40:]])


def _pods(node: Node) -> list[tuple[str, str]]:
    result = node.kubectl("get", "pods", "--all-namespaces", "--output=json", check=False)
    if result.returncode:
        return []
    found = [each["metadata"] for each in json.loads(result.stdout)["items"]]
    return [(each["namespace"], each["name"]) for each in found]
