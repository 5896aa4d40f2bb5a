"""A Kubernetes and a Redis of one's own, for tests, the demo and the benchmarks: a control plane, or a whole node."""

from controlplane.cluster import ControlPlane
from controlplane.golang import MissingError
from controlplane.namespace_controller import NamespaceController
from controlplane.node import CommandError, Node
from controlplane.processes import Child, StartError, free_port
from controlplane.programs import Binaries, binaries, program
from controlplane.redis_server import RedisServer

__all__ = [
    "Binaries",
    "Child",
    "CommandError",
    "ControlPlane",
    "MissingError",
    "NamespaceController",
    "Node",
    "RedisServer",
    "StartError",
    "binaries",
    "free_port",
    "program",
]
