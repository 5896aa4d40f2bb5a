"""The Sume API over HTTP: `perform(call, key, timeout_s)` -> Reply. One session per process, no retries, no redirects.

    requests.Timeout, the total time-out          -> Unavailable
    requests.ConnectionError (refused, reset ...) -> Unavailable
    any HTTP answer                               -> see replies.py

The one second try is over a kept-alive connection that the other side had closed before any byte of an answer came:
that is no failed look, only an old connection.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.client import RemoteDisconnected
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import quote

import requests
from requests.auth import AuthBase

from sume_operator import __version__
from sume_operator.adapters.deadline import Deadline, WatchedAdapter
from sume_operator.adapters.rate_headers import RateHint, read_hint
from sume_operator.adapters.replies import read_reply
from sume_operator.core.job import Call, Cancel, Check, Collect, Malformed, Reply, Submit, Unavailable

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
_ROUTERS: Final = {"VideoRouter": "/video-router/generate", "ImageRouter": "/image-router/generate"}
_PLAIN: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")
_CHUNK_BYTES: Final = 64 * 1024

# (operation, HTTP status or a short word, seconds): for metrics.
Observer = Callable[[str, str, float], None]


class _KeyAuth(AuthBase):
    """Sets the header itself: requests would else let a .netrc entry replace the key."""

    def __init__(self, key: str, mode: str) -> None:
        self._key = key
        self._mode = mode

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._mode == "x-api-key":
            request.headers["x-api-key"] = self._key
        else:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class _Session(requests.Session):
    """Sees no redirect: requests would build the next request, and fail on an odd Location, even if told not to."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One call and what came of it. `code`: HTTP status or a short word; `hint`: what the headers say of limits."""

    reply: Reply
    code: str
    hint: RateHint | None = None


class _StaleConnectionError(Exception):
    """The kept-alive connection was dead before the request reached anybody."""


class SumeAPI:
    """One API base. `connections`: how many threads call at once. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        *,
        connections: int,
        auth_mode: str = "bearer",
        observe: Observer = lambda _operation, _code, _seconds: None,
    ) -> None:
        self._base_url = base_url
        self._auth_mode = auth_mode
        self._observe = observe
        self._session = _Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers["User-Agent"] = f"sume-operator/{__version__}"
        self._session.headers["Accept"] = "application/json"
        adapter = WatchedAdapter(pool_connections=4, pool_maxsize=connections, max_retries=0)
        self._session.mount("https://", adapter)
        self._session.mount("http://", adapter)

    def perform(self, call: Call, key: str, timeout_s: float) -> Reply:
        """As exchange; only the reply."""
        return self.exchange(call, key, timeout_s).reply

    def exchange(self, call: Call, key: str, timeout_s: float) -> Exchange:
        """Send `call` with `key` (printable ASCII) and wait at most `timeout_s` in total. Never raises for trouble."""
        started = time.monotonic()
        exchange = self._attempt(call, key, timeout_s)
        if exchange is None:
            left_s = max(0.1, timeout_s - (time.monotonic() - started))
            closed = Unavailable(detail="the connection was closed before an answer came")
            exchange = self._attempt(call, key, left_s) or Exchange(reply=closed, code="closed")
            if isinstance(exchange.reply, Unavailable):  # the first one may have arrived all the same
                exchange = replace(exchange, reply=replace(exchange.reply, was_sent=True))
        self._observe(type(call).__name__.lower(), exchange.code, time.monotonic() - started)
        return exchange

    def _attempt(self, call: Call, key: str, timeout_s: float) -> Exchange | None:
        """None: it went over a kept-alive connection that was dead."""
        try:
            return self._exchange(call, key, timeout_s)
        except _StaleConnectionError:
            return None

    def _exchange(self, call: Call, key: str, timeout_s: float) -> Exchange:
        method, path, body, headers = _request_of(call)
        with Deadline(timeout_s) as deadline:
            try:
                with self._session.request(
                    method,
                    f"{self._base_url}{path}",
                    json=body,
                    headers=headers,
                    auth=_KeyAuth(key, self._auth_mode),
                    timeout=timeout_s,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    content = _read(response)
                    if deadline.expired:
                        return _too_slow(timeout_s)
                    if content is None:
                        too_long = Malformed(detail=f"it is longer than {MAX_BODY_BYTES // 2**20} MiB")
                        return Exchange(reply=too_long, code="too_long")
                    now = datetime.now(UTC)
                    reply = read_reply(call, response.status_code, response.headers, content, now)
                    hint = read_hint(response.headers)
                    return Exchange(reply=reply, code=str(response.status_code), hint=hint)
            except requests.RequestException as error:
                return _failure(error, deadline, timeout_s)


def _request_of(call: Call) -> tuple[str, str, Mapping[str, Any] | None, dict[str, str]]:
    """Method, path, JSON body and own headers."""
    match call:
        case Check(job_id=job_id):
            return "GET", f"/jobs/{quote(job_id, safe='')}/status", None, {}
        case Collect(job_id=job_id):
            return "GET", f"/jobs/{quote(job_id, safe='')}/result", None, {}
        case Cancel(job_id=job_id):
            return "POST", f"/jobs/{quote(job_id, safe='')}/cancel", {}, {}
        case Submit(endpoint="ModelRuns", model=model):
            return "POST", f"/models/{quote(model, safe='/')}/runs", call.arguments, _key_header(call)
        case Submit(endpoint=endpoint, model=model):
            return "POST", _ROUTERS[endpoint], {**call.arguments, "model": model}, _key_header(call)


def _key_header(call: Submit) -> dict[str, str]:
    """A key with characters that a header cannot hold is percent-encoded, always alike."""
    return {"Idempotency-Key": quote(call.idempotency_key, safe=_PLAIN)}


def _read(response: requests.Response) -> bytes | None:
    """The whole body; None where it is longer than anything Sume sends."""
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BODY_BYTES:
            return None
    return bytes(content)


def _too_slow(timeout_s: float) -> Exchange:
    return Exchange(reply=Unavailable(detail=f"no complete answer within {timeout_s:.0f} s"), code="timeout")


def _failure(error: requests.RequestException, deadline: Deadline, timeout_s: float) -> Exchange:
    """The libraries' exceptions -> a stable text: theirs hold addresses of objects, and sometimes headers."""
    if deadline.expired or isinstance(error, requests.Timeout):
        return _too_slow(timeout_s)
    cause = _innermost(error)
    if deadline.may_be_stale and isinstance(cause, RemoteDisconnected | ConnectionResetError | BrokenPipeError):
        raise _StaleConnectionError from None
    if isinstance(error, requests.exceptions.SSLError):
        detail = "TLS failed: the server's certificate is not trusted or not its own"
        was_sent = not isinstance(cause, ssl.SSLCertVerificationError)  # others come later, too
        return Exchange(reply=Unavailable(detail=detail, was_sent=was_sent), code="tls")
    if isinstance(error, requests.exceptions.ProxyError):
        return Exchange(reply=Unavailable(detail="the proxy did not answer"), code="proxy")
    was_sent = not isinstance(cause, ConnectionRefusedError | socket.gaierror)
    reply = Unavailable(detail=f"the connection failed ({type(cause).__name__})", was_sent=was_sent)
    return Exchange(reply=reply, code="connection")


def _innermost(error: BaseException) -> BaseException:
    """The exception at the bottom: requests and urllib3 wrap theirs as cause, context, reason or argument."""
    for _ in range(10):
        inner = error.__cause__ or error.__context__ or getattr(error, "reason", None)
        inner = inner or next((arg for arg in reversed(error.args) if isinstance(arg, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error
