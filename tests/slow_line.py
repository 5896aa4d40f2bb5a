"""A line to a server on 127.0.0.1 on which whatever it says takes its time, as from far away."""

import contextlib
import socket
import socketserver
import threading
import time


class SlowLine:
    """Passes connections on to `port`; each piece of an answer arrives `delay_s` later."""

    def __init__(self, port: int, delay_s: float) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as server:
                    back = threading.Thread(target=_pass, args=(server, self.request, delay_s), daemon=True)
                    back.start()
                    _pass(self.request, server, 0.0)

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "SlowLine":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def _pass(source: socket.socket, target: socket.socket, delay_s: float) -> None:
    """Until one side closes."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            time.sleep(delay_s)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
