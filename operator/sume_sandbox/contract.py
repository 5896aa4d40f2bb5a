"""Sume's API without HTTP: who asks for what, and the answer to it."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sume_sandbox import errors, links
from sume_sandbox.admin_input import MediaInput
from sume_sandbox.answer import Answer, json_answer
from sume_sandbox.budget import ReadBudget
from sume_sandbox.clock import Clock
from sume_sandbox.config import SandboxConfig
from sume_sandbox.fates import Refusal, refusal_of
from sume_sandbox.job import Job
from sume_sandbox.keys import Caller
from sume_sandbox.links import Links
from sume_sandbox.media import MediaFile, media_answer
from sume_sandbox.shapes import ResultFacts, StatusFacts, cancel_body, result_body, status_body, submit_body
from sume_sandbox.states import JobState
from sume_sandbox.store import CancelOutcome, JobStore, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitCall:
    """A submission as it came in."""

    model: str | None  # from the path; None: the body names it
    kind: str
    idempotency_key: str | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The operations. Any accepted key may look at any job, so that a key can be replaced while jobs run."""

    config: SandboxConfig
    clock: Clock
    store: JobStore
    budget: ReadBudget
    links: Links

    def status(self, caller: Caller, job_id: str) -> Answer:
        """`GET /jobs/{id}/status`."""
        return self._read(caller, job_id, self._status)

    def result(self, caller: Caller, job_id: str) -> Answer:
        """`GET /jobs/{id}/result`."""
        return self._read(caller, job_id, self._result)

    def cancel(self, job_id: str) -> Answer:
        """`POST /jobs/{id}/cancel`."""
        now_s = self.clock.now_s()
        job = self.store.look(job_id, now_s)
        if job is None:
            return errors.job_not_found()
        match self.store.cancel(job, now_s):
            case CancelOutcome.CANCELED:
                return json_answer(200, cancel_body(job_id, job.shape))
            case CancelOutcome.ALREADY_STARTED:
                return errors.generation_already_started()
            case CancelOutcome.ENDED:
                return errors.job_not_cancelable()

    def media(self, job_id: str, name: str, query: Mapping[str, str], wanted: slice, if_range: str | None) -> Answer:
        """A file that a job made, or a part of it. Where the job's shape signs addresses, only by a good one."""
        now_s = self.clock.now_s()
        job = self.store.find(job_id, now_s)
        if job is None or job.state_at(now_s) is not JobState.COMPLETED:
            return errors.no_such_file()
        output = next((output for output in job.outputs if output.file_name == name), None)
        if output is None or job.fate.result_gone:
            return errors.no_such_file()
        if job.shape.signed and not links.is_good(output.url, query, now_s, self.links.round):
            return errors.link_expired()
        media = job.script.media or MediaInput()
        size_bytes = self.config.media_bytes if media.size_bytes is None else media.size_bytes
        file = MediaFile(
            job_id=job_id,
            name=name,
            size_bytes=size_bytes,
            revision=media.revision,
            content_type=output.content_type,
        )
        return media_answer(file, wanted, if_range)

    def submit(self, caller: Caller, call: SubmitCall) -> Answer:
        """`POST /video-router/generate` and its like. A replayed key is good even where a new job would be refused."""
        arguments = _arguments(call.body)
        if isinstance(arguments, Answer):
            return arguments
        model = arguments.get("model") if call.model is None else call.model
        if not isinstance(model, str) or not model.strip():
            return errors.invalid_model(400, "The name of a model is required.")
        now_s = self.clock.now_s()
        submission = Submission(
            workspace=caller.workspace, model=model, kind=call.kind, idempotency_key=call.idempotency_key
        )
        job = self.store.replay(submission, now_s)
        if job is not None:
            return self._submitted(job, now_s, replayed=True)
        match refusal_of(model):
            case Refusal.INVALID:
                return errors.invalid_model(422, "There is no such model.")
            case Refusal.NO_CREDITS:
                return errors.insufficient_credits()
        job = self.store.submit(submission, now_s)
        if job is None:
            return errors.workspace_full(max(1, math.ceil(self.config.next_poll_s)))
        return self._submitted(job, now_s, replayed=False)

    def _submitted(self, job: Job, now_s: float, *, replayed: bool) -> Answer:
        word = job.state_at(now_s) or JobState.QUEUED
        body = submit_body(job.job_id, word, replayed=replayed, shape=job.shape)
        return replace(json_answer(200 if replayed else 202, body), job_id=job.job_id)

    def _read(self, caller: Caller, job_id: str, read: Callable[[Job, float], Answer]) -> Answer:
        now_s = self.clock.now_s()
        allowance = self.budget.take(caller.workspace, now_s)
        if allowance is not None and not allowance.granted:
            answer = errors.rate_limited(allowance.reset_s)
        else:
            job = self.store.look(job_id, now_s)
            answer = errors.job_not_found() if job is None else read(job, now_s)
        if allowance is None:
            return answer
        return replace(answer, headers={**answer.headers, **allowance.headers})

    def _status(self, job: Job, now_s: float) -> Answer:
        entry = job.next_entry()
        if entry is not None and entry.status is None:
            return replace(entry.raw_answer(), delay_s=entry.delay_s, drop=entry.drop)
        state = job.state_at(now_s)
        ended = job.ended_at(now_s)
        next_poll_s: float | str | None = None if ended else self.config.next_poll_s or None
        if entry is not None and entry.given("next_poll_after_seconds"):
            next_poll_s = entry.next_poll_after_seconds
        facts = StatusFacts(
            job_id=job.job_id,
            word=state or "" if entry is None else entry.status or "",
            ended=ended,
            terminal=None if entry is None else entry.terminal,
            next_poll_s=next_poll_s,
            model=job.model,
            kind=job.fate.kind,
            error=job.error if state is JobState.FAILED else None,
        )
        body = status_body(facts, job.shape)
        if entry is None:
            return json_answer(200, body)
        return replace(json_answer(200, body, entry.headers), delay_s=entry.delay_s)

    def _result(self, job: Job, now_s: float) -> Answer:
        state = job.state_at(now_s)
        if state is not JobState.COMPLETED:
            return errors.job_not_completed(state)
        if job.fate.result_gone:
            return errors.result_gone()
        facts = ResultFacts(
            job_id=job.job_id,
            outputs=job.outputs,
            expires_at_s=int(now_s + self.links.life_s),
            link_round=self.links.round,
        )
        return json_answer(200, result_body(facts, job.shape))


def _arguments(body: bytes) -> dict[str, Any] | Answer:
    """The arguments of a submission, or the answer to a body that is no JSON object."""
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return errors.bad_request("The body is not JSON.")
    return arguments if isinstance(arguments, dict) else errors.bad_request("The body is not a JSON object.")
