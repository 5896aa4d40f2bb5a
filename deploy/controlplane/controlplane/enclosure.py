"""A place of its own in the kernel: network, mounts and processes that all end with one process, ours.

Nothing has to be cleaned up after it: when the process that started it dies, however it dies, the kernel ends every
process inside, and with the last of them the mounts and the network are gone.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from controlplane.golang import MissingError
from controlplane.processes import Child, StartError

READY_S: Final = 15.0
# What the kubelet sets for the whole machine. This machine is not its own: inside, plain files stand in their place.
_KERNEL: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_OWN_FOLDERS: Final = (Path("/run"), Path("/var/log"))
_READY: Final = "ready"


class Enclosure:
    """Started in `directory`; `inside` puts a command into it. Needs root.

    `in_memory` are folders that are empty inside and vanish with it, whatever is written there.
    """

    def __init__(self, directory: Path, in_memory: Sequence[Path] = ()) -> None:
        for tool in ("unshare", "nsenter", "mount", "setpriv"):
            if shutil.which(tool) is None:
                raise MissingError(f"{tool} is needed on PATH (packages util-linux and mount)")
        spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation=private"]
        command = ["unshare", *spaces, "sh", "-ec", _first_process([*_OWN_FOLDERS, *in_memory])]
        self._holder = Child("enclosure", command, directory / "enclosure.log")

    def __enter__(self) -> "Enclosure":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """There, with nothing in it but its first process."""
        self._holder.start()
        self._holder.wait_ready(lambda: self._holder.tail(1) == _READY, READY_S)

    def stop(self) -> None:
        """Gone, with everything inside."""
        self._holder.kill()

    def inside(self, command: Sequence[str | Path], *, network_only: bool = False) -> list[str]:
        """The command line that runs `command` inside; `network_only` suffices for clients, and starts quicker."""
        spaces = ["--net"] if network_only else ["--net", "--mount", "--pid"]
        return ["nsenter", f"--target={self._first_pid()}", *spaces, "--", *(str(part) for part in command)]

    def run(self, *command: str | Path, timeout_s: float = 30.0) -> str:
        """Run a command inside; answers what it printed."""
        result = subprocess.run(self.inside(command), capture_output=True, text=True, check=False, timeout=timeout_s)
        if result.returncode:
            raise StartError(f"`{' '.join(map(str, command))}` ended with {result.returncode}: {result.stderr.strip()}")
        return result.stdout

    def _first_pid(self) -> int:
        """The first process inside, as seen from outside: the only child of unshare."""
        holder = self._holder.pid
        return int(Path(f"/proc/{holder}/task/{holder}/children").read_text(encoding="ascii").split()[0])


def _first_process(in_memory: Sequence[Path]) -> str:
    """A shell that never ends by itself; waiting, it also reaps what loses its parent."""
    lines = [f"mount -t tmpfs tmpfs {folder}" for folder in in_memory]
    for number, (name, value) in enumerate(_KERNEL.items()):
        lines += [f"echo {value} > /run/kernel-{number}", f"mount --bind /run/kernel-{number} /proc/sys/{name}"]
    return "\n".join([*lines, f"echo {_READY}", "while :; do sleep 3600 & wait; done"])
