"""A total time-out for one HTTP exchange.

requests' own time-out is between two bytes, so a server that sends one now and then is waited for without end. Here a
timer shuts the connection's socket down when the time is over; whoever reads from it then gets an error or the end.
"""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_running = threading.local()


class Deadline:
    """`with Deadline(seconds) as deadline:` around one exchange of this thread; afterwards `expired` tells."""

    def __init__(self, timeout_s: float) -> None:
        self.expired = False
        self.connection_was_reused = False
        self._socket: socket.socket | None = None
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

    def watch(self, sock: socket.socket | None, *, reused: bool) -> None:
        """The exchange runs over `sock`."""
        self._socket = sock
        self.connection_was_reused = reused
        if self.expired:
            self._expire()

    def _expire(self) -> None:
        self.expired = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _watch(sock: Any, *, reused: bool) -> None:
    deadline: Deadline | None = getattr(_running, "deadline", None)
    if deadline is not None:
        deadline.watch(sock, reused=reused)


class _Watched:
    """Mixed into urllib3's connections: tells the running Deadline which socket an exchange uses."""

    sock: Any
    _has_answered = False

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self._has_answered = False
        _watch(self.sock, reused=False)

    def putrequest(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:  # else connect comes later, from within
            _watch(self.sock, reused=self._has_answered)
        super().putrequest(*args, **kwargs)  # type: ignore[misc]

    def getresponse(self) -> Any:
        response = super().getresponse()  # type: ignore[misc]
        self._has_answered = True
        return response


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
