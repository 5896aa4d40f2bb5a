"""A Kubernetes control plane and a Redis of one's own, on 127.0.0.1: for tests, the demo and the benchmarks."""

from controlplane.cluster import ControlPlane
from controlplane.golang import MissingError
from controlplane.namespace_controller import NamespaceController
from controlplane.processes import Child, StartError, free_port
from controlplane.programs import Binaries, binaries, program
from controlplane.redis_server import RedisServer

__all__ = [
    "Binaries",
    "Child",
    "ControlPlane",
    "MissingError",
    "NamespaceController",
    "RedisServer",
    "StartError",
    "binaries",
    "free_port",
    "program",
]
