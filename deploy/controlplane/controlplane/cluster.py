"""etcd and kube-apiserver as one thing: started, stopped, restarted, hung and killed."""

import atexit
import base64
import secrets
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import yaml

from controlplane.answering import answers
from controlplane.golang import MissingError
from controlplane.processes import Child, StartError, free_port, wait_until
from controlplane.programs import Binaries

READY_S: Final = 60.0
KUBECTL_S: Final = 40.0
PUBLISHED_S: Final = 15.0
_KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: embedded
contexts: [{{name: embedded, context: {{cluster: embedded, user: admin}}}}]
clusters: [{{name: embedded, cluster: {{server: "{url}", certificate-authority-data: "{ca}"}}}}]
users: [{{name: admin, user: {{token: "{token}"}}}}]
"""
_AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


class ControlPlane:
    """A control plane in `directory`, with RBAC on and one administrator. Ports stay the same over restarts.

    `audited`: each call is a JSON line in `audit_log`, with who made it and how it was answered.
    """

    def __init__(self, directory: Path, programs: Binaries, *, audited: bool = False) -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self.token = secrets.token_hex(16)
        self._programs = programs
        self._etcd_port, self._etcd_http_port, self._peer_port, self._port = (free_port() for _ in range(4))
        self.url = f"https://127.0.0.1:{self._port}"
        self.audit_log = directory / "audit.log"
        self._audited = audited
        self.ca_file = directory / "certs" / "apiserver.crt"
        self.etcd = Child("etcd", self._etcd_command(), directory / "etcd.log")
        self.apiserver = Child("kube-apiserver", self._apiserver_command(), directory / "kube-apiserver.log")
        self._companions: list[Child] = []

    def __enter__(self) -> "ControlPlane":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Up and ready, with the kubeconfig written."""
        atexit.register(self.stop)
        write_keys(self.directory, self.token)
        if self._audited:
            (self.directory / "audit.yaml").write_text(_AUDIT_POLICY, encoding="utf-8")
        try:
            self.etcd.start()
            # Waited for by itself: the API server would only say, much later, that it found no etcd.
            self.etcd.wait_ready(self._etcd_is_ready, READY_S)
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise
        write_kubeconfig(self.kubeconfig, self.url, self.ca_file, self.token)

    def stop(self) -> None:
        """Down, and who needs it too. The API server before etcd: without its etcd it does not end on SIGTERM."""
        atexit.unregister(self.stop)
        for companion in self._companions:
            companion.stop()
        self.apiserver.stop()
        self.etcd.stop()

    def accompanied_by(self, companion: Child) -> None:
        """A program that makes no sense without this control plane: it ends with it."""
        self._companions.append(companion)

    def start_apiserver(self) -> None:
        """Start the API server, and wait until it is ready."""
        self.apiserver.start()
        self.apiserver.wait_ready(self.is_ready, READY_S)

    def restart_apiserver(self) -> None:
        """Down and up again; etcd, and so every object, stays."""
        self.apiserver.stop()
        self.start_apiserver()

    def is_ready(self) -> bool:
        """Whether the API server says so."""
        return answers(f"{self.url}/readyz", {"Authorization": f"Bearer {self.token}"}, self.ca_file)

    def _etcd_is_ready(self) -> bool:
        return answers(f"http://127.0.0.1:{self._etcd_http_port}/health", {})

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = KUBECTL_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as administrator; with `check`, CalledProcessError carries its output."""
        return subprocess.run(
            self.kubectl_command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=check,
            timeout=timeout_s,
        )

    def kubectl_command(self, *arguments: str) -> list[str]:
        """The command line of `kubectl`."""
        return [str(self._programs.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]

    def apply_crd(self, path: Path) -> None:
        """Apply a CRD and wait until it is served, and published in the server's OpenAPI a moment later."""
        self.kubectl("apply", "-f", str(path))
        established = ("wait", "--for=condition=Established", "--timeout=30s", "-f", str(path))
        # On a CRD that has no conditions at all yet, `kubectl wait` fails at once.
        if not wait_until(lambda: not self.kubectl(*established, check=False).returncode, timeout_s=PUBLISHED_S):
            raise StartError(f"{path.name} was not established within {PUBLISHED_S:.0f} s")
        plural = self.kubectl("get", "-f", str(path), "-o", "jsonpath={.spec.names.plural}").stdout
        if not wait_until(lambda: not self.kubectl("explain", plural, check=False).returncode, timeout_s=PUBLISHED_S):
            raise StartError(f"{plural} did not appear in the API server's OpenAPI within {PUBLISHED_S:.0f} s")

    def _etcd_command(self) -> list[str | Path]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            self._programs.etcd,
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            # On one port with gRPC it can starve the streams of the API server.
            f"--listen-client-http-urls=http://127.0.0.1:{self._etcd_http_port}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_command(self) -> list[str | Path]:
        return [
            self._programs.kube_apiserver,
            *apiserver_options(self.directory),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            *(self._audit_options() if self._audited else ()),
        ]

    def _audit_options(self) -> list[str]:
        return [f"--audit-policy-file={self.directory / 'audit.yaml'}", f"--audit-log-path={self.audit_log}"]


def apiserver_options(directory: Path) -> list[str]:
    """The options of every API server of ours: its keys and users in `directory`, RBAC on."""
    key = directory / "sa.key"
    return [
        f"--cert-dir={directory / 'certs'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={directory / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
    ]


def write_keys(directory: Path, token: str) -> None:
    """The key of ServiceAccount tokens, and the one administrator."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(
            ["openssl", "genrsa", "-out", str(directory / "sa.key"), "2048"], check=True, capture_output=True
        )
    except FileNotFoundError:
        raise MissingError("openssl is needed on PATH (it makes the API server's key)") from None
    (directory / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n', encoding="utf-8")


def write_kubeconfig(target: Path, url: str, ca_file: Path, token: str) -> None:
    """The administrator's way in. The API server's own certificate is the CA."""
    text = _KUBECONFIG.format(url=url, ca=_base64(ca_file.read_bytes()), token=token)
    target.write_text(text, encoding="utf-8")
    target.chmod(0o600)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def as_user(kubeconfig: Path, target: Path, token: str, namespace: str = "default") -> Path:
    """A copy of `kubeconfig` with another user's token, and the namespace it is in."""
    loaded: Any = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    loaded["users"][0]["user"] = {"token": token}
    loaded["contexts"][0]["context"]["namespace"] = namespace
    target.write_text(yaml.safe_dump(loaded), encoding="utf-8")
    return target
