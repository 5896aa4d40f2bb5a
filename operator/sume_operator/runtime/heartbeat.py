"""Renews a coordination Lease, so that others can tell that the controller lives. Nothing depends on it in here."""

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final

from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.kubernetes_errors import ClusterError

log = logging.getLogger(__name__)

LEASE_NAME: Final = "sume-operator-controller"
RENEW_EVERY_S: Final = 10.0
DURATION_S: Final = 40


class Heartbeat:
    """A thread of its own; a Lease that cannot be written is said once, and tried again."""

    def __init__(self, cluster: Cluster, namespace: str, holder: str, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._holder = holder
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """No further beat."""
        self._stopping.set()

    def _run(self) -> None:
        complained, wait_s = False, 0.0
        while not self._stopping.wait(wait_s):
            wait_s = RENEW_EVERY_S
            try:
                self._cluster.renew_lease(self._namespace, LEASE_NAME, self._holder, self._clock(), DURATION_S)
                complained = False
            except ClusterError as error:
                if not complained:
                    log.warning("the Lease %s/%s could not be renewed: %s", self._namespace, LEASE_NAME, error)
                complained = True
