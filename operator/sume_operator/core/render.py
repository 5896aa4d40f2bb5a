"""One SumeRender as a frozen value: its identity, what its owner asked for, and what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sume_operator.core.status import Status, parse_status, parse_time

GROUP = "render.sume.com"
VERSION = "v1alpha1"
PLURAL = "sumerenders"
KIND = "SumeRender"
FINALIZER = f"{GROUP}/cancel"
POLL_REQUESTED_AT = f"{GROUP}/poll-requested-at"
IDEMPOTENCY_KEY = f"{GROUP}/idempotency-key"
JOB_ID = f"{GROUP}/job-id"
MAX_POLL_REQUEST_CHARS = 128


class MalformedObjectError(ValueError):
    """The API server's object is not a SumeRender as the schema has it."""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Which object, and which incarnation of it: the uid keeps a re-created object from its forerunner's alarm."""

    namespace: str
    name: str
    uid: str

    @property
    def member(self) -> str:
        """As it stands in the sorted set: `namespace/name/uid`."""
        return f"{self.namespace}/{self.name}/{self.uid}"

    @classmethod
    def parse(cls, member: str) -> "Ref | None":
        """The inverse of `member`; None for what is no Ref."""
        parts = member.split("/")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """Where the API key of a render is kept; the Secret is in the render's own namespace."""

    name: str
    key: str = "apiKey"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The job to ask Sume for. `arguments` are the model's own."""

    model: str
    endpoint: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    idempotency_key: str | None = None

    @property
    def entry_point(self) -> str:
        """Which of Sume's entry points takes it."""
        return self.endpoint or ("ModelRuns" if "/" in self.model else "VideoRouter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """One SumeRender. Times are in UTC; `poll_request` is the annotation's value, cut as it is echoed."""

    ref: Ref
    resource_version: str = ""
    generation: int = 1
    creation_time: datetime | None = None
    deletion_time: datetime | None = None
    finalizers: tuple[str, ...] = ()
    poll_request: str | None = None
    # what an earlier turn noted on the object itself, and a backup keeps
    noted_key: str | None = None
    noted_job_id: str | None = None
    # what its owner asked for
    followed_job_id: str | None = None
    request: Request | None = None
    priority: int = 0
    backoff_limit: int = 0
    suspend: bool = False
    cancel: bool = False
    active_deadline_s: int | None = None
    ttl_after_finished_s: int | None = None
    deletion_policy: str | None = None
    credentials: SecretRef | None = None
    # what is known
    status: Status = field(default_factory=Status)

    @property
    def job_id(self) -> str | None:
        """The job at Sume, once there is one. A noted one counts where an object was restored without its status."""
        noted = None if self.noted_job_id in self.status.failed_job_ids else self.noted_job_id
        return self.status.job_id or self.followed_job_id or noted

    @property
    def base_key(self) -> str:
        """What makes asking Sume twice harmless: the owner's key, or the one noted, or the uid."""
        own = self.request.idempotency_key if self.request else None
        return own or self.noted_key or self.ref.uid

    @property
    def idempotency_key(self) -> str:
        """The key for the next request: that of the n-th retry is `KEY/n`."""
        retries = len(self.status.failed_job_ids)
        return f"{self.base_key}/{retries}" if retries else self.base_key

    @property
    def is_being_submitted(self) -> bool:
        """Whether Sume may have made a job whose id is not known here. Submitted=False says that it has not."""
        if self.request is None or self.job_id is not None:
            return False
        submission, submitted = self.status.submission, self.status.condition("Submitted")
        asked = self.noted_key is not None or (submission is not None and submission.attempts > 0)
        return asked and (submitted is None or submitted.status != "False")

    @property
    def deletion_cancels(self) -> bool:
        """Whether deleting this object cancels a job that still runs."""
        return (self.deletion_policy or ("Orphan" if self.followed_job_id else "Cancel")) == "Cancel"

    @property
    def has_finalizer(self) -> bool:
        """Whether the object cannot go before we let it."""
        return FINALIZER in self.finalizers

    @property
    def is_observed(self) -> bool:
        """Whether the status speaks of this very spec and poll request."""
        status = self.status
        return self.generation == status.observed_generation and self.poll_request in (
            None,
            status.last_handled_poll_request,
        )

    def with_status(self, status: Status) -> "Render":
        """The same object with another status."""
        return replace(self, status=status)


def ref_of(body: Mapping[str, Any]) -> Ref:
    """The identity of an object; MalformedObjectError where it has none."""
    try:
        metadata = body["metadata"]
        return Ref(metadata["namespace"], metadata["name"], metadata["uid"])
    except (KeyError, TypeError) as error:
        raise MalformedObjectError(f"object without {error}") from error


def parse_render(body: Mapping[str, Any]) -> Render:
    """An object as the API server sends it -> Render; MalformedObjectError where that cannot be."""
    ref = ref_of(body)
    try:
        metadata, spec = body["metadata"], body.get("spec") or {}
        annotations = metadata.get("annotations") or {}
        poll_request = annotations.get(POLL_REQUESTED_AT)
        secret = spec.get("credentialsSecretRef")
        return Render(
            ref=ref,
            resource_version=metadata.get("resourceVersion") or "",
            generation=int(metadata.get("generation") or 1),
            creation_time=parse_time(metadata.get("creationTimestamp")),
            deletion_time=parse_time(metadata.get("deletionTimestamp")),
            finalizers=tuple(metadata.get("finalizers") or ()),
            poll_request=poll_request[:MAX_POLL_REQUEST_CHARS] if poll_request else None,
            noted_key=own_note(ref, annotations.get(IDEMPOTENCY_KEY)),
            noted_job_id=own_note(ref, annotations.get(JOB_ID)),
            followed_job_id=spec.get("jobID"),
            request=_parse_request(spec.get("request")),
            priority=int(spec.get("priority") or 0),
            backoff_limit=int(spec.get("backoffLimit") or 0),
            suspend=bool(spec.get("suspend")),
            cancel=bool(spec.get("cancel")),
            active_deadline_s=spec.get("activeDeadlineSeconds"),
            ttl_after_finished_s=spec.get("ttlSecondsAfterFinished"),
            deletion_policy=spec.get("deletionPolicy"),
            credentials=SecretRef(name=secret["name"], key=secret.get("key") or "apiKey") if secret else None,
            status=parse_status(body.get("status") or {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedObjectError(f"{ref}: {error}") from error


def note_of(ref: Ref, value: str) -> str:
    """A value as an annotation holds it: with the object's name, so that a copy under another name is not misled."""
    return f"{ref.namespace}/{ref.name}/{value}"


def own_note(ref: Ref, annotation: str | None) -> str | None:
    """The inverse of note_of; None where the annotation is missing, or speaks of another object."""
    prefix = f"{ref.namespace}/{ref.name}/"
    if not annotation or not annotation.startswith(prefix):
        return None
    return annotation.removeprefix(prefix) or None


def _parse_request(body: Mapping[str, Any] | None) -> Request | None:
    if body is None:
        return None
    return Request(
        model=body["model"],
        endpoint=body.get("endpoint"),
        arguments=dict(body.get("arguments") or {}),
        idempotency_key=body.get("idempotencyKey"),
    )
