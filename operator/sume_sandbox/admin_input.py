"""What the admin routes accept, checked field by field; a misspelt field is refused like a wrong value."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from sume_sandbox.answer import Answer, json_answer, text_answer
from sume_sandbox.states import meaning

Operation = Literal["submit", "status", "result", "cancel", "media"]

MAX_MEDIA_BYTES = 256 * 1024**2
HOW_IT_GOES_WRONG = (
    *("http_status", "headers", "body", "json_body"),
    *("delay_s", "trickle_s", "bytes_per_s", "cut_after_bytes", "drop", "drop_after_effect"),
)

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isprintable():
            raise ValueError("a header name or value holds a character that HTTP does not allow there")
        if name.lower() in _FRAMING_HEADERS:
            raise ValueError(f"{name} is set by the server itself")
    return {name.lower(): value for name, value in headers.items()}


Headers = Annotated[dict[str, str], AfterValidator(_checked_headers)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
HttpStatus = Annotated[int, Field(ge=200, le=599)]


class AdminInput(BaseModel):
    """Strict: a number in quotes is no number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    def given(self, *names: str) -> bool:
        """Whether any of these fields is in the input, even as null."""
        return not self.model_fields_set.isdisjoint(names)


class ScriptEntry(AdminInput):
    """The answer to one status read: a status in the job's shape, or (without `status`) a raw answer."""

    status: str | None = Field(default=None, min_length=1)
    terminal: bool | None = None
    next_poll_after_seconds: float | str | None = None  # said as it is, however odd
    http_status: HttpStatus = 200
    headers: Headers = {}
    body: Any = None  # a string is sent as it is, anything else as JSON
    delay_s: Seconds = 0.0
    drop: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> "ScriptEntry":
        raw = self.given("http_status", "body", "drop")
        if raw == (self.status is not None):
            raise ValueError("an entry has either `status` or a raw answer (`http_status`, `body`, `drop`)")
        if raw and self.given("terminal", "next_poll_after_seconds"):
            raise ValueError("`terminal` and `next_poll_after_seconds` go with `status`")
        return self

    @property
    def ended(self) -> bool:
        """Whether the entry says that the job has ended."""
        if self.terminal is not None:
            return self.terminal
        state = meaning(self.status or "")
        return state is not None and state.ended

    def raw_answer(self) -> Answer:
        """The raw answer, not delayed yet."""
        if self.given("body"):
            make = text_answer if isinstance(self.body, str) else json_answer
            return make(self.http_status, self.body, self.headers)
        return Answer(http_status=self.http_status, headers=self.headers)


class OutputInput(AdminInput):
    """One output of a scripted job."""

    kind: str = Field(default="video", min_length=1)
    url: str
    content_type: str | None = None
    size_bytes: Annotated[int, Field(ge=0)] | None = None  # said as it is, right or wrong


class MediaInput(AdminInput):
    """The files of a job, as they are from now on. Another revision: other bytes, and another ETag."""

    size_bytes: Annotated[int, Field(ge=0, le=MAX_MEDIA_BYTES)] | None = None
    revision: int = 0


class LinksInput(AdminInput):
    """How long the addresses given out from now on work, and whether the earlier ones still do."""

    life_s: Seconds | None = None
    expire_all: bool = False


class ErrorInput(AdminInput):
    """Why a scripted job failed."""

    code: str | None = None
    message: str | None = None
    public_reason: str | None = None


class JobInput(AdminInput):
    """A script for one job; without entries, the job keeps its own life and only what is given changes."""

    script: list[ScriptEntry] = []
    outputs: list[OutputInput] | None = None
    media: MediaInput | None = None
    error: ErrorInput | None = None
    cancelable: bool | None = None
    shape: int | None = None


class JobsInput(AdminInput):
    """Scripts for many jobs at once."""

    jobs: dict[str, JobInput]


class FaultInput(AdminInput):
    """Which requests go wrong, and how."""

    job: str | None = None
    operation: Operation | None = None
    key_fingerprint: str | None = None
    times: Annotated[int, Field(ge=1)] | None = None
    after: Annotated[int, Field(ge=0)] = 0
    http_status: HttpStatus | None = None
    headers: Headers = {}
    body: str | None = None
    json_body: Any = Field(default=None, alias="json")
    delay_s: Seconds = 0.0
    trickle_s: Seconds = 0.0
    bytes_per_s: Annotated[float, Field(gt=0)] | None = None
    cut_after_bytes: Annotated[int, Field(ge=0)] | None = None
    drop: bool = False
    drop_after_effect: bool = False
    after_effect: bool = False  # the replacing answer is given only after the work was done

    @model_validator(mode="after")
    def _does_something(self) -> "FaultInput":
        if self.given("body") and self.given("json_body"):
            raise ValueError("`body` and `json` exclude each other")
        if not self.given(*HOW_IT_GOES_WRONG):
            raise ValueError("a fault needs one of http_status, headers, body, json, delay_s, trickle_s, drop, ...")
        return self


class KeysInput(AdminInput):
    """The accepted keys, as a list or as a mapping from key to the name of its workspace. None: every key."""

    keys: list[str] | dict[str, str | None]


def complaint(error: ValidationError) -> str:
    """What is wrong, by field. Never the value: it may be a key, and so may be a member's name in `keys`."""
    lines = []
    for item in error.errors(include_input=False, include_url=False):
        place = item["loc"][:1] if item["loc"][:1] == ("keys",) else item["loc"]
        lines.append(f"{'.'.join(map(str, place)) or 'body'}: {item['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
