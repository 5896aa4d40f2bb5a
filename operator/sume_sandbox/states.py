"""The states of a job and the words Sume has for them."""

from enum import StrEnum


class JobState(StrEnum):
    """What a job can be; the value is Sume's plainest word for it."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def ended(self) -> bool:
        """Whether nothing comes after it."""
        return self not in (JobState.QUEUED, JobState.PROCESSING)


CONTENT_POLICY_WORD = "nsfw"  # a failure by content policy has a word of its own

SYNONYMS: dict[JobState, tuple[str, ...]] = {
    JobState.QUEUED: ("queued",),
    JobState.PROCESSING: ("processing", "running"),
    JobState.COMPLETED: ("completed", "complete", "success", "succeeded"),
    JobState.FAILED: ("failed", "error", "errored", "expired"),
    JobState.CANCELED: ("canceled", "cancelled"),
}

_MEANINGS = {word: state for state, words in SYNONYMS.items() for word in words} | {
    CONTENT_POLICY_WORD: JobState.FAILED
}


def meaning(word: str) -> JobState | None:
    """The state a status word stands for; None for a word the API does not know."""
    return _MEANINGS.get(word.strip().lower())
