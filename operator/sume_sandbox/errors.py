"""Sume's error answers, each with the code, the wording and the HTTP status the API has for it."""

import itertools
from collections.abc import Mapping
from typing import Any

from sume_sandbox import digest
from sume_sandbox.answer import Answer, json_answer, text_answer
from sume_sandbox.states import JobState

_traces = itertools.count(1)


def unauthorized() -> Answer:
    """The key is missing, malformed or not accepted."""
    return _error(401, "unauthorized", "The API key is missing or not valid.", headers={"www-authenticate": "Bearer"})


def bad_request(message: str) -> Answer:
    """The body of a submission is not a JSON object."""
    return _error(400, "bad_request", message, retryable=False)


def invalid_model(http_status: int, message: str) -> Answer:
    """There is no such model (422), or none was named (400)."""
    details = {"errors": [{"path": "model", "message": message}]}
    return _error(http_status, "invalid_request", "The request is not valid.", details=details, retryable=False)


def insufficient_credits() -> Answer:
    """The workspace has to pay first."""
    return _error(402, "insufficient_credits", "The workspace has not enough credits.")


def workspace_full(retry_after_s: int) -> Answer:
    """All slots of the workspace are taken. No source says what Sume's own code for it is."""
    message = "The workspace has no free slot for another job."
    headers = {"retry-after": str(retry_after_s)}
    return _error(429, "workspace_queue_full", message, retryable=True, headers=headers)


def rate_limited(retry_after_s: int) -> Answer:
    """The workspace has read too often."""
    headers = {"retry-after": str(retry_after_s)}
    return _error(429, "rate_limit_exceeded", "Too many reads for this key.", retryable=True, headers=headers)


def job_not_found() -> Answer:
    """Sume never heard of that job."""
    return _error(404, "job_not_found", "There is no such job.")


def job_not_completed(state: JobState | None) -> Answer:
    """A result was asked for that does not exist, or not yet."""
    details = {"status": state} if state else None
    return _error(409, "job_not_completed", "This job has no result yet.", details=details)


def result_gone() -> Answer:
    """The job completed, but its result is no longer kept."""
    return _error(410, "result_expired", "The result of this job is no longer kept.")


def no_such_file() -> Answer:
    """A file that no completed job made, as a file store says it."""
    return text_answer(404, "There is no such file.")


def link_expired() -> Answer:
    """The address of a file is not signed, not for this file, or too old; as a file store says it."""
    return text_answer(403, "The address has expired, or its signature is wrong.")


def generation_already_started() -> Answer:
    """Cancel refused: the job runs."""
    return _error(409, "job_generation_already_started", "Generation has begun.", retryable=False)


def job_not_cancelable() -> Answer:
    """Cancel refused: the job has ended."""
    return _error(409, "job_not_cancelable", "The job has ended.", retryable=False)


def _error(
    http_status: int,
    code: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    retryable: bool | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Sume's error body. The trace id goes to one of the three places where it has been seen, in turn."""
    number = next(_traces)
    trace = f"req_{digest.fingerprint(str(number))}"
    error: dict[str, Any] = {"code": code, "message": message}
    if details is not None:
        error["details"] = dict(details)
    if retryable is not None:
        error["retryable"] = retryable
    body: dict[str, Any] = {"error": error}
    place = number % 3
    if place == 0:
        error["request_id"] = trace
    elif place == 1:
        body["request_id"] = trace
    traced = {"x-sume-request-id": trace} if place == 2 else {}
    return json_answer(http_status, body, {**traced, **(headers or {})})
