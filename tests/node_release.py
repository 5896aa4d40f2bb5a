"""A release of the chart on a node, and renders: what tests of a whole install do with them."""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from controlplane import Node, node_images
from kube import Body, eventually, manifest, status
from node_sume import URL

CHART: Final = Path(__file__).parents[1] / "deploy" / "chart"
RELEASE: Final = "sume-operator"
NAMESPACE: Final = "sume-system"
REPOSITORY: Final = "sume-operator"
HELM_S: Final = 250.0
END_S: Final = 120.0
_INSTANCE: Final = f"app.kubernetes.io/instance={RELEASE}"
# Short times, in the proportions of the defaults, and no budgets: a test must not wait for a minute to pass.
_QUICK: Final = {
    "pollSeconds": 1,
    "pollMinSeconds": 0.5,
    "pollMaxSeconds": 5,
    "errorSeconds": 1,
    "requestTimeoutSeconds": 4,
    "submitTimeoutSeconds": 5,  # and 30 more: so long does a render wait whose poller was killed while it asked
    "leaseSeconds": 8,
    "sweepSeconds": 5,
    "readsPerMinute": 0,
    "submissionsPerMinute": 0,
    "maxActiveJobs": 40,
}


class Release:
    """helm's verbs, and what runs by them."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def helm(self, *arguments: str, values: Body | None = None) -> str:
        """Any of them, for this release."""
        given = () if values is None else ("--values=-",)
        stdin = None if values is None else json.dumps(values)
        placed = (f"--namespace={NAMESPACE}", *given)
        return str(self.node.helm(*arguments, *placed, stdin=stdin, timeout_s=HELM_S).stdout)

    def install(self, values: Body) -> None:
        """With `--wait`, in a namespace that it makes itself."""
        self.helm("install", RELEASE, str(CHART), "--create-namespace", "--wait", "--timeout=240s", values=values)

    def upgrade(self, values: Body) -> None:
        """With `--wait`, to exactly these values."""
        self.helm("upgrade", RELEASE, str(CHART), "--wait", "--timeout=240s", values=values)

    def uninstall(self) -> None:
        """Until its last pod is gone: helm's own `--wait` minds only what the release names, and that is no pod."""
        self.helm("uninstall", RELEASE, "--ignore-not-found", "--wait", "--timeout=90s")
        eventually(lambda: not self.pods(), within_s=90, every_s=0.3, what="no pod of the release is left")

    def pods(self, component: str = "") -> list[Body]:
        """Of the release, or of one component; those that are ending too."""
        selector = _INSTANCE + (f",app.kubernetes.io/component={component}" if component else "")
        return self._items("pods", f"--namespace={NAMESPACE}", f"--selector={selector}")

    def ready(self) -> bool:
        """Whether every Deployment is as it should be, with nothing on its way out."""
        wanted = self._items("deployments", f"--namespace={NAMESPACE}", f"--selector={_INSTANCE}")
        return bool(wanted) and all(
            each.get("status", {}).get("readyReplicas", 0) == each["spec"]["replicas"]
            and each["status"].get("updatedReplicas") == each["spec"]["replicas"]
            for each in wanted
        )

    def renders(self, namespace: str) -> list[Body]:
        """All of a namespace."""
        return self._items("sumerenders", f"--namespace={namespace}")

    def make_renders(self, namespace: str, count: int) -> None:
        """So many that ask for a job, in a namespace made for them."""
        bodies: list[Body] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
        for number in range(count):
            arguments = {"prompt": f"Take {number} in {namespace}"}
            spec = {"request": {"model": "sume/avatar-video/v1.0", "arguments": arguments}}
            bodies.append(manifest(f"take-{number}", spec, namespace=namespace))
        self.node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(bodies))

    def eventually_ended(self, namespace: str, within_s: float = END_S) -> list[Body]:
        """Its renders, once all of them have ended."""

        def ended() -> list[Body]:
            found = self.renders(namespace)
            return found if all(status(body).get("terminal") for body in found) else []

        found: list[Body] = eventually(ended, within_s=within_s, every_s=0.5, what=f"all renders of {namespace} ended")
        return found

    def eventually_running(self, namespace: str, least: int) -> None:
        """Until so many have a job and have not ended."""

        def running() -> bool:
            states = [status(body) for body in self.renders(namespace)]
            return sum(bool(state.get("jobID")) and not state.get("terminal") for state in states) >= least

        eventually(running, within_s=90, every_s=0.3, what=f"{least} running renders in {namespace}")

    def _items(self, kind: str, *options: str) -> list[Body]:
        return list(json.loads(self.node.kubectl("get", kind, *options, "--output=json").stdout)["items"])


def values_for(tag: str, *, pollers: int = 1, **more: Any) -> Body:
    """Values of an install from images that only the node has, against the Sume outside."""
    redis, _, redis_tag = node_images.REDIS_IMAGE.rpartition(":")
    registry, _, repository = redis.partition("/")
    return {
        "image": {"registry": registry, "repository": REPOSITORY, "tag": tag, "pullPolicy": "Never"},
        "redis": {
            "internal": {
                "image": {
                    "registry": registry,
                    "repository": repository,
                    "tag": redis_tag,
                    "pullPolicy": "Never",
                }
            }
        },
        "sume": _QUICK | {"url": URL},
        "poller": {"replicas": pollers},
    } | more


def is_running(pod: Body) -> bool:
    """Whether its containers run, be it on its way out."""
    return bool(pod["status"]["phase"] == "Running")


def image_of(pod: Body) -> str:
    """Of its first container."""
    return str(pod["spec"]["containers"][0]["image"])
