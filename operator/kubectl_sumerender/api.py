"""The door to the Kubernetes API: one call, JSON in, JSON out; every failure is one of errors.py.

No retries here: whoever waits for something decides how long. Safe to share between threads.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import urllib3
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from kubectl_sumerender import GROUP, PLURAL, VERSION
from kubectl_sumerender.errors import UnavailableError, from_answer, from_exception

CONNECT_S: Final = 10.0
ANSWER_S: Final = 60.0
MERGE: Final = "application/merge-patch+json"

Body = dict[str, Any]


class Api:
    """An API server and the namespace to work in (None: all of them)."""

    def __init__(self, configuration: "client.Configuration", namespace: str | None) -> None:
        self.namespace = namespace
        self.host = str(configuration.host)
        self._client = client.ApiClient(configuration)
        self._objects: Any = client.CustomObjectsApi(self._client)

    @property
    def where(self) -> str:
        """The namespace in words."""
        return f"namespace {self.namespace}" if self.namespace else "all namespaces"

    def request(
        self,
        what: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        answer_s: float = ANSWER_S,
    ) -> Body:
        """Any call. `what` names it in an error, such as `get render studio-a/intro`."""
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if body is not None else {})
        try:
            verb, url, sent, payload, form = self._client.param_serialize(
                method=method,
                resource_path=path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = self._client.call_api(verb, url, sent, payload, form, _request_timeout=(CONNECT_S, answer_s))
            text = answer.read()
        except ApiException as error:
            raise from_answer(what, int(error.status or 0), error.body) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise from_exception(what, error, self.host) from None
        if not 200 <= answer.status <= 299:
            raise from_answer(what, answer.status, text)
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise UnavailableError(f"{what}: {self.host} answers, but not as a Kubernetes API server does")
        return parsed

    def watch_renders(
        self, *, selector: str, field_selector: str, resource_version: str, seconds: int
    ) -> Iterator[tuple[str, Body]]:
        """(type, object) of each change after `resource_version`, for `seconds` at most; then it ends by itself.

        ExpiredError: list anew. UnavailableError: the stream broke.
        """
        what = f"watch renders in {self.where}"
        options: dict[str, Any] = {
            "resource_version": resource_version,
            "timeout_seconds": seconds,
            "allow_watch_bookmarks": True,
            # Between bytes. A server that has gone silent is left soon after the time that it was asked for.
            "_request_timeout": (CONNECT_S, seconds + 5),
        }
        if selector:
            options["label_selector"] = selector
        if field_selector:
            options["field_selector"] = field_selector
        place = (GROUP, VERSION, self.namespace, PLURAL) if self.namespace else (GROUP, VERSION, PLURAL)
        call = (
            self._objects.list_namespaced_custom_object if self.namespace else self._objects.list_cluster_custom_object
        )
        try:
            for event in watch.Watch(return_type="object").stream(call, *place, **options):
                yield str(event["type"]), event["raw_object"]
        except ApiException as error:
            raise from_answer(what, int(error.status or 0), error.body or _as_status(error)) from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise from_exception(what, error, self.host) from None


def _as_status(error: ApiException) -> str:
    """A watch's ERROR event, which the client hands on without its body."""
    return json.dumps({"kind": "Status", "message": str(error.reason), "details": {"kind": PLURAL}})


def pairs(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A query without what is empty."""
    return {name: value for name, value in items if value not in (None, "")}
