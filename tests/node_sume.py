"""A Sume on a node that is no part of a release, so that it outlives everything that is done to one."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from certificates import self_signed
from controlplane import Node
from kube import Body, status

NAMESPACE: Final = "sume-outside"
HOST: Final = f"sume.{NAMESPACE}.svc"
URL: Final = f"http://{HOST}:8081/v1"
_MEDIA_URL: Final = f"https://{HOST}:8443/artifacts"
_OPTIONS: Final = (
    *("--queue-s=1", "--process-s=6", "--running-slots=40", "--queued-slots=1000", "--cancel-running"),
    *("--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key", f"--media-url={_MEDIA_URL}"),
)


class Sume:
    """A sandbox, with the files that its jobs made over TLS: `certificate` (PEM) is what to trust for them."""

    def __init__(self, node: Node, image: str, folder: Path) -> None:
        self._node = node
        cert, key = self_signed(folder, f"DNS:{HOST}")
        self.certificate = cert.read_text(encoding="ascii")
        files = {"tls.crt": self.certificate, "tls.key": key.read_text(encoding="ascii")}
        node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(_objects(image, files)))
        node.kubectl("rollout", "status", "deployment/sume", f"--namespace={NAMESPACE}", "--timeout=50s")

    def jobs_of(self, bodies: Iterable[Body]) -> Counter[str]:
        """Job ids of these renders, each with the number of renders that have it."""
        return Counter(str(status(body).get("jobID")) for body in bodies)

    def submitted(self) -> int:
        """How many jobs were made."""
        return int(self._get("stats")["jobs"]["submitted"])

    def known(self) -> Mapping[str, Any]:
        """Every job."""
        return dict(self._get("jobs")["jobs"])

    def _get(self, route: str) -> Any:
        path = f"/api/v1/namespaces/{NAMESPACE}/services/sume:8081/proxy/_sandbox/{route}"
        return json.loads(self._node.kubectl("get", f"--raw={path}").stdout)


def _objects(image: str, files: Mapping[str, str]) -> list[Body]:
    labels, named = {"app": "sume"}, {"name": "sume", "namespace": NAMESPACE}
    container = {
        "name": "sume",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["sandbox", *_OPTIONS],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
    }
    pod = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": "sume"}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    ports = [{"name": "http", "port": 8081}, {"name": "https", "port": 8443}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "kubernetes.io/tls", "stringData": files},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": named,
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": {"selector": labels, "ports": ports}},
    ]
