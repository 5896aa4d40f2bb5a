"""A fresh address for an output whose old one has expired: the operator is asked once a render, and waited for."""

import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from kubectl_sumerender import POLL_REQUESTED_AT, renders
from kubectl_sumerender.api import Api
from kubectl_sumerender.download_plan import Output
from kubectl_sumerender.errors import ApiError, ForbiddenError, NotFoundError, UnavailableError
from kubectl_sumerender.render import read_render

LOOK_EVERY_S: Final = 1.0


class NoFreshAddressError(Exception):
    """There is none, and why."""


class FreshAddresses:
    """Of all renders of one run. Safe to share between threads: the outputs of one render share one request."""

    def __init__(self, api: Api, *, wait_s: float, stop: threading.Event) -> None:
        self._api = api
        self._wait_s = wait_s
        self._stop = stop
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._known: dict[str, Mapping[str, str] | NoFreshAddressError] = {}

    def of(self, output: Output) -> str:
        """The address, fetched once per run however many outputs of the render ask."""
        with self._lock:
            lock = self._locks.setdefault(output.uid, threading.Lock())
        with lock:
            if output.uid not in self._known:
                try:
                    self._known[output.uid] = self._refreshed(output)
                except NoFreshAddressError as error:
                    self._known[output.uid] = error
            known = self._known[output.uid]
        if isinstance(known, NoFreshAddressError):
            raise NoFreshAddressError(str(known))
        if not known.get(output.key.output):
            raise NoFreshAddressError("the render no longer lists this output")
        return known[output.key.output]

    def _refreshed(self, output: Output) -> Mapping[str, str]:
        """Annotate, then look until the operator says that it has acted on it."""
        namespace, name = output.key.namespace, output.key.name
        body: Mapping[str, Any]
        wish = f"download-{uuid.uuid4().hex}"
        try:
            body = renders.get(self._api, namespace, name)
            if read_render(body).uid != output.uid:
                raise NoFreshAddressError("the render was made anew meanwhile; run the same again")
            change = {"metadata": {"annotations": {POLL_REQUESTED_AT: wish}}}
            body = renders.patch(self._api, read_render(body), change)
        except ForbiddenError:
            raise NoFreshAddressError(
                "the address has expired, and this account may not ask for a fresh one (it needs `patch` on "
                f"sumerenders). Somebody who may: kubectl sumerender refresh -n {namespace} {name}"
            ) from None
        except NotFoundError:
            raise NoFreshAddressError("the render was deleted meanwhile") from None
        except ApiError as error:
            raise NoFreshAddressError(str(error)) from None
        over_s = time.monotonic() + self._wait_s
        while not _is_handled(body):
            if time.monotonic() >= over_s or self._stop.wait(LOOK_EVERY_S):
                raise NoFreshAddressError(
                    f"the operator was asked for a fresh address and did not answer within {self._wait_s:g} s. "
                    f"Ask why: kubectl sumerender why -n {namespace} {name}"
                )
            body = self._seen(namespace, name, body)
        return _addresses(body)

    def _seen(self, namespace: str, name: str, before: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return renders.get(self._api, namespace, name)
        except UnavailableError:
            return before  # not now: the next look may do
        except ApiError as error:
            raise NoFreshAddressError(str(error)) from None


def _is_handled(body: Mapping[str, Any]) -> bool:
    """Whether the last wish was acted on: ours, or one that somebody else made after it."""
    wish = ((body.get("metadata") or {}).get("annotations") or {}).get(POLL_REQUESTED_AT)
    return bool(wish) and (body.get("status") or {}).get("lastHandledPollRequest") == wish


def _addresses(body: Mapping[str, Any]) -> Mapping[str, str]:
    outputs = (body.get("status") or {}).get("outputs") or []
    return {str(each.get("name")): str(each.get("url") or "") for each in outputs if isinstance(each, Mapping)}
