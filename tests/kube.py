"""The API server as a test sees it: plain HTTP with the administrator's token, with no code of ours in between."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from controlplane import ControlPlane

RENDERS: Final = "/apis/render.sume.com/v1alpha1"
MERGE: Final = "application/merge-patch+json"
POLL_REQUESTED_AT: Final = "render.sume.com/poll-requested-at"

Body = dict[str, Any]


class Kube:
    """Renders of a control plane, as JSON."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._url = control_plane.url
        self._session = requests.Session()
        self._session.trust_env = False
        # A test asks what is; whether the API server answers at once, on a busy machine or while the storage of a new
        # CRD is being made (429 with Retry-After), is not its question.
        again = Retry(connect=0, read=2, status=10, redirect=0, other=0, allowed_methods={"GET"}, raise_on_status=False)
        self._session.mount("https://", HTTPAdapter(max_retries=again))
        self._session.verify = str(control_plane.ca_file)
        self._session.headers["Authorization"] = f"Bearer {control_plane.token}"

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        """Any call; the answer as it came."""
        return self._session.request(method, f"{self._url}{path}", timeout=20, **options)

    def make_namespace(self, name: str) -> None:
        """Make it, if it is not there."""
        answer = self.request("POST", "/api/v1/namespaces", json={"metadata": {"name": name}})
        assert answer.status_code in (201, 409), answer.text

    def make_secret(self, namespace: str, name: str, data: dict[str, str]) -> None:
        """Make or replace it."""
        path, body = f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}, "stringData": data}
        answer = self.request("POST", path, json=body)
        if answer.status_code == 409:
            answer = self.request("PUT", f"{path}/{name}", json=body)
        assert answer.ok, answer.text

    def create(self, namespace: str, name: str, spec: Body, **metadata: Any) -> Body:
        """Make a render; asserts that it is taken."""
        answer = self.request(
            "POST", f"{RENDERS}/namespaces/{namespace}/sumerenders", json=manifest(name, spec, **metadata)
        )
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def get(self, namespace: str, name: str) -> Body:
        """The render; asserts that it is there."""
        answer = self.request("GET", _path(namespace, name))
        assert answer.ok, answer.text
        return dict(answer.json())

    def exists(self, namespace: str, name: str) -> bool:
        """Whether it is there."""
        return self.request("GET", _path(namespace, name)).status_code == 200

    def all_in(self, namespaces: Iterable[str]) -> list[Body]:
        """All renders of these namespaces."""
        found: list[Body] = []
        for namespace in namespaces:
            answer = self.request("GET", f"{RENDERS}/namespaces/{namespace}/sumerenders")
            assert answer.ok, answer.text
            found += answer.json()["items"]
        return found

    def patch(self, namespace: str, name: str, patch: Body, *, status: bool = False) -> requests.Response:
        """A merge patch; the answer as it came."""
        path = _path(namespace, name) + ("/status" if status else "")
        return self.request("PATCH", path, json=patch, headers={"Content-Type": MERGE})

    def edit(self, namespace: str, name: str, **spec: Any) -> Body:
        """Change fields of the spec; asserts that they are taken."""
        answer = self.patch(namespace, name, {"spec": spec})
        assert answer.ok, answer.text
        return dict(answer.json())

    def annotate(self, namespace: str, name: str, value: str) -> None:
        """Ask for another look."""
        answer = self.patch(namespace, name, {"metadata": {"annotations": {POLL_REQUESTED_AT: value}}})
        assert answer.ok, answer.text

    def delete(self, namespace: str, name: str) -> None:
        """Delete a render."""
        answer = self.request("DELETE", _path(namespace, name))
        assert answer.ok, answer.text

    def events(self, namespace: str, name: str) -> list[Body]:
        """The events about a render."""
        answer = self.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        return [event for event in answer.json()["items"] if event["regarding"]["name"] == name]


def manifest(name: str, spec: Body, **metadata: Any) -> Body:
    """A SumeRender."""
    return {
        "apiVersion": "render.sume.com/v1alpha1",
        "kind": "SumeRender",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def status(body: Body) -> Body:
    """The status, empty if there is none yet."""
    return dict(body.get("status") or {})


def condition(body: Body, kind: str) -> tuple[str, str]:
    """(status, reason) of a condition; empty texts if it is not set yet."""
    for each in status(body).get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def is_finished(body: Body) -> bool:
    """Whether it says that it has ended, in both places."""
    finished = condition(body, "Finished")[0] == "True"
    assert finished == (status(body).get("terminal") is True)
    return finished


def eventually(condition: Callable[[], Any], *, within_s: float, every_s: float = 0.05, what: str = "") -> Any:
    """What `condition` gives once it is true; fails after `within_s`."""
    over_s = time.monotonic() + within_s
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < over_s, f"not within {within_s:g} s: {what or condition}"
        time.sleep(every_s)


def _path(namespace: str, name: str) -> str:
    return f"{RENDERS}/namespaces/{namespace}/sumerenders/{name}"
