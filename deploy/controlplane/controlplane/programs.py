"""etcd, kube-apiserver and their kin: from KUBEBUILDER_ASSETS, else built once from the pinned modules beside this."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane.golang import MissingError, Progress, build, cache_folder, find_go, go_version, locked

MODULES_DIR: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A go.mod: its folder, the requirement whose version names the cache, and the version stamp of its programs."""

    folder: Path
    versioned: str
    stamp: str

    @property
    def version(self) -> str:
        """As pinned in go.mod, such as v1.34.4."""
        text = (self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^\s*{re.escape(self.versioned)} (v\S+)", text, re.M)
        if found is None:
            raise MissingError(f"{self.folder / 'go.mod'} names no version of {self.versioned}")
        return found.group(1)

    def flags(self) -> str:
        """Without these flags a server calls itself v0.0.0, and clients mistrust it."""
        major, minor = self.version.lstrip("v").split(".")[:2]
        return self.stamp.format(version=self.version, major=major, minor=minor)


_GIT: Final = "k8s.io/component-base/version.git"
_KUBERNETES: Final = _Module(
    folder=MODULES_DIR,
    versioned="k8s.io/kubernetes",
    stamp=f"-X {_GIT}Version={{version}} -X {_GIT}Major={{major}} -X {_GIT}Minor={{minor}}",
)
_HELM_CHARTS: Final = "-X helm.sh/helm/v3/pkg/chartutil.k8sVersion"
_HELM: Final = _Module(
    folder=MODULES_DIR / "helm",
    versioned="helm.sh/helm/v3",
    # What a chart is rendered for where no cluster is asked: else Kubernetes 1.20.
    stamp=f"-X helm.sh/helm/v3/internal/version.version={{version}} {_HELM_CHARTS}Major=1 {_HELM_CHARTS}Minor=34",
)
_DNS: Final = _Module(folder=MODULES_DIR / "dns", versioned="github.com/coredns/coredns", stamp="")

# Name -> module, package, and how long a first build takes on two cores, downloads included.
_TOOLS: Final[dict[str, tuple[_Module, str, str]]] = {
    "etcd": (_KUBERNETES, "go.etcd.io/etcd/server/v3", "2 min"),
    "kubectl": (_KUBERNETES, "k8s.io/kubernetes/cmd/kubectl", "3 min"),
    "kube-apiserver": (_KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", "4 min"),
    "kube-controller-manager": (_KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager", "2 min"),
    "kube-scheduler": (_KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler", "1 min"),
    "kube-proxy": (_KUBERNETES, "k8s.io/kubernetes/cmd/kube-proxy", "1 min"),
    "kubelet": (_KUBERNETES, "k8s.io/kubernetes/cmd/kubelet", "2 min"),
    "helm": (_HELM, "helm.sh/helm/v3/cmd/helm", "2 min"),
    "coredns": (_DNS, "github.com/coredns/coredns", "2 min"),
}
_CONTROL_PLANE: Final = ("etcd", "kubectl", "kube-apiserver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Paths of the three programs of every control plane."""

    etcd: Path
    kube_apiserver: Path
    kubectl: Path


def binaries(progress: Progress = print) -> Binaries:
    """The programs of a control plane, built if need be. `progress` is told a line now and then.

    MissingError says what is missing.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        missing = [name for name in _CONTROL_PLANE if not os.access(Path(assets) / name, os.X_OK)]
        if missing:
            raise MissingError(f"KUBEBUILDER_ASSETS ({assets}) lacks {', '.join(missing)}")
    etcd, kubectl, apiserver = (program(name, progress) for name in _CONTROL_PLANE)
    return Binaries(etcd=etcd, kube_apiserver=apiserver, kubectl=kubectl)


def program(name: str, progress: Progress = print) -> Path:
    """One of the pinned programs by name: of KUBEBUILDER_ASSETS if it is there, else built if need be."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and os.access(Path(assets) / name, os.X_OK):
        return Path(assets) / name
    module, package, usual = _TOOLS[name]
    go = find_go(progress)
    folder = cache_folder() / ("controlplane" if module is _KUBERNETES else name) / _version_key(module, go)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with locked(folder / ".lock"):
        if not target.exists():
            progress(f"building {name} (about {usual} the first time)")
            build(go, module.folder, package, module.flags(), target, progress)
    return target


def kubernetes_version() -> str:
    """Of the control plane, as pinned in go.mod, such as v1.34.4."""
    return _KUBERNETES.version


def _version_key(module: _Module, go: str) -> str:
    built_from = (module.folder / "go.sum").read_bytes() + go_version(go).encode() + module.stamp.encode()
    digest = hashlib.sha256(built_from).hexdigest()
    return f"{module.version}-{digest[:12]}"
