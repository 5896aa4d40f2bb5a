"""The Kubernetes API: renders in, conditional writes out. One ApiClient per process, no retries, no proxy.

Every call has a connect and a read time-out, and raises only what kubernetes_errors.py lists.
"""

import base64
import binascii
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config

from sume_operator.adapters.kubernetes_errors import ClusterUnavailableError, GoneError, translated
from sume_operator.core.render import FINALIZER, GROUP, PLURAL, VERSION, Ref, Render, parse_render, ref_of
from sume_operator.core.status import Status, to_body

CONNECT_TIMEOUT_S: Final = 5.0
PING_S: Final = 3.0
SPARE_CONNECTIONS: Final = 4
LIST_PAGE: Final = 500
LIVE_ONLY: Final = "status.terminal!=true"
_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_SECRET_PATH: Final = "/api/v1/namespaces/{namespace}/secrets/{name}"  # noqa: S105 (a path, no password)
_MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list. `bodies` as the API server sent them; `next_page` continues it, if there is more."""

    bodies: tuple[Mapping[str, Any], ...]
    next_page: str | None
    resource_version: str


def load_configuration(connections: int) -> "client.Configuration":
    """KUBECONFIG, else the pod's own account, else ~/.kube/config. ValueError says what is missing."""
    loaded = client.Configuration()
    try:
        if os.environ.get("KUBECONFIG") or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_kube_config(os.environ.get("KUBECONFIG"), client_configuration=loaded)
        else:
            config.load_incluster_config(client_configuration=loaded)
    except Exception as error:  # noqa: BLE001  # a file that is no kubeconfig breaks the loader in many ways
        what = error if isinstance(error, config.ConfigException) else type(error).__name__
        raise ValueError(f"no access to Kubernetes: {what}. Set KUBECONFIG, or run in a pod with an account.") from None
    loaded.retries = False  # urllib3 would repeat every read three times, and double its time-out
    loaded.proxy = None  # the platform's proxy variables are for Sume, not for the cluster
    loaded.connection_pool_maxsize = connections + SPARE_CONNECTIONS
    return loaded


def own_namespace() -> str:
    """The namespace of this pod, or of the kubeconfig's context; `default` where neither tells."""
    if _POD_NAMESPACE.exists():
        return _POD_NAMESPACE.read_text(encoding="utf-8").strip() or "default"
    try:
        _contexts, active = config.list_kube_config_contexts(os.environ.get("KUBECONFIG"))
    except config.ConfigException:
        return "default"
    return str((active.get("context") or {}).get("namespace") or "default")


