"""What the sandbox saw its callers do, for tests to judge: who read which job when, and how many at once."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sume_sandbox.admin_input import Operation
from sume_sandbox.clock import Clock

KEPT_READ_TIMES = 1000  # per job; counts and gaps know all reads


@dataclass(slots=True, kw_only=True)
class JobObservation:
    """Every request about one job, whatever it was answered with."""

    status_reads: int = 0
    result_reads: int = 0
    cancels: int = 0
    submits: int = 0
    overlapping_reads: int = 0  # status reads that came while another one was being answered
    status_reads_in_flight: int = 0
    first_read_at_s: float | None = None
    last_read_at_s: float | None = None
    longest_gap_s: float = 0.0
    read_times_s: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_READ_TIMES))
    fingerprints: set[str] = field(default_factory=set)

    def asked(self, operation: Operation, key_fingerprint: str | None, now_s: float) -> None:
        """Count one request."""
        if key_fingerprint is not None:
            self.fingerprints.add(key_fingerprint)
        match operation:
            case "status":
                self._status_read(now_s)
            case "result":
                self.result_reads += 1
            case "cancel":
                self.cancels += 1
            case "submit":
                self.submits += 1

    def describe(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "status_reads": self.status_reads,
            "result_reads": self.result_reads,
            "cancels": self.cancels,
            "submits": self.submits,
            "overlapping_reads": self.overlapping_reads,
            "first_read_at": self.first_read_at_s,
            "last_read_at": self.last_read_at_s,
            "longest_gap_s": self.longest_gap_s,
            "read_times": list(self.read_times_s),
            "keys": sorted(self.fingerprints),
        }

    def _status_read(self, now_s: float) -> None:
        self.status_reads += 1
        self.overlapping_reads += self.status_reads_in_flight > 0
        if self.last_read_at_s is not None:
            self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_read_at_s)
        self.first_read_at_s = now_s if self.first_read_at_s is None else self.first_read_at_s
        self.last_read_at_s = now_s
        self.read_times_s.append(now_s)


class Observations:
    """All jobs, and the totals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.jobs: dict[str, JobObservation] = {}
        self.answers: Counter[tuple[Operation, str]] = Counter()
        self.max_concurrent_requests = 0
        self._in_flight = 0

    def of(self, job_id: str) -> JobObservation:
        """What was seen of a job; nothing yet, perhaps."""
        return self.jobs.get(job_id) or JobObservation()

    @contextmanager
    def request(self, operation: Operation, job_id: str | None, key_fingerprint: str | None) -> Iterator[None]:
        """One request, for as long as it is being answered."""
        self._in_flight += 1
        self.max_concurrent_requests = max(self.max_concurrent_requests, self._in_flight)
        seen = None if job_id is None else self._about(job_id)
        reads_status = operation == "status"
        if seen is not None:
            seen.asked(operation, key_fingerprint, self._clock.now_s())
            seen.status_reads_in_flight += reads_status
        try:
            yield
        finally:
            self._in_flight -= 1
            if seen is not None:
                seen.status_reads_in_flight -= reads_status

    def submitted(self, job_id: str, key_fingerprint: str) -> None:
        """A submission turned out to be about this job."""
        self._about(job_id).asked("submit", key_fingerprint, self._clock.now_s())

    def answered(self, operation: Operation, code: str) -> None:
        """Count one answer: its HTTP status, or `dropped`."""
        self.answers[operation, code] += 1

    def _about(self, job_id: str) -> JobObservation:
        return self.jobs.setdefault(job_id, JobObservation())
