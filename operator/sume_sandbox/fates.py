"""What becomes of a job, and the words in job ids and models that choose it: two tables are the whole magic."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sume_sandbox import digest
from sume_sandbox.states import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """How a job ends, unless it is canceled or scripted."""

    ending: JobState = JobState.COMPLETED
    by_policy: bool = False  # failed because the content policy refused it
    slowness: float = 1.0  # multiplies the processing time
    kind: str = "video"
    several: bool = False  # more than one output
    unknown: bool = False  # Sume says it never heard of it
    result_gone: bool = False  # completed, but its result is no longer kept


# Word in a job id nobody submitted (`job_demo-slow-fail`), or in a model (`demo/slow-fail`) -> what it changes.
MAGIC: Mapping[str, Mapping[str, Any]] = {
    "fail": {"ending": JobState.FAILED},
    "nsfw": {"ending": JobState.FAILED, "by_policy": True},
    "cancel": {"ending": JobState.CANCELED},
    "slow": {"slowness": 10.0},
    "image": {"kind": "image"},
    "multi": {"several": True},
    "expired": {"result_gone": True},
    "missing": {"unknown": True},
}


class Refusal(StrEnum):
    """Why a submission is turned down because of its model."""

    INVALID = "invalid"
    NO_CREDITS = "no credits"


# Word in a model -> how its submission is refused. `invalid-` counts at the start of a path segment only.
REFUSED_MODELS: Mapping[str, Refusal] = {"/invalid-": Refusal.INVALID, "no-credits": Refusal.NO_CREDITS}

POLICY_SHARE = 0.25  # of the jobs that fail by chance


def fate_of(job_id: str, *, seed: int, failing_share: float, model: str | None = None, kind: str = "video") -> Fate:
    """The fate of a job: by chance first (stable for a job id), then by magic words.

    The words are looked for in the model of a submitted job, else in the id.
    """
    fate = Fate(kind=kind)
    if digest.share("fails", seed, job_id) < failing_share:
        by_policy = digest.share("policy", seed, job_id) < POLICY_SHARE
        fate = replace(fate, ending=JobState.FAILED, by_policy=by_policy)
    if model is None:
        return _changed(fate, job_id, except_for=())
    # A submitted job exists, and real models are called things like `image-to-video`: their route says what they make.
    return _changed(fate, model, except_for=("missing", "image"))


def refusal_of(model: str) -> Refusal | None:
    """Whether the sandbox is to turn this model down."""
    return next((refusal for word, refusal in REFUSED_MODELS.items() if word in f"/{model.lower()}"), None)


def _changed(fate: Fate, text: str, *, except_for: tuple[str, ...]) -> Fate:
    text = text.lower()
    for word, changes in MAGIC.items():
        if word in text and word not in except_for:
            fate = replace(fate, **changes)
    return fate
