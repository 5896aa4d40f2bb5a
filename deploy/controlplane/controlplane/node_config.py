"""What the parts of a node are configured with. Texts only; writing files and starting things is `node`'s job."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HOST: Final = "10.88.0.1"  # the node, on the bridge that its pods hang on
PREFIX_LENGTH: Final = 24
PODS: Final = "10.88.0.0/24"
NAME: Final = "localhost"  # must resolve, also where nothing but /etc/hosts does
API_PORT: Final = 6443  # on HOST: its certificate names that, and not 127.0.0.1
ETCD_PORT: Final = 2379
BRIDGE: Final = "pods0"
CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"  # in the enclosure's own /run
CNI_PLUGINS: Final = Path("/usr/lib/cni")
PAUSE_IMAGE: Final = "localhost/pause:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """Where everything of one node lies, and the cgroup that holds its pods."""

    directory: Path
    cgroup: str

    @property
    def images(self) -> Path:
        """containerd's own folder, some hundred MB. In memory, where overlays work on every machine and go at once."""
        return self.path("containerd")

    def path(self, name: str) -> Path:
        """A file or folder of this node."""
        return self.directory / name

    def texts(self) -> dict[str, str]:
        """File name -> contents."""
        return {
            "containerd.toml": self._containerd(),
            "cni/10-pods.conflist": json.dumps(self._cni()),
            "kubelet.json": json.dumps(self._kubelet()),
            "resolv.conf": f"nameserver {HOST}\n",
            "Corefile": self._corefile(),
        }

    def _containerd(self) -> str:
        return f"""\
version = 2
root = "{self.images}"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE nobody may lower a score; runc would die of trying.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{self.path("cni")}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""

    def _cni(self) -> dict[str, Any]:
        addresses = {
            "type": "host-local",
            "subnet": PODS,
            "rangeStart": "10.88.0.10",
            "gateway": HOST,
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "/run/cni-addresses",
        }
        bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            # The machine's disk may be nearly full without this being the node's business.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "nodefs.inodesFree": "1%",
            },
            "clusterDNS": [HOST],
            "clusterDomain": "cluster.local",
            "resolvConf": str(self.path("resolv.conf")),
        }

    def _corefile(self) -> str:
        return f"""\
.:53 {{
    bind {HOST}
    kubernetes cluster.local {{
        kubeconfig {self.path("kubeconfig")} embedded
        ttl 5
    }}
    errors
}}
"""
