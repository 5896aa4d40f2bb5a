"""What really deletes a namespace: kube-controller-manager with its namespace controller and nothing else.

Without it a deleted namespace stays Terminating for ever, with everything that is in it.
"""

from pathlib import Path
from types import TracebackType
from typing import Final

from controlplane.answering import answers
from controlplane.cluster import ControlPlane
from controlplane.processes import Child, free_port
from controlplane.programs import program

READY_S: Final = 30.0


class NamespaceController:
    """Runs beside `control_plane`, and ends with it at the latest."""

    def __init__(self, control_plane: ControlPlane, executable: Path | None = None) -> None:
        directory = control_plane.directory
        self._kubeconfig = control_plane.kubeconfig
        self._port = free_port()
        self._certs = directory / "namespace-controller"
        command = self._command(executable or program("kube-controller-manager"))
        self.process = Child("kube-controller-manager", command, directory / "kube-controller-manager.log")
        control_plane.accompanied_by(self.process)

    def __enter__(self) -> "NamespaceController":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Up and healthy; the control plane must be ready."""
        self.process.start()
        self.process.wait_ready(self._is_healthy, READY_S)

    def stop(self) -> None:
        """Down; namespaces that are being deleted stay as they are."""
        self.process.stop()

    def _is_healthy(self) -> bool:
        return answers(f"https://127.0.0.1:{self._port}/healthz", {}, self._certs / "kube-controller-manager.crt")

    def _command(self, executable: Path) -> list[str | Path]:
        return [
            executable,
            f"--kubeconfig={self._kubeconfig}",
            "--controllers=namespace-controller",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self._certs}",
        ]
