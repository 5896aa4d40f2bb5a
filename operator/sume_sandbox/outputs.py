"""What a completed job has made, and why a failed one has not."""

from dataclasses import dataclass

from sume_sandbox.fates import Fate

# The default: `.example` never resolves (RFC 2606), so nobody is led to a real host by an invented address.
MEDIA_BASE = "https://media.sandbox.sume.example/artifacts"
API_BASE = "https://api.sandbox.sume.example/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One file that a job made."""

    kind: str
    url: str
    content_type: str | None = None
    size_bytes: int | None = None  # None: not told

    @property
    def file_name(self) -> str:
        """The last part of its address."""
        return self.url.partition("?")[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job failed, in Sume's words."""

    code: str | None = None
    message: str | None = None
    public_reason: str | None = None


GENERATION_FAILED = JobError(code="generation_failed", message="The generation failed.")
CONTENT_POLICY_REJECTED = JobError(
    code="generation_failed", message="The input was refused.", public_reason="content_policy_rejected"
)

_TYPES = {"video": ("mp4", "video/mp4"), "image": ("png", "image/png"), "audio": ("mp3", "audio/mpeg")}


def made_by(job_id: str, fate: Fate, media_url: str = MEDIA_BASE) -> tuple[Output, ...]:
    """The outputs of a job: one, or several (a video with poster and sound, or three images)."""
    kinds: tuple[str, ...] = (fate.kind,)
    if fate.several:
        kinds = ("image",) * 3 if fate.kind == "image" else ("video", "image", "audio")
    return tuple(_output(f"{media_url}/{job_id}", number, kind) for number, kind in enumerate(kinds, start=1))


def why_failed(fate: Fate) -> JobError:
    """The error of a job that failed."""
    return CONTENT_POLICY_REJECTED if fate.by_policy else GENERATION_FAILED


def _output(folder_url: str, number: int, kind: str) -> Output:
    suffix, content_type = _TYPES[kind]
    return Output(kind=kind, url=f"{folder_url}/{number}.{suffix}", content_type=content_type)
