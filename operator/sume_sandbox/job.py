"""One job: what it is by the clock, or by its script."""

from dataclasses import dataclass

from sume_sandbox.admin_input import JobInput, ScriptEntry
from sume_sandbox.fates import Fate
from sume_sandbox.lanes import Timing
from sume_sandbox.outputs import MEDIA_BASE, JobError, Output, made_by, why_failed
from sume_sandbox.shape_table import SHAPES, Shape, shape_of
from sume_sandbox.states import JobState, meaning

NO_SCRIPT = JobInput()


@dataclass(slots=True, kw_only=True)
class Job:
    """A job that was submitted, adopted (asked for without ever having been submitted) or scripted."""

    job_id: str
    fate: Fate
    timing: Timing
    created_at_s: float
    model: str | None = None
    workspace: str | None = None  # None: nobody submitted it, and it takes no slot
    idempotency_key: str | None = None
    canceled: bool = False
    media_url: str = MEDIA_BASE  # where its files are
    script: JobInput = NO_SCRIPT
    entries_given: int = 0

    def state_at(self, now_s: float) -> JobState | None:
        """The state; None if the script says a word that the API does not know."""
        if self.canceled:
            return JobState.CANCELED
        if (entry := self._last_entry()) is not None:
            return meaning(entry.status or "")
        if self.timing.started_at_s is None:
            return JobState.QUEUED
        return JobState.PROCESSING if now_s < self.timing.ends_at_s else self.fate.ending

    def ended_at(self, now_s: float) -> bool:
        """Whether nothing more will come."""
        entry = None if self.canceled else self._last_entry()
        state = self.state_at(now_s)
        return entry.ended if entry is not None else state is not None and state.ended

    def next_entry(self) -> ScriptEntry | None:
        """What the script says to the next status read; None: the script has nothing to say."""
        entries = self.script.script
        if self.canceled or not entries:
            return None
        entry = entries[min(self.entries_given, len(entries) - 1)]
        self.entries_given += 1
        return entry

    @property
    def origin(self) -> str:
        """How it came to be known."""
        if self.script.script:
            return "scripted"
        return "adopted" if self.workspace is None else "submitted"

    @property
    def shape(self) -> Shape:
        """The shape of all its answers."""
        return shape_of(self.job_id) if self.script.shape is None else SHAPES[self.script.shape]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What it makes."""
        if self.script.outputs is None:
            return made_by(self.job_id, self.fate, self.media_url)
        return tuple(Output(**output.model_dump()) for output in self.script.outputs)

    @property
    def error(self) -> JobError:
        """Why it fails, if it does."""
        given = self.script.error
        if given is None:
            return why_failed(self.fate)
        return JobError(code=given.code, message=given.message, public_reason=given.public_reason)

    def _last_entry(self) -> ScriptEntry | None:
        """The status that was told last, or that will be told first; raw answers tell none."""
        told = self.script.script[: max(1, self.entries_given)]
        upcoming = self.script.script[len(told) :]
        return next((entry for entry in (*reversed(told), *upcoming) if entry.status is not None), None)
