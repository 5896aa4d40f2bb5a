"""All jobs of the sandbox: submitting, adopting, canceling and scripting them. Knows time only as an argument."""

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from sume_sandbox import digest
from sume_sandbox.admin_input import JobInput
from sume_sandbox.config import SandboxConfig
from sume_sandbox.fates import fate_of
from sume_sandbox.job import Job
from sume_sandbox.lanes import Lanes, Timing
from sume_sandbox.states import JobState

_JOB_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def legal_job_id(job_id: str) -> bool:
    """Whether Sume could have given out that id."""
    return _JOB_ID.fullmatch(job_id) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is asked for."""

    workspace: str
    model: str
    kind: str
    idempotency_key: str | None


class CancelOutcome(Enum):
    """What became of a request to cancel."""

    CANCELED = auto()
    ALREADY_STARTED = auto()
    ENDED = auto()


class JobStore:
    """The jobs by id, and the slots of the workspaces that submitted some of them."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._jobs: dict[str, Job] = {}
        self._lanes: dict[str, Lanes] = {}
        self.submitted = 0

    def all(self, now_s: float) -> Iterable[Job]:
        """Every job, as of now."""
        for lanes in self._lanes.values():
            lanes.advance(now_s)
        return self._jobs.values()

    @property
    def max_active(self) -> dict[str, int]:
        """Per workspace, how many of its submitted jobs were active at once."""
        return {workspace: lanes.max_active for workspace, lanes in sorted(self._lanes.items())}

    def find(self, job_id: str, now_s: float) -> Job | None:
        """A job that is known already."""
        job = self._jobs.get(job_id)
        if job is not None and job.workspace is not None:
            self._lanes[job.workspace].advance(now_s)
        return job

    def look(self, job_id: str, now_s: float) -> Job | None:
        """A job that is known or, as of now, adopted; None if its id says that there is no such job."""
        job = self.find(job_id, now_s)
        if job is not None or not legal_job_id(job_id):
            return job
        job = self._adopted(job_id, now_s)
        if job.fate.unknown:
            return None
        self._jobs[job_id] = job
        return job

    def replay(self, submission: Submission, now_s: float) -> Job | None:
        """The job that the same idempotency key made before."""
        if submission.idempotency_key is None:
            return None
        return self.find(self._id_for(submission), now_s)

    def submit(self, submission: Submission, now_s: float) -> Job | None:
        """Make a job; None if the workspace is full."""
        lanes = self._lanes.setdefault(submission.workspace, self._new_lanes())
        lanes.advance(now_s)
        if lanes.full:
            return None
        job_id = self._id_for(submission)
        fate = fate_of(
            job_id,
            seed=self._config.seed,
            failing_share=self._config.failing_share,
            model=submission.model,
            kind=submission.kind,
        )
        process_s = self._config.process_s * fate.slowness
        job = Job(
            job_id=job_id,
            fate=fate,
            timing=Timing(ready_at_s=now_s + self._config.queue_s, process_s=process_s),
            created_at_s=now_s,
            model=submission.model,
            workspace=submission.workspace,
            idempotency_key=submission.idempotency_key,
            media_url=self._config.media_url,
        )
        self._jobs[job_id] = job
        self.submitted += 1
        lanes.add(job.timing, now_s)
        return job

    def cancel(self, job: Job, now_s: float) -> CancelOutcome:
        """Cancel a job, if its state allows it."""
        if job.ended_at(now_s):
            return CancelOutcome.ENDED
        allowed = job.script.cancelable
        if allowed is None:
            allowed = self._config.cancel_running or job.state_at(now_s) is JobState.QUEUED
        if not allowed:
            return CancelOutcome.ALREADY_STARTED
        job.canceled = True
        self._free_slot(job)
        return CancelOutcome.CANCELED

    def script(self, job_id: str, script: JobInput, now_s: float) -> Job:
        """Give a job a script, from its first entry on. A job that lives by a script takes no slot."""
        job = self.find(job_id, now_s) or self._adopted(job_id, now_s)
        self._jobs[job_id] = job
        job.script, job.entries_given, job.canceled = script, 0, False
        if script.script:
            self._free_slot(job)
        return job

    def _adopted(self, job_id: str, now_s: float) -> Job:
        fate = fate_of(job_id, seed=self._config.seed, failing_share=self._config.failing_share)
        timing = Timing(ready_at_s=now_s, process_s=self._config.process_s * fate.slowness, started_at_s=now_s)
        media_url = self._config.media_url
        return Job(job_id=job_id, fate=fate, timing=timing, created_at_s=now_s, media_url=media_url)

    def _id_for(self, submission: Submission) -> str:
        """The same for the same key, so a sandbox that was restarted still knows which job a key stands for."""
        key = submission.idempotency_key
        unique = f"key {key}" if key is not None else f"unkeyed {uuid.uuid4()}"
        return digest.job_id(self._config.seed, submission.workspace, unique)

    def _new_lanes(self) -> Lanes:
        return Lanes(running_slots=self._config.running_slots, queued_slots=self._config.queued_slots)

    def _free_slot(self, job: Job) -> None:
        if job.workspace is not None:
            self._lanes[job.workspace].remove(job.timing)
