"""A server of a few lines, for what no real server does: it hangs, drips, resets. What arrives is written down."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Connection:
    """One accepted connection. `number` counts from 0."""

    number: int
    sock: socket.socket
    stopping: threading.Event
    received: list[bytes]
    _buffer: bytearray = field(default_factory=bytearray)

    def read_request(self) -> bytes:
        """One HTTP request with its body; empty when the other side has closed."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                return b""
        head, _, _ = bytes(self._buffer).partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        end = len(head) + 4 + (int(lengths[0]) if lengths else 0)
        while len(self._buffer) < end and self._more():
            pass
        request = bytes(self._buffer[:end])
        del self._buffer[:end]
        self.received.append(request)
        return request

    def answer(self, body: bytes, status: str = "200 OK", *headers: str) -> None:
        """A whole HTTP answer."""
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def drip(self, data: bytes, every_s: float) -> None:
        """A byte now and then, for as long as there are some and the listener runs."""
        for byte in data:
            if self.stopping.wait(every_s):
                return
            self.sock.sendall(bytes([byte]))

    def hang(self) -> None:
        """Answer nothing, keep it open."""
        self.stopping.wait()

    def reset(self) -> None:
        """Close it with an RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _more(self) -> bool:
        data = self.sock.recv(65536)
        self._buffer += data
        return bool(data)


class Listener:
    """Calls `handle` in a thread for each connection, and closes it afterwards."""

    def __init__(self, handle: Callable[[Connection], None], tls: ssl.SSLContext | None = None) -> None:
        self._handle = handle
        self._tls = tls
        self._stopping = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = int(self._socket.getsockname()[1])
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.requests: list[bytes] = []
        self.connections = 0

    def __enter__(self) -> "Listener":
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for sock in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _address = self._socket.accept()
            except OSError:
                return
            self._open.append(sock)
            self.connections += 1  # before anybody can have an answer over it
            self._start(self._serve, sock, self.connections - 1)

    def _serve(self, sock: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.append(sock)
            self._handle(Connection(number, sock, self._stopping, self.requests))
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
