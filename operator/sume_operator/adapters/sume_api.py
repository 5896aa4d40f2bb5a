"""The Sume API over HTTP: `perform(call, key, timeout_s)` -> Reply. One session per process, no retries, no redirects.

    requests.Timeout, the total time-out          -> Unavailable
    requests.ConnectionError (refused, reset ...) -> Unavailable
    any HTTP answer                               -> see replies.py

The one second try is over a kept-alive connection that the other side had closed before any byte of an answer came:
that is no failed look, only an old connection.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import RemoteDisconnected
from http.cookiejar import DefaultCookiePolicy
from typing import Final
from urllib.parse import quote

import requests
from requests.auth import AuthBase

from sume_operator import __version__
from sume_operator.adapters.deadline import Deadline, WatchedAdapter
from sume_operator.adapters.replies import read_reply
from sume_operator.core.job import Call, Cancel, Check, Collect, Malformed, Reply, Unavailable

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
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
        """Send `call` with `key` (printable ASCII) and wait at most `timeout_s` in total. Never raises for trouble."""
        started = time.monotonic()
        try:
            reply, code = self._exchange(call, key, timeout_s)
        except _StaleConnectionError:
            left_s = max(0.1, timeout_s - (time.monotonic() - started))
            try:
                reply, code = self._exchange(call, key, left_s)
            except _StaleConnectionError:
                reply, code = Unavailable(detail="the connection was closed before an answer came"), "closed"
        self._observe(type(call).__name__.lower(), code, time.monotonic() - started)
        return reply

    def _exchange(self, call: Call, key: str, timeout_s: float) -> tuple[Reply, str]:
        method, path, body = _request_of(call)
        with Deadline(timeout_s) as deadline:
            try:
                with self._session.request(
                    method,
                    f"{self._base_url}{path}",
                    json=body,
                    auth=_KeyAuth(key, self._auth_mode),
                    timeout=timeout_s,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    content = _read(response)
                    if deadline.expired:
                        return _too_slow(timeout_s)
                    if content is None:
                        return Malformed(detail=f"it is longer than {MAX_BODY_BYTES // 2**20} MiB"), "too_long"
                    now = datetime.now(UTC)
                    return read_reply(call, response.status_code, response.headers, content, now), str(
                        response.status_code
                    )
            except requests.RequestException as error:
                return _failure(error, deadline, timeout_s)


def _request_of(call: Call) -> tuple[str, str, dict[str, str] | None]:
    job = quote(call.job_id, safe="")
    match call:
        case Check():
            return "GET", f"/jobs/{job}/status", None
        case Collect():
            return "GET", f"/jobs/{job}/result", None
        case Cancel():
            return "POST", f"/jobs/{job}/cancel", {}


def _read(response: requests.Response) -> bytes | None:
    """The whole body; None where it is longer than anything Sume sends."""
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BODY_BYTES:
            return None
    return bytes(content)


def _too_slow(timeout_s: float) -> tuple[Reply, str]:
    return Unavailable(detail=f"no complete answer within {timeout_s:.0f} s"), "timeout"


def _failure(error: requests.RequestException, deadline: Deadline, timeout_s: float) -> tuple[Reply, str]:
    """The libraries' exceptions -> a stable text: theirs hold addresses of objects, and sometimes headers."""
    if deadline.expired or isinstance(error, requests.Timeout):
        return _too_slow(timeout_s)
    cause = _innermost(error)
    if deadline.may_be_stale and isinstance(cause, RemoteDisconnected | ConnectionResetError | BrokenPipeError):
        raise _StaleConnectionError from None
    if isinstance(error, requests.exceptions.SSLError):
        return Unavailable(detail="TLS failed: the server's certificate is not trusted or not its own"), "tls"
    if isinstance(error, requests.exceptions.ProxyError):
        return Unavailable(detail="the proxy did not answer"), "proxy"
    return Unavailable(detail=f"the connection failed ({type(cause).__name__})"), "connection"


def _innermost(error: BaseException) -> BaseException:
    """The exception at the bottom: requests and urllib3 wrap theirs as cause, context, reason or argument."""
    for _ in range(10):
        inner = error.__cause__ or error.__context__ or getattr(error, "reason", None)
        inner = inner or next((arg for arg in reversed(error.args) if isinstance(arg, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error