class Cluster:
    """The calls this operator makes. Safe to share between threads."""

    def __init__(self, configuration: "client.Configuration", *, timeout_s: float) -> None:
        self._api = client.ApiClient(configuration)
        self._objects: Any = client.CustomObjectsApi(self._api)  # typed as giving `object`: plain dicts in truth
        self._timeout_s = timeout_s

    def fetch(self, ref: Ref, timeout_s: float) -> Render:
        """The object; GoneError if it is not there, or another one by now; MalformedObjectError if unreadable."""
        with translated("fetch"):
            body = self._objects.get_namespaced_custom_object(
                GROUP, VERSION, ref.namespace, PLURAL, ref.name, _request_timeout=self._bound(timeout_s)
            )
        if ref_of(body) != ref:
            raise GoneError("fetch: another object has that name now")
        return parse_render(body)

    def write_status(self, render: Render, status: Status, timeout_s: float) -> Render:
        """Write `status` if the object still is at `render.resource_version`; answers the object as it is now."""
        patch = self._objects.patch_namespaced_custom_object_status
        return self._patched("status write", patch, render, {}, timeout_s, status=to_body(status))

    def set_finalizer(self, render: Render, *, present: bool, timeout_s: float) -> Render:
        """Add or remove our finalizer, conditional on resourceVersion; answers the object as it is now."""
        others = [name for name in render.finalizers if name != FINALIZER]
        finalizers = [*others, FINALIZER] if present else others
        patch = self._objects.patch_namespaced_custom_object
        return self._patched("finalizer", patch, render, {"finalizers": finalizers or None}, timeout_s)

    def annotate(self, render: Render, annotations: Mapping[str, str], *, finalizer: bool, timeout_s: float) -> Render:
        """Set annotations, and our finalizer with them if `finalizer`; conditional. Answers the object as it is now."""
        metadata: dict[str, Any] = {"annotations": dict(annotations)}
        if finalizer and not render.has_finalizer:
            metadata["finalizers"] = [*render.finalizers, FINALIZER]
        patch = self._objects.patch_namespaced_custom_object
        return self._patched("annotation", patch, render, metadata, timeout_s)

    def _patched(
        self, what: str, patch: Any, render: Render, metadata: Mapping[str, Any], timeout_s: float, **rest: Any
    ) -> Render:
        """A merge patch on condition that the object has not changed since it was read."""
        ref = render.ref
        body = {"metadata": {"resourceVersion": render.resource_version, **metadata}, **rest}
        with translated(what):
            answer = patch(
                GROUP,
                VERSION,
                ref.namespace,
                PLURAL,
                ref.name,
                body,
                _content_type=_MERGE,
                _request_timeout=self._bound(timeout_s),
            )
        return parse_render(answer)

    def create(self, namespace: str, name: str, spec: Mapping[str, Any]) -> Render:
        """Make a render."""
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "SumeRender", "metadata": {"name": name}, "spec": spec}
        with translated("create"):
            made = self._objects.create_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL, body, _request_timeout=self._bound(self._timeout_s)
            )
        return parse_render(made)

    def delete(self, render: Render, timeout_s: float) -> None:
        """Delete this very object, as it was read."""
        ref = render.ref
        preconditions = client.V1Preconditions(uid=ref.uid, resource_version=render.resource_version)
        with translated("delete"):
            self._objects.delete_namespaced_custom_object(
                GROUP,
                VERSION,
                ref.namespace,
                PLURAL,
                ref.name,
                body=client.V1DeleteOptions(preconditions=preconditions),
                _request_timeout=self._bound(timeout_s),
            )

    def list_page(self, namespace: str | None, *, live_only: bool, page: str | None = None) -> Page:
        """One page of all renders (or of one namespace's); ExpiredListError: start over."""
        options: dict[str, Any] = {"limit": LIST_PAGE, "_request_timeout": self._bound(self._timeout_s)}
        if live_only:
            options["field_selector"] = LIVE_ONLY
        if page:
            options["_continue"] = page
        with translated("list"):
            if namespace is None:
                body = self._objects.list_cluster_custom_object(GROUP, VERSION, PLURAL, **options)
            else:
                body = self._objects.list_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, **options)
        if not isinstance(body, dict) or not isinstance(body.get("items"), list):
            raise ClusterUnavailableError("list: the answer is no list")  # unknown is not empty
        metadata = body.get("metadata") or {}
        return Page(
            bodies=tuple(body["items"]),
            next_page=metadata.get("continue") or None,
            resource_version=str(metadata.get("resourceVersion") or ""),
        )

    def create_event(self, namespace: str, event: Mapping[str, Any], timeout_s: float = math.inf) -> None:
        """Make an Event (events.k8s.io/v1). ConflictError: it exists already."""
        with translated("event"):
            self._objects.create_namespaced_custom_object(
                "events.k8s.io", "v1", namespace, "events", dict(event), _request_timeout=self._bound(timeout_s)
            )

    def read_secret(self, namespace: str, name: str, timeout_s: float = math.inf) -> dict[str, bytes]:
        """The data of a Secret, decoded; GoneError if there is none."""
        data = self._secret(namespace, name, timeout_s).get("data") or {}
        try:
            return {key: base64.b64decode(value) for key, value in data.items()}
        except (AttributeError, TypeError, binascii.Error):
            raise ClusterUnavailableError("secret: not base64") from None

    def fill_secret(self, namespace: str, name: str, key: str, value: str) -> bool:
        """Put `value` under `key` of a Secret that has nothing there. False: it has something, and keeps it.

        GoneError: there is no such Secret. ConflictError: somebody else changed it at the same time.
        """
        secret = self._secret(namespace, name, self._timeout_s)
        if (secret.get("data") or {}).get(key):
            return False
        patch = {
            "metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]},
            "data": {key: base64.b64encode(value.encode()).decode()},
        }
        with translated("secret"):
            self._call("PATCH", _SECRET_PATH, self._timeout_s, {"namespace": namespace, "name": name}, patch)
        return True

    def _secret(self, namespace: str, name: str, timeout_s: float) -> dict[str, Any]:
        with translated("secret"):
            body = self._call("GET", _SECRET_PATH, timeout_s, {"namespace": namespace, "name": name})
        if not isinstance(body, dict) or body.get("kind") != "Secret":
            raise ClusterUnavailableError("secret: the answer is no Secret")
        return body

    def status_schema(self) -> Mapping[str, Any] | None:
        """The schema of SumeRender's status as the API server publishes it; None while the CRD is not served."""
        try:
            with translated("openapi"):
                document = self._call("GET", f"/openapi/v3/apis/{GROUP}/{VERSION}", self._timeout_s)
        except GoneError:
            return None
        if not isinstance(document, dict):
            raise ClusterUnavailableError("openapi: the answer is no object")
        for schema in ((document.get("components") or {}).get("schemas") or {}).values():
            kinds = [kind.get("kind") for kind in schema.get("x-kubernetes-group-version-kind") or ()]
            if kinds == ["SumeRender"]:
                status = (schema.get("properties") or {}).get("status")
                return status if isinstance(status, dict) else {}
        return None

    def renew_lease(self, namespace: str, name: str, holder: str, now: datetime, duration_s: int) -> None:
        """Write a coordination Lease, so that others can tell that its holder lives."""
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration_s,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        group, version, plural = "coordination.k8s.io", "v1", "leases"
        bound = self._bound(self._timeout_s)
        try:
            with translated("lease"):
                self._objects.patch_namespaced_custom_object(
                    group,
                    version,
                    namespace,
                    plural,
                    name,
                    {"spec": spec},
                    _content_type=_MERGE,
                    _request_timeout=bound,
                )
        except GoneError:
            body = {
                "apiVersion": f"{group}/{version}",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": namespace},
                "spec": spec,
            }
            with translated("lease"):
                self._objects.create_namespaced_custom_object(
                    group, version, namespace, plural, body, _request_timeout=bound
                )

    def ping(self) -> None:
        """Answers within PING_S, or raises."""
        with translated("version"):
            self._call("GET", "/version", PING_S)

    def _call(
        self,
        method: str,
        path: str,
        timeout_s: float,
        names: Mapping[str, str] | None = None,
        patch: Mapping[str, Any] | None = None,
    ) -> Any:
        """A call in plain JSON. CoreV1Api would do, but importing its models takes a second of every start."""
        method, url, headers, body, post = self._api.param_serialize(
            method=method,
            resource_path=path,
            path_params=dict(names or {}),
            header_params={"Accept": "application/json"} | ({"Content-Type": _MERGE} if patch else {}),
            body=patch,
            auth_settings=["BearerToken"],
        )
        response = self._api.call_api(method, url, headers, body, post, _request_timeout=self._bound(timeout_s))
        response.read()
        return self._api.response_deserialize(response, {"200": "object"}).data

    def _bound(self, timeout_s: float) -> tuple[float, float]:
        """(connect, read) in seconds: never longer than the settings allow, never 0."""
        bound_s = max(0.05, min(timeout_s, self._timeout_s))
        return min(CONNECT_TIMEOUT_S, bound_s), bound_s


def event_body(
    ref: Ref, name: str, fields: Mapping[str, str], component: str, instance: str, now: datetime
) -> dict[str, Any]:
    """An Event about `ref`. `fields`: type, reason, note. `name` makes a repeat a harmless conflict."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": ref.namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": component,
        "reportingInstance": instance,
        "action": fields["reason"],
        "reason": fields["reason"],
        "type": fields["type"],
        "note": fields["note"],
        "regarding": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "SumeRender",
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
        },
    }
