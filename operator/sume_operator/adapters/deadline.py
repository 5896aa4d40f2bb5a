"""A total time-out for one HTTP exchange.

requests' own time-out is between two bytes, so a server that sends one now and then is waited for without end. Here a
timer shuts the connection down when the time is over; whoever reads from it then gets an error or the end. It is armed
from the TCP handshake on, so it covers TLS and a proxy's answer too; only the look-up of a name in DNS is not covered.
"""

import contextlib
import os
import socket
import threading
import time
from types import TracebackType
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

_running = threading.local()


class Deadline:
    """`with Deadline(seconds) as deadline:` around one exchange of this thread; afterwards `expired` tells."""

    def __init__(self, timeout_s: float) -> None:
        self.expired = False
        # The connection had been kept alive, and nothing of an answer has come over it yet.
        self.may_be_stale = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(timeout_s, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        _running.deadline = self
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        _running.deadline = None
        self._hold(None)

    def watch(self, sock: socket.socket, *, reused: bool) -> None:
        """The exchange runs over `sock`. A descriptor of our own: TLS wraps the socket, and a pool may close it."""
        self.may_be_stale = reused
        with contextlib.suppress(OSError):
            self._hold(socket.socket(sock.family, sock.type, fileno=os.dup(sock.fileno())))
        if self.expired:
            self._expire()

    def _hold(self, sock: socket.socket | None) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = sock

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)


def _deadline() -> Deadline | None:
    return getattr(_running, "deadline", None)


class _Watched:
    """Mixed into urllib3's connections: tells the running Deadline which socket an exchange uses."""

    sock: Any
    port: Any
    timeout: Any
    _dns_host: str
    _has_answered = False

    def _new_conn(self) -> socket.socket:
        """The addresses of a host share the time-out: urllib3 would give the whole of it to each."""
        name, timeout_s, over_s = self._dns_host, self.timeout, time.monotonic() + self.timeout
        addresses = _addresses_of(name, self.port)
        self._has_answered = False
        try:
            while True:
                self._dns_host = addresses.pop(0)
                self.timeout = max(0.05, (over_s - time.monotonic()) / (len(addresses) + 1))
                try:
                    sock: socket.socket = super()._new_conn()  # type: ignore[misc]
                except HTTPError:
                    if not addresses:
                        raise
                    continue
                sock.settimeout(timeout_s)
                self._watch(sock)
                return sock
        finally:
            self._dns_host, self.timeout = name, timeout_s

    def putrequest(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:  # else it is connected later, from within
            self._watch(self.sock)
        super().putrequest(*args, **kwargs)  # type: ignore[misc]

    def getresponse(self) -> Any:
        response = super().getresponse()  # type: ignore[misc]
        self._has_answered = True
        if deadline := _deadline():
            deadline.may_be_stale = False
        return response

    def _watch(self, sock: socket.socket) -> None:
        if deadline := _deadline():
            deadline.watch(sock, reused=self._has_answered)


def _addresses_of(name: str, port: int) -> list[str]:
    """Numeric addresses; the name itself where it has none, so that urllib3 says what is wrong with it."""
    try:
        rows = socket.getaddrinfo(name.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [name]
    return [str(row[4][0]) for row in rows]


class _WatchedHTTP(_Watched, HTTPConnection):
    pass


class _WatchedHTTPS(_Watched, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _WatchedHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedHTTPS


_POOLS = {"http": _HTTPPool, "https": _HTTPSPool}


class WatchedAdapter(HTTPAdapter):
    """requests' adapter over connections that a Deadline can cut; proxies included."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager: Any = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager
