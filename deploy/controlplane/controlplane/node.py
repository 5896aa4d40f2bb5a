"""A whole Kubernetes of one node, in which pods really run: up, used from outside, and gone."""

import atexit
import os
import secrets
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

from controlplane import node_commands, node_images
from controlplane.cluster import write_keys, write_kubeconfig
from controlplane.enclosure import Enclosure
from controlplane.golang import MissingError, Progress
from controlplane.node_config import API_PORT, BRIDGE, CNI_PLUGINS, HOST, NAME, PREFIX_LENGTH, NodeFiles
from controlplane.node_place import clear_leftovers, make_place
from controlplane.processes import Child, StartError
from controlplane.programs import program

READY_S: Final = 120.0
COMMAND_S: Final = 60.0
LOAD_S: Final = 180.0
_TOOLS: Final = ("containerd", "ctr", "runc", "iptables", "conntrack", "ip", "mmdebstrap")
_PACKAGES: Final = "containerd runc containernetworking-plugins iptables conntrack iproute2 mmdebstrap"


class CommandError(RuntimeError):
    """A command ended badly; the text has its output."""


class Node:
    """containerd, kubelet, kube-proxy, CoreDNS and a control plane, in an enclosure of their own.

    Nothing of it is seen on the machine's own network, mounts or processes, and it ends with the process that made it.
    Pods reach each other, Services by address and name, and the API server; there is no way out.
    """

    def __init__(self, progress: Progress = print) -> None:
        _check_machine()
        self._programs = {name: program(name, progress) for name in node_commands.PROGRAMS}
        self._helm = program("helm", progress)
        self._pause = node_images.pause_image(progress)
        for left in clear_leftovers():
            progress(f"cleared what an earlier node left: {left}")
        self._resources = ExitStack()
        self.children: dict[str, Child] = {}

    def __enter__(self) -> "Node":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Up, and the node Ready."""
        atexit.register(self.stop)
        place = make_place()
        self._resources.callback(place.remove)
        self._files = files = NodeFiles(directory=place.directory, cgroup=place.cgroup)
        files.images.mkdir()
        self._resources.callback(self._bury)
        self._enclosure = self._resources.enter_context(Enclosure(place.directory, [files.images]))
        self._write_files()
        self._make_network()
        commands = node_commands.commands(files, self._programs)
        for name in ("containerd", "etcd", "kube-apiserver"):
            self._launch(name, commands.pop(name))
        self.children["kube-apiserver"].wait_ready(self._api_is_ready, READY_S)
        for name, command in commands.items():
            self._launch(name, command)
        self.load(self._pause)
        self.children["kubelet"].wait_ready(self._is_ready, READY_S)

    def stop(self) -> None:
        """Gone, with every trace."""
        atexit.unregister(self.stop)
        self._resources.close()

    @property
    def directory(self) -> Path:
        """Where its state and its logs are, while it runs."""
        return self._files.directory

    def load(self, archive: Path) -> None:
        """Import an image archive, of the kind that `docker save` writes."""
        self._ctr("images", "import", str(archive))

    def kill_container(self, container_id: str) -> None:
        """SIGKILL for a container's first process. The id is as in a pod's status, containerd://..."""
        self._ctr("tasks", "kill", "--signal", "SIGKILL", container_id.removeprefix("containerd://"))

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = COMMAND_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as administrator."""
        return self._run([self._programs["kubectl"], *arguments], stdin, check, timeout_s)

    def helm(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = COMMAND_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run helm as administrator."""
        return self._run([self._helm, *arguments], stdin, check, timeout_s)

    def logs(self, lines: int = 15) -> str:
        """The ends of its parts' logs."""
        return "\n".join(f"--- {name}\n{child.tail(lines)}" for name, child in self.children.items())

    def _ctr(self, *arguments: str) -> None:
        command = self._enclosure.inside(["ctr", "--namespace", "k8s.io", *arguments])
        _finish(command, subprocess.run(command, capture_output=True, text=True, check=False, timeout=LOAD_S))

    def _run(
        self, command: list[str | Path], stdin: str | None, check: bool, timeout_s: float
    ) -> "subprocess.CompletedProcess[str]":
        """A client inside. Its caches stay with the node: nothing is read from or written to the user's own folders."""
        home = str(self._files.directory)
        env = os.environ | {"KUBECONFIG": str(self._files.path("kubeconfig")), "HOME": home}
        result = subprocess.run(
            self._enclosure.inside(command, network_only=True),
            input=stdin,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if check:
            _finish([str(part) for part in command], result)
        return result

    def _write_files(self) -> None:
        """What the parts read, but for the kubeconfig: its CA is not there yet."""
        self._token = secrets.token_hex(16)
        write_keys(self._files.directory, self._token)
        for name, text in self._files.texts().items():
            self._files.path(name).parent.mkdir(exist_ok=True)
            self._files.path(name).write_text(text, encoding="utf-8")

    def _make_network(self) -> None:
        """The node's own address, on the bridge that its pods hang on."""
        run = self._enclosure.run
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{HOST}/{PREFIX_LENGTH}", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def _launch(self, name: str, command: list[str | Path]) -> None:
        child = Child(name, self._enclosure.inside(command), self._files.path(f"{name}.log"))
        self.children[name] = child
        child.start()

    def _bury(self) -> None:
        """What stood outside for each part has nothing left to wait for."""
        for child in self.children.values():
            child.kill()

    def _api_is_ready(self) -> bool:
        ca_file = self._files.path("certs") / "apiserver.crt"
        if not ca_file.exists() or not self.children["etcd"].is_running:
            return False
        write_kubeconfig(self._files.path("kubeconfig"), f"https://{HOST}:{API_PORT}", ca_file, self._token)
        return not self.kubectl("get", "--raw=/readyz", check=False).returncode

    def _is_ready(self) -> bool:
        for child in self.children.values():
            if not child.is_running:
                raise StartError(f"{child.name} ended at its start:\n{child.tail()}")
        wait = ("wait", "--for=condition=Ready", f"node/{NAME}", "--timeout=1s")
        return not self.kubectl(*wait, check=False).returncode


def _check_machine() -> None:
    """MissingError says what is missing, before anything is built."""
    if os.geteuid() != 0:
        raise MissingError("a node needs root: it makes namespaces, mounts and cgroups")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if not (CNI_PLUGINS / "bridge").exists():
        missing.append(str(CNI_PLUGINS / "bridge"))
    if missing:
        raise MissingError(f"a node needs {', '.join(missing)}: apt-get install {_PACKAGES}")


def _finish(command: list[str], result: "subprocess.CompletedProcess[str]") -> None:
    if result.returncode:
        shown = " ".join(command)
        raise CommandError(f"`{shown}` ended with {result.returncode}:\n{result.stdout}{result.stderr}")
