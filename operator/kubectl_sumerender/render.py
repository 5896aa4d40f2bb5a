"""A render as the verbs see it: a small frozen value, read tolerantly (ten thousand of them are held at once)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_sumerender import RETRY_OF

PENDING: Final = "Pending"
STATES: Final = ("Pending", "Queued", "Processing", "Completed", "Failed", "Canceled", "Unknown")
AT_SUME: Final = frozenset({"Queued", "Processing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """What most verbs need to know. Times are RFC 3339 texts as Kubernetes wrote them, empty where there is none."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: str = ""
    state: str = PENDING
    reason: str = ""  # of condition Succeeded: why it waits, or how it ended
    succeeded: str = "Unknown"  # True, False, Unknown
    terminal: bool = False
    message: str = ""
    job: str = ""
    model: str = ""
    started: str = ""
    ended: str = ""
    suspended: bool = False
    canceled: bool = False  # cancel was asked for
    follows: bool = False  # spec.jobID: somebody else made the job
    deleting: bool = False
    retry_of: str = ""

    @property
    def ref(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_success(self) -> bool:
        """Ended, and well."""
        return self.terminal and self.succeeded == "True"


def read_render(body: Mapping[str, Any]) -> Render:
    """An object of the API -> the value. Whatever is missing or of a wrong type reads as not there."""
    metadata, spec, status = (_mapping(body.get(part)) for part in ("metadata", "spec", "status"))
    outcome = condition(body, "Succeeded")
    return Render(
        namespace=_text(metadata, "namespace"),
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        resource_version=_text(metadata, "resourceVersion"),
        created=_text(metadata, "creationTimestamp"),
        state=_text(status, "state") or PENDING,
        reason=_text(outcome, "reason"),
        succeeded=_text(outcome, "status") or "Unknown",
        terminal=status.get("terminal") is True,
        message=_text(status, "message"),
        job=_text(status, "jobID") or _text(spec, "jobID"),
        model=_text(_mapping(spec.get("request")), "model"),
        started=_text(status, "startTime"),
        ended=_text(status, "completionTime"),
        suspended=spec.get("suspend") is True,
        canceled=spec.get("cancel") is True,
        follows=bool(spec.get("jobID")),
        deleting=bool(metadata.get("deletionTimestamp")),
        retry_of=_text(_mapping(metadata.get("annotations")), RETRY_OF),
    )


def condition(body: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """One condition of an object; empty if it is not set."""
    conditions = _mapping(body.get("status")).get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == kind:
            return each
    return {}


def parse_time(text: str) -> datetime | None:
    """A time of the API; None where there is none."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(mapping: Mapping[str, Any], name: str) -> str:
    value = mapping.get(name)
    return value if isinstance(value, str) else ""
