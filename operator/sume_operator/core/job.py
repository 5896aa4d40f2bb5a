"""What can be asked of Sume about a job, and what can come back. Values only.

A call that fails is an answer like any other: every way it can fail has a reply type here, and `settle` says what it
means. Source of the contract: the Sume API as described in operator/README.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# --- what can be asked -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """GET /jobs/{id}/status."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """GET /jobs/{id}/result."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """POST /jobs/{id}/cancel."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """POST to one of the three entry points. It makes a job, and so spends money; the key makes asking twice harmless.

    `endpoint`: VideoRouter, ImageRouter or ModelRuns. `arguments` are the model's own, sent as they are.
    """

    endpoint: str
    model: str
    idempotency_key: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)


JobCall = Check | Collect | Cancel
Call = JobCall | Submit

# --- what can come back ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job failed, in Sume's words."""

    code: str | None = None
    message: str | None = None
    public_reason: str | None = None
    request_id: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a job cost. `amount` is a decimal string in `currency`."""

    state: str | None = None
    amount: str | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A 2xx to Check that says something. `word` is Sume's own, trimmed; `terminal` only if it was a real bool."""

    word: str | None
    terminal: bool | None = None
    next_poll_s: float | None = None
    error: JobError | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One output as a result names it; `url` may be signed, so it is never part of the repr."""

    url: str
    kind: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Found(kind={self.kind!r}, content_type={self.content_type!r}, url=…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """A 2xx to Collect. `found` may be empty."""

    found: tuple[Found, ...] = ()
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAccepted:
    """A 2xx to Cancel. It is best effort: only the next Check tells the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A 2xx to Submit that names a job. `replayed`: the key had made that job before."""

    job_id: str
    replayed: bool = False
    word: str | None = None
    next_poll_s: float | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A 4xx with Sume's own error body: it understood, and says no (400, 402, 409, 422 ...).

    `retryable` is Sume's own word on whether asking again is of use; on a Submit it wins over the HTTP status.
    """

    http_status: int
    code: str | None = None
    message: str | None = None
    retryable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUnknown:
    """404 or 410 with Sume's own error body; a bare or HTML 404 is Trouble instead."""

    http_status: int = 404
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unauthorized:
    """401: the key is missing, malformed or revoked."""

    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """403: the key may not see this job."""

    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """429. `retry_after_s` is what the header asked for, if it made sense."""

    retry_after_s: float | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """No answer, or 408 or 5xx. `was_sent`: whether it may have been acted upon all the same."""

    detail: str
    retry_after_s: float | None = None
    was_sent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """An answer that makes no sense: HTML, half of a JSON, wrong types, neither a status word nor `terminal`."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing was sent: the key itself has to wait, for all its renders. `reason` is of the condition Synced."""

    reason: str
    retry_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Nothing was sent: the key's budget of requests is spent for now. No trouble, only a matter of order."""

    retry_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSlot:
    """Nothing was sent: all slots of the key are taken. `ahead`: how many wait before it; None: not known now."""

    ahead: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCredentials:
    """Nothing was sent: there is no key to send it with. `reason` is of the condition Accepted."""

    reason: str
    message: str


Reply = (
    JobStatus
    | JobResult
    | CancelAccepted
    | Submitted
    | Refusal
    | JobUnknown
    | Unauthorized
    | Forbidden
    | RateLimited
    | Unavailable
    | Malformed
    | Held
    | Spent
    | NoSlot
    | NoCredentials
)
