"""/metrics, /healthz and /readyz over HTTP, each answered in a thread of its own."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

log = logging.getLogger(__name__)

# Each check gives what is wrong, or None.
Check = Callable[[], str | None]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_address = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        """Probes every few seconds are not worth a line."""


class Health:
    """Serves until `stop`. `alive`: is the loop going; `ready`: does it reach what it needs."""

    def __init__(
        self,
        port: int,
        registry: CollectorRegistry,
        *,
        alive: Mapping[str, Check],
        ready: Mapping[str, Check],
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._checks = {"/healthz": alive, "/readyz": ready}
        self._refresh = refresh
        self._server = make_server("", port, self._answer, server_class=_Server, handler_class=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on: the given one, or a free one where that was 0."""
        return int(self._server.server_port)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            self._refresh()
            answer: Iterable[bytes] = self._metrics(environ, start_response)
            return answer
        checks = self._checks.get(path)
        if checks is None:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"try /metrics, /healthz or /readyz\n"]
        wrong = {name: problem for name, check in checks.items() if (problem := check())}
        status = "503 Service Unavailable" if wrong else "200 OK"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return ["".join(f"{name}: {problem}\n" for name, problem in wrong.items()).encode() or b"ok\n"]
