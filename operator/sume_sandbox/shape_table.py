"""The legal shapes of Sume's answers, as a table, and which of them a job answers in.

Sources differ on where Sume puts things, so each job answers in another shape, chosen by its id.
"""

from dataclasses import dataclass
from typing import Literal

from sume_sandbox import digest

WordField = Literal["sume_status", "status", "job.status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way to say things. The defaults are the plainest one."""

    wrapped: bool = True  # in `data`, or at the root
    ids: tuple[Literal["request_id", "job_id"], ...] = ("request_id", "job_id")  # none: in `job.id` only
    submit_id: Literal["request_id", "job_id", "id", "job.id"] = "request_id"  # at the root that would be a trace id
    word_fields: tuple[WordField, ...] = ("sume_status", "status")
    casing: Literal["lower", "upper", "title", "padded"] = "lower"  # of `status`; `sume_status` is lower case always
    synonym: int = 0  # which of the words of a state
    says_terminal: bool = True
    numbers_as_text: bool = False
    recommends: bool = False  # `recommended_poll_interval_seconds` too
    tells_usage: bool = False
    outputs_in: Literal["result.artifacts", "artifacts", "loose"] = "result.artifacts"
    by_kind: bool = False  # a mapping by kind, not a list
    url_key: Literal["url", "public_url", "media_url", "typed"] = "url"  # typed: video_url, image_url
    kind_key: Literal["type", "kind"] = "type"
    signed: bool = False  # media addresses with a signature in the query, and a time when they expire
    root_trace: bool = False  # a `request_id` beside `data`, which is no job id


SHAPES: tuple[Shape, ...] = (
    Shape(recommends=True, tells_usage=True),
    Shape(wrapped=False, ids=("request_id",), submit_id="job_id", word_fields=("sume_status",)),
    Shape(ids=("request_id",), casing="upper", numbers_as_text=True, tells_usage=True, kind_key="kind", signed=True),
    Shape(
        ids=(),
        submit_id="job.id",
        word_fields=("job.status",),
        says_terminal=False,
        outputs_in="artifacts",
        kind_key="kind",
    ),
    Shape(word_fields=("status",), casing="upper", synonym=1, says_terminal=False, by_kind=True, root_trace=True),
    Shape(
        wrapped=False,
        ids=("job_id",),
        submit_id="job_id",
        word_fields=("status",),
        synonym=2,
        outputs_in="loose",
        signed=True,
    ),
    Shape(
        ids=("job_id",),
        submit_id="job_id",
        says_terminal=False,
        outputs_in="artifacts",
        by_kind=True,
        url_key="public_url",
    ),
    Shape(
        wrapped=False,
        ids=(),
        submit_id="job.id",
        word_fields=("job.status",),
        casing="upper",
        synonym=3,
        url_key="media_url",
    ),
    Shape(
        submit_id="id",
        word_fields=("status", "job.status"),
        casing="title",
        synonym=1,
        url_key="typed",
        signed=True,
    ),
    Shape(word_fields=("status",), casing="padded", numbers_as_text=True, outputs_in="loose", root_trace=True),
    Shape(word_fields=("sume_status", "job.status"), synonym=2, tells_usage=True, url_key="typed", kind_key="kind"),
    Shape(
        wrapped=False,
        submit_id="id",
        casing="upper",
        says_terminal=False,
        numbers_as_text=True,
        outputs_in="artifacts",
        signed=True,
    ),
)


def shape_of(job_id: str) -> Shape:
    """The shape of a job's answers: always the same for one job."""
    return SHAPES[digest.choice(len(SHAPES), "shape", job_id)]
