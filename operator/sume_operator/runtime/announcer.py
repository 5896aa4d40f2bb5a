"""Tells people what happened: Kubernetes Events, or the log where there may be none. Never fails a turn."""

import hashlib
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from sume_operator.adapters.cluster import Cluster, event_body
from sume_operator.adapters.kubernetes_errors import ClusterError, ConflictError
from sume_operator.core.events import Event
from sume_operator.core.render import Ref
from sume_operator.core.wording import one_line

log = logging.getLogger(__name__)

MAX_NOTE_BYTES = 1000  # the API server takes 1024
MAX_NAME_CHARS = 200


class Announcer:
    """Makes events in the name of one component and instance (a pod)."""

    def __init__(self, cluster: Cluster, component: str, instance: str) -> None:
        self._cluster = cluster
        self._component = component
        self._instance = instance

    def announce(self, ref: Ref, events: Iterable[Event], timeout_s: Callable[[], float]) -> None:
        """Make each event once; a repeat of the same transition is refused by its name, which is harmless.

        `timeout_s` is asked anew for each: a lease has less left every time, and what it raises is raised.
        """
        for event in events:
            digest = hashlib.sha256(f"{ref.uid}:{event.reason}:{event.key}".encode()).hexdigest()
            fields = {"type": event.type, "reason": event.reason, "note": _note(event.message)}
            name = f"{ref.name[:MAX_NAME_CHARS].rstrip('.-')}.{digest[:16]}"
            body = event_body(ref, name, fields, self._component, self._instance, datetime.now(UTC))
            bound_s = timeout_s()
            try:
                self._cluster.create_event(ref.namespace, body, bound_s)
            except ConflictError:
                continue
            except ClusterError as error:
                log.info("event %s of %s: %s (not recorded: %s)", event.reason, ref, fields["note"], error)


def _note(message: str) -> str:
    """On one line, and short enough in any script."""
    text = one_line(message, MAX_NOTE_BYTES)
    return text.encode()[:MAX_NOTE_BYTES].decode(errors="ignore")
