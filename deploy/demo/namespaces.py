"""The samples' namespaces: made, emptied and removed, but never those that belong to somebody else."""

import json
from collections.abc import Mapping
from typing import Any, Final

from deploy.demo.errors import DemoError
from deploy.demo.kubectl import Kubectl
from deploy.demo.samples import PREFIX, Samples
from deploy.demo.screen import Screen

OWNED: Final = f"{PREFIX}/owned"
EMPTIED_S: Final = 30


def check_ours(kubectl: Kubectl, samples: Samples) -> None:
    """DemoError if one of them exists and was not made by a demo, or is on its way out."""
    for name in samples.namespace_names:
        found = kubectl.json("get", "namespace", name, "--ignore-not-found")
        if found is None:
            continue
        if (found["metadata"].get("labels") or {}).get(OWNED) != "true":
            raise DemoError(
                f"namespace {name} exists and was not made by the demo: nothing was touched. "
                f'If it may go at the end of the demo: kubectl label namespace {name} {OWNED}="true"'
            )
        if found["metadata"].get("deletionTimestamp"):
            raise DemoError(f"namespace {name} is still being deleted: try again in a moment")


def make(kubectl: Kubectl, samples: Samples) -> None:
    """Make those that are missing, and empty those that an earlier demo left: an ended render stays ended."""
    for namespace in samples.namespaces:
        name = str(namespace["metadata"]["name"])
        if kubectl.json("get", "namespace", name, "--ignore-not-found") is None:
            # Not `apply`: that would take over what somebody made since check_ours looked.
            kubectl.run("create", "--save-config", "-f", "-", stdin=json.dumps(_labelled(namespace)))
        else:
            _delete_renders(kubectl, name)


def remove(kubectl: Kubectl, samples: Samples, screen: Screen) -> None:
    """Delete the renders, then the namespaces. What cannot be deleted is said, and does not stop the rest."""
    for name in samples.namespace_names:
        try:
            if kubectl.json("get", "namespace", name, "--ignore-not-found") is None:
                continue
            _delete_renders(kubectl, name)
            kubectl.run("delete", "namespace", name, "--wait=false")
        except DemoError as error:
            screen.say(f"namespace {name} could not be removed: {error}")


def _delete_renders(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("delete", "sumerenders", "--all", "-n", namespace, f"--timeout={EMPTIED_S}s", timeout_s=EMPTIED_S + 10)


def _labelled(namespace: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(namespace["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), OWNED: "true"}
    return {**namespace, "metadata": metadata}
