"""The command lines of a node's parts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controlplane.cluster import apiserver_options
from controlplane.node_config import API_PORT, ETCD_PORT, HOST, NAME, PODS, NodeFiles

Command = list[str | Path]
Programs = Mapping[str, Path]
PROGRAMS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "coredns",
    "kubectl",
)
_NO_LEADER: Final = ("--leader-elect=false", "--bind-address=127.0.0.1")


def commands(files: NodeFiles, programs: Programs) -> dict[str, Command]:
    """Name -> command line of each part, in the order in which they are started."""
    return {
        "containerd": _containerd(files),
        "etcd": _etcd(files, programs),
        "kube-apiserver": _apiserver(files, programs),
        "kube-controller-manager": _controller_manager(files, programs),
        "kube-scheduler": _scheduler(files, programs),
        "kube-proxy": _kube_proxy(files, programs),
        "coredns": _coredns(files, programs),
        "kubelet": _kubelet(files, programs),
    }


def _etcd(files: NodeFiles, programs: Programs) -> Command:
    """Keeps nothing that matters after the end."""
    return [programs["etcd"], f"--data-dir={files.path('etcd')}", "--unsafe-no-fsync", "--log-level=warn"]


def _apiserver(files: NodeFiles, programs: Programs) -> Command:
    """Reached by pods too, so on the node's address, with ServiceAccounts admitted."""
    return [
        programs["kube-apiserver"],
        *apiserver_options(files.directory),
        f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
        "--bind-address=0.0.0.0",
        f"--secure-port={API_PORT}",
        f"--advertise-address={HOST}",
        "--allow-privileged=true",
    ]


def _controller_manager(files: NodeFiles, programs: Programs) -> Command:
    """Everything but what hands out pod addresses: the bridge does."""
    return [
        programs["kube-controller-manager"],
        _kubeconfig(files),
        f"--service-account-private-key-file={files.path('sa.key')}",
        f"--root-ca-file={files.path('certs') / 'apiserver.crt'}",
        "--use-service-account-credentials=true",
        "--controllers=*,-nodeipam",
        *_NO_LEADER,
    ]


def _scheduler(files: NodeFiles, programs: Programs) -> Command:
    """With its defaults."""
    return [programs["kube-scheduler"], _kubeconfig(files), *_NO_LEADER]


def _containerd(files: NodeFiles) -> Command:
    """Of the distribution."""
    return ["containerd", "--config", files.path("containerd.toml")]


def _kubelet(files: NodeFiles, programs: Programs) -> Command:
    """The only node."""
    return [
        programs["kubelet"],
        _kubeconfig(files),
        f"--config={files.path('kubelet.json')}",
        f"--root-dir={files.path('kubelet')}",
        f"--cert-dir={files.path('kubelet-certs')}",
        f"--volume-plugin-dir={files.path('kubelet-plugins')}",
        f"--hostname-override={NAME}",
        f"--node-ip={HOST}",
    ]


def _kube_proxy(files: NodeFiles, programs: Programs) -> Command:
    """Services as iptables rules. It must not touch the limits of connection tracking, which are the machine's."""
    return [
        programs["kube-proxy"],
        _kubeconfig(files),
        "--proxy-mode=iptables",
        f"--hostname-override={NAME}",
        f"--cluster-cidr={PODS}",
        f"--bind-address={HOST}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]


def _coredns(files: NodeFiles, programs: Programs) -> Command:
    """Names of Services, and of nothing else: there is no way out."""
    return [programs["coredns"], "-conf", files.path("Corefile")]


def _kubeconfig(files: NodeFiles) -> str:
    return f"--kubeconfig={files.path('kubeconfig')}"
