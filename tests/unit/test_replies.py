"""What every shape of Sume's answers is read as."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from builders import JOB, NOW
from sume_operator.adapters.rate_headers import RateHint, parse_retry_after, read_hint
from sume_operator.adapters.replies import read_reply
from sume_operator.adapters.results import MAX_FOUND
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Check,
    Collect,
    Forbidden,
    Found,
    JobError,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    RateLimited,
    Refusal,
    Reply,
    Submit,
    Submitted,
    Unauthorized,
    Unavailable,
    Usage,
)
from sume_operator.core.status import format_time

SUBMIT = Submit(endpoint="VideoRouter", model="veo", idempotency_key="k")
CHECK, COLLECT, CANCEL = Check(job_id=JOB), Collect(job_id=JOB), Cancel(job_id=JOB)
VIDEO = "https://media.sume.com/artifacts/ex/1.mp4"


def read(call: Call, body: Any, http_status: int = 200, **headers: str) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_reply(call, http_status, CaseInsensitiveDict(named), raw, NOW)


def found(body: Any) -> tuple[Found, ...]:
    reply = read(COLLECT, body)
    assert isinstance(reply, JobResult)
    return reply.found


def status(body: Any) -> JobStatus:
    reply = read(CHECK, body)
    assert isinstance(reply, JobStatus)
    return reply


# The examples that the description of the API ends with, as they stand there.
QUEUED = rb"""{"data":{"request_id":"job_0b6f","job_id":"job_0b6f","sume_status":"queued","terminal":false,"next_poll_after_seconds":30,"result_ready":false,"job":{"id":"job_0b6f","type":"avatar_video","status":"queued"},"usage":{"status":"reserved","currency":"USD","reserved_amount_usd_micros":420000}}}"""  # noqa: E501
PROCESSING = rb"""{"request_id":"job_0b6f","sume_status":"processing","terminal":false,"next_poll_after_seconds":8}"""
COMPLETED = rb"""{"data":{"request_id":"job_0b6f","status":"COMPLETED","sume_status":"completed","terminal":true,"next_poll_after_seconds":null,"result_ready":true}}"""  # noqa: E501
REFUSED = rb"""{"data":{"request_id":"job_0b6f","status":"FAILED","sume_status":"failed","job":{"id":"job_0b6f","status":"failed","error":{"code":"generation_failed","message":"The input was refused.","public_reason":"content_policy_rejected"}}}}"""  # noqa: E501
CANCELED = rb"""{"data":{"job":{"id":"job_0b6f","status":"canceled"}}}"""
RESULT = rb"""{"data":{"request_id":"job_0b6f","status":"COMPLETED","result":{"artifacts":[{"type":"video","content_type":"video/mp4","url":"https://media.sume.com/artifacts/ex/1.mp4"}]}}}"""
IDLE_LOOP = rb"""{"data":{"job":{"id":"job_0b6f","status":"completed"},"artifacts":[{"kind":"idle-loop","content_type":"video/webm","url":"https://media.sume.com/artifacts/ex/2.webm"}]}}"""
NOT_COMPLETED = rb"""{"request_id":"req_9","error":{"code":"job_not_completed","message":"This job has no result yet.","details":{"status":"processing"}}}"""  # noqa: E501
TOO_MANY = rb"""{"error":{"code":"rate_limit_exceeded","message":"Too many reads for this key.","retryable":true,"request_id":"req_10"}}"""  # noqa: E501
STARTED = (
    rb"""{"error":{"code":"job_generation_already_started","message":"Generation has begun.","retryable":false}}"""
)

EXAMPLES: list[tuple[str, Call, int, bytes, Reply]] = [
    (
        "queued",
        CHECK,
        200,
        QUEUED,
        JobStatus(
            word="queued", terminal=False, next_poll_s=30, usage=Usage(state="reserved", amount="0.42", currency="USD")
        ),
    ),
    ("processing", CHECK, 200, PROCESSING, JobStatus(word="processing", terminal=False, next_poll_s=8)),
    ("completed", CHECK, 200, COMPLETED, JobStatus(word="completed", terminal=True)),
    (
        "refused for its content",
        CHECK,
        200,
        REFUSED,
        JobStatus(
            word="failed",
            error=JobError(
                code="generation_failed", message="The input was refused.", public_reason="content_policy_rejected"
            ),
        ),
    ),
    ("canceled", CHECK, 200, CANCELED, JobStatus(word="canceled")),
    (
        "result",
        COLLECT,
        200,
        RESULT,
        JobResult(found=(Found(url=VIDEO, kind="video", content_type="video/mp4"),)),
    ),
    (
        "result beside the job",
        COLLECT,
        200,
        IDLE_LOOP,
        JobResult(
            found=(
                Found(url="https://media.sume.com/artifacts/ex/2.webm", kind="idle-loop", content_type="video/webm"),
            )
        ),
    ),
    (
        "no result yet",
        COLLECT,
        409,
        NOT_COMPLETED,
        Refusal(http_status=409, code="job_not_completed", message="This job has no result yet."),
    ),
    ("too many", CHECK, 429, TOO_MANY, RateLimited(code="rate_limit_exceeded")),
    (
        "too late to cancel",
        CANCEL,
        409,
        STARTED,
        Refusal(
            http_status=409, code="job_generation_already_started", message="Generation has begun.", retryable=False
        ),
    ),
]


@pytest.mark.parametrize(
    ("call", "http_status", "body", "reply"), [row[1:] for row in EXAMPLES], ids=[row[0] for row in EXAMPLES]
)
def test_the_examples_of_the_description(call: Call, http_status: int, body: bytes, reply: Reply) -> None:
    assert read(call, body, http_status) == reply


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"sume_status": " Queued ", "status": "COMPLETED"}, "Queued"),
        ({"status": "RUNNING", "job": {"status": "failed"}}, "RUNNING"),
        ({"data": {"job": {"sume_status": "queued"}}}, "queued"),
        ({"data": {"status": "failed"}, "status": "completed"}, "failed"),
        ({"data": [], "status": "completed"}, "completed"),
        ({"data": None, "job": {"status": "queued"}}, "queued"),
        ({"sume_status": 7, "status": "queued"}, "queued"),
        ({"sume_status": "  ", "job": {"status": "queued"}}, "queued"),
        ({"terminal": True}, None),
    ],
    ids=str,
)
def test_where_the_word_is_found(body: Any, word: str | None) -> None:
    assert status(body).word == word


@pytest.mark.parametrize(
    ("terminal", "read_as"),
    [(True, True), (False, False), (None, None), ("true", None), (1, None), (0, None), ([], None)],
    ids=repr,
)
def test_only_a_real_bool_is_the_flag(terminal: Any, read_as: bool | None) -> None:
    assert status({"status": "queued", "terminal": terminal}).terminal is read_as


@pytest.mark.parametrize(
    ("suggested", "read_as"),
    [
        (8, 8.0),
        (2.5, 2.5),
        ("30", 30.0),
        (" 30 ", 30.0),
        (-4, -4.0),
        (None, None),
        (True, None),
        ("soon", None),
        ("nan", None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ([8], None),
    ],
    ids=str,
)
def test_the_suggested_delay(suggested: Any, read_as: float | None) -> None:
    assert status({"status": "queued", "next_poll_after_seconds": suggested}).next_poll_s == read_as


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"<html>502</html>",
        b'{"status": "que',
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b'"queued"',
        b"7",
        b"{}",
        b'{"data": {}}',
        b'{"data": {}, "status": "queued"}',
        b'{"status": 5, "terminal": "no"}',
        b'{"result_ready": true}',
        b"[" * 100_000,
        b'{"data":' * 100_000,
    ],
    ids=lambda body: repr(body[:32]),
)
def test_a_status_that_says_nothing_makes_no_sense(body: bytes) -> None:
    assert isinstance(read(CHECK, body), Malformed)


@pytest.mark.parametrize(
    ("error", "read_as"),
    [
        ({"code": "x", "message": "m", "request_id": "r"}, JobError(code="x", message="m", request_id="r")),
        ({"code": "x"}, JobError(code="x", request_id="root")),
        ({"public_reason": "p"}, JobError(public_reason="p", request_id="root")),
        ({}, None),
        ({"code": None, "message": ""}, None),
        ({"code": 7}, None),
        ("boom", JobError(message="boom", request_id="root")),
        (" ", None),
        (None, None),
        ([], None),
    ],
    ids=str,
)
def test_why_a_job_failed(error: Any, read_as: JobError | None) -> None:
    body = {"request_id": "root", "data": {"status": "failed", "job": {"error": error}}}
    assert status(body).error == read_as


def test_the_trace_id_may_be_in_a_header() -> None:
    reply = read(CHECK, {"request_id": JOB, "status": "failed", "error": {"code": "x"}}, X_SUME_REQUEST_ID="req_7")
    assert isinstance(reply, JobStatus)
    assert reply.error == JobError(code="x", request_id="req_7")


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (
            {"status": "reserved", "reserved_amount_usd_micros": 420_000},
            Usage(state="reserved", amount="0.42", currency="USD"),
        ),
        ({"captured_amount_usd_micros": "1500000", "currency": "EUR"}, Usage(amount="1.5", currency="EUR")),
        ({"captured_amount_usd_cents": 150}, Usage(amount="1.5", currency="USD")),
        ({"reserved_amount_usd_cents": 9, "captured_amount_usd_cents": 5}, Usage(amount="0.05", currency="USD")),
        ({"status": "Refunded", "captured_amount_usd_micros": 7}, Usage(state="Refunded", amount="0", currency="USD")),
        ({"captured_amount_usd_micros": 0}, Usage(amount="0", currency="USD")),
        ({"captured_amount_usd_micros": 100_000_000}, Usage(amount="100", currency="USD")),
        ({"status": "reserved"}, Usage(state="reserved")),
        ({"status": "s" * 99, "currency": "DOUBLOONS"}, Usage(state="s" * 63 + "…", currency="DOUBLOON")),
        ({"captured_amount_usd_micros": "lots"}, None),
        ({"captured_amount_usd_micros": -5}, None),
        ({"captured_amount_usd_micros": True}, None),
        ({"captured_amount_usd_micros": "nan"}, None),
        ({"captured_amount_usd_micros": "snan"}, None),
        ({"captured_amount_usd_micros": "1e999999999999999999999"}, None),
        ({"captured_amount_usd_micros": 10**30}, None),
        ({"captured_amount": 5}, None),
        ({}, None),
        ("free", None),
    ],
    ids=str,
)
def test_what_a_job_cost(usage: Any, read_as: Usage | None) -> None:
    assert status({"status": "queued", "usage": usage}).usage == read_as


def test_a_tiny_amount_still_fits() -> None:
    usage = status({"status": "queued", "usage": {"captured_amount_usd_micros": "1e-999999"}}).usage
    assert usage
    assert len(usage.amount or "") == 32


ITEM = {"url": VIDEO, "type": "video"}


@pytest.mark.parametrize(
    ("result", "urls"),
    [
        ({"result": {"artifacts": [ITEM]}}, [("video", VIDEO)]),
        ({"artifacts": [ITEM]}, [("video", VIDEO)]),
        ({"result": {"artifacts": []}, "artifacts": [ITEM]}, [("video", VIDEO)]),
        ({"result": {"artifacts": {"video": ITEM}}}, [("video", VIDEO)]),
        ({"result": {"artifacts": {"clip": {"url": VIDEO}}}}, [("clip", VIDEO)]),
        ({"result": {"artifacts": {"clip": [{"url": VIDEO}, VIDEO]}}}, [("clip", VIDEO), ("clip", VIDEO)]),
        ({"result": {"artifacts": {"clip": VIDEO}}}, [("clip", VIDEO)]),
        ({"result": {"artifacts": ITEM}}, [("video", VIDEO)]),
        ({"result": {"artifacts": [VIDEO]}}, [(None, VIDEO)]),
        ({"job": {"artifacts": [ITEM]}}, [("video", VIDEO)]),
        ({"job": {"result": {"artifacts": [ITEM]}}}, [("video", VIDEO)]),
        ({"result": {"artifacts": [{"kind": "k", "public_url": VIDEO}]}}, [("k", VIDEO)]),
        ({"result": {"artifacts": [{"media_url": VIDEO}]}}, [(None, VIDEO)]),
        ({"result": {"artifacts": [{"video_url": VIDEO}, {"image_url": VIDEO}]}}, [(None, VIDEO), (None, VIDEO)]),
        ({"result": {"artifacts": [{"url": 7, "public_url": VIDEO}]}}, [(None, VIDEO)]),
        ({"result": {"artifacts": [None, 7, [ITEM], {}, ITEM]}}, [("video", VIDEO)]),
        ({"result": {"video_url": VIDEO}}, [("video", VIDEO)]),
        ({"result": {"url": VIDEO}}, [(None, VIDEO)]),
        ({"video_url": VIDEO}, [("video", VIDEO)]),
        (
            {
                "result": {
                    "status_url": VIDEO,
                    "result_url": VIDEO,
                    "events_url": VIDEO,
                    "api_url": VIDEO,
                    "webhook_url": VIDEO,
                    "callback_url": VIDEO,
                }
            },
            [],
        ),
        ({"result": {"artifacts": {"state": "ready"}, "video_url": VIDEO}}, [("video", VIDEO)]),
        ({"result": {"artifacts": ["", "video"]}}, []),
        ({"result": {"artifacts": None}}, []),
        ({"result": "none"}, []),
        ({}, []),
    ],
    ids=lambda value: str(value)[:80],
)
@pytest.mark.parametrize("wrapped", [True, False], ids=["in data", "bare"])
def test_where_outputs_are_found(result: Any, urls: list[tuple[str | None, str]], wrapped: bool) -> None:
    read_urls = found({"data": result} if wrapped else result)
    assert [(item.kind, item.url) for item in read_urls] == urls


def test_a_result_is_read_only_so_far() -> None:
    assert len(found({"artifacts": [ITEM] * (MAX_FOUND + 5)})) == MAX_FOUND


def test_an_output_may_be_signed_and_is_never_shown() -> None:
    assert "SIGNATURE" not in repr(found({"artifacts": [f"{VIDEO}?sig=SIGNATURE"]}))


@pytest.mark.parametrize(
    ("size", "read_as"), [(7, 7), ("7", 7), (0, None), (-1, None), (1e300, None), ("big", None), (None, None)], ids=repr
)
def test_the_size_of_an_output(size: Any, read_as: int | None) -> None:
    assert found({"artifacts": [{"url": VIDEO, "size_bytes": size}]})[0].size_bytes == read_as


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"),
        ("2026-03-01T14:00:00.5+02:00", "2026-03-01T12:00:00Z"),
        ("2026-03-01T12:00:00", "2026-03-01T12:00:00Z"),
        (1_772_366_400, "2026-03-01T12:00:00Z"),
        ("1772366400", "2026-03-01T12:00:00Z"),
        (1_772_366_400_000, None),
        ("0001-01-01T00:00:00+14:00", None),
        ("0099-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("tomorrow", None),
        (float("nan"), None),
        (True, None),
        ([2026], None),
        (None, None),
    ],
    ids=repr,
)
def test_when_an_output_expires(text: Any, read_as: str | None) -> None:
    item = found({"artifacts": [{"url": VIDEO, "expires_at": text}]})[0]
    assert format_time(item.expires_at) == read_as


ERROR = {"error": {"code": "c", "message": "m"}}
FAILURES: list[tuple[str, int, Any, Reply]] = [
    ("400", 400, ERROR, Refusal(http_status=400, code="c", message="m")),
    ("402", 402, ERROR, Refusal(http_status=402, code="c", message="m")),
    ("409", 409, ERROR, Refusal(http_status=409, code="c", message="m")),
    ("422", 422, ERROR, Refusal(http_status=422, code="c", message="m")),
    ("400, text at the root", 400, {"message": "m"}, Refusal(http_status=400, message="m")),
    ("400, detail at the root", 400, {"detail": "m"}, Refusal(http_status=400, message="m")),
    ("400, error as a text", 400, {"error": "m"}, Refusal(http_status=400, message="m")),
    ("401", 401, ERROR, Unauthorized(message="m")),
    ("401, no body", 401, b"", Unauthorized()),
    ("403", 403, ERROR, Forbidden(message="m")),
    ("403, HTML", 403, b"<html>", Forbidden()),
    ("404 of Sume's", 404, ERROR, JobUnknown(http_status=404, message="m")),
    ("410 of Sume's", 410, ERROR, JobUnknown(http_status=410, message="m")),
    ("404, code only", 404, {"error": {"code": "c"}}, JobUnknown(http_status=404)),
    ("408", 408, b"", Unavailable(detail="HTTP 408")),
    ("500", 500, ERROR, Unavailable(detail="HTTP 500")),
    ("502", 502, b"<html>", Unavailable(detail="HTTP 502")),
    ("503", 503, ERROR, Unavailable(detail="HTTP 503")),
    ("599", 599, b"", Unavailable(detail="HTTP 599")),
    ("429", 429, ERROR, RateLimited(code="c")),
    ("429, no body", 429, b"", RateLimited()),
]


@pytest.mark.parametrize("call", [CHECK, COLLECT, CANCEL], ids=["check", "collect", "cancel"])
@pytest.mark.parametrize(
    ("http_status", "body", "reply"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_failures(call: Call, http_status: int, body: Any, reply: Reply) -> None:
    assert read(call, body, http_status) == reply


@pytest.mark.parametrize(
    ("http_status", "body"),
    [
        (404, b""),
        (404, b"<html>not found</html>"),
        (404, {"detail": "Not Found"}),
        (404, {"message": "no such route"}),
        (404, {"error": {"message": "no such route"}}),
        (404, {}),
        (410, b"gone"),
        (400, b"bad"),
        (409, {"error": {}}),
        (301, ERROR),
        (302, b""),
        (304, b""),
        (100, b""),
    ],
    ids=str,
)
def test_what_is_none_of_sumes_answers(http_status: int, body: Any) -> None:
    assert isinstance(read(CHECK, body, http_status), Malformed)


@pytest.mark.parametrize(
    ("http_status", "read_as"),
    [(429, 7.0), (503, 7.0), (408, 7.0), (500, None), (502, None)],
)
def test_which_failures_may_say_when_to_come_back(http_status: int, read_as: float | None) -> None:
    reply = read(CHECK, b"", http_status, retry_after="7")
    assert isinstance(reply, RateLimited | Unavailable)
    assert reply.retry_after_s == read_as


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        (" 7 ", 7.0),
        ("1e9", 86_400.0),
        ("0", None),
        ("-7", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
        ("soon", None),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60.0),
        ("Sun, 01 Mar 2026 12:01:00", 60.0),
        ("Sun, 01 Mar 2026 14:01:00 +0200", 60.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", None),
        ("Sun, 01 Mar 2099 12:00:00 GMT", 86_400.0),
        ("Sun, 99 Foo 2026 12:00:00 GMT", None),
        ("Sun, 01 Mar 99999 12:00:00 GMT", None),
        ("9" * 5000, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_retry_after(text: str | None, read_as: float | None) -> None:
    assert parse_retry_after(text, NOW) == read_as


@given(text=st.text(max_size=60))
def test_retry_after_takes_anything(text: str) -> None:
    seconds = parse_retry_after(text, NOW)
    assert seconds is None or 0 < seconds <= 86_400


@pytest.mark.parametrize(
    ("http_status", "body", "reply"),
    [
        (200, {"data": {"job_id": JOB, "status": "CANCELED", "canceled": True}}, CancelAccepted()),
        (200, {}, CancelAccepted()),
        (202, b"", CancelAccepted()),
        (204, b"", CancelAccepted()),
        (
            200,
            {"canceled": False},
            Refusal(http_status=200, code="not_canceled", message="Sume answered canceled: false"),
        ),
        (
            200,
            {"job": {"canceled": False}},
            Refusal(http_status=200, code="not_canceled", message="Sume answered canceled: false"),
        ),
        (200, b"<html>", Malformed(detail="it is HTML")),
    ],
    ids=str,
)
def test_cancel(http_status: int, body: Any, reply: Reply) -> None:
    assert read(CANCEL, body, http_status) == reply


def test_texts_of_sume_are_cut_and_hold_no_secret() -> None:
    message = "see https://media.sume.com/1.mp4?sig=SIGNATURE " + "x" * 5000
    reply = read(CHECK, {"error": {"code": "c" * 500, "message": message}}, 400)
    assert isinstance(reply, Refusal)
    assert (len(reply.message or ""), len(reply.code or "")) == (1200, 128)
    assert "SIGNATURE" not in str(reply)


# --- requests for a job ---

SUBMITTED = rb"""{"data":{"request_id":"job_0b70","idempotency_hit":false,"job":{"id":"job_0b70","status":"queued"}}}"""
MADE: list[tuple[str, Any, Reply]] = [
    ("the example", SUBMITTED, Submitted(job_id="job_0b70", word="queued")),
    ("data.job_id", {"data": {"job_id": "j", "request_id": "r", "id": "i"}}, Submitted(job_id="j")),
    ("data.request_id", {"data": {"request_id": "r", "id": "i", "job": {"id": "x"}}}, Submitted(job_id="r")),
    ("data.id", {"data": {"id": "i", "job": {"id": "x"}}}, Submitted(job_id="i")),
    ("data.job.id", {"data": {"job": {"id": "x"}}}, Submitted(job_id="x")),
    ("data.job.job_id", {"data": {"job": {"job_id": "x"}}}, Submitted(job_id="x")),
    ("a trace id beside data", {"request_id": "req_1", "data": {"id": "i"}}, Submitted(job_id="i")),
    ("flat", {"job_id": "j", "request_id": "req_1"}, Submitted(job_id="j")),
    ("flat, in the job", {"request_id": "req_1", "job": {"id": "x"}}, Submitted(job_id="x")),
    ("flat, id", {"request_id": "req_1", "id": "i"}, Submitted(job_id="i")),
    ("flat, nothing else", {"request_id": "job_1"}, Submitted(job_id="job_1")),
    ("data of another type", {"data": "x", "job_id": "j"}, Submitted(job_id="j")),
    ("an id of another type", {"data": {"job_id": 7, "id": "i"}}, Submitted(job_id="i")),
    ("blanks around it", {"data": {"job_id": " j "}}, Submitted(job_id="j")),
    ("replayed", {"data": {"id": "i", "idempotency_hit": True}}, Submitted(job_id="i", replayed=True)),
    (
        "replayed, in the job",
        {"data": {"job": {"id": "i", "idempotency_hit": True}}},
        Submitted(job_id="i", replayed=True),
    ),
    ("replayed, as a text", {"data": {"id": "i", "idempotency_hit": "yes"}}, Submitted(job_id="i")),
    (
        "all of it",
        {
            "data": {
                "id": "i",
                "sume_status": "queued",
                "next_poll_after_seconds": "30",
                "usage": {"status": "reserved"},
            }
        },
        Submitted(job_id="i", word="queued", next_poll_s=30, usage=Usage(state="reserved")),
    ),
    ("no id", {"data": {"sume_status": "queued"}}, Malformed(detail="it names no job")),
    ("an empty id", {"data": {"job_id": "", "id": " "}}, Malformed(detail="it names no job")),
    ("only a trace id", {"request_id": "req_1", "data": {}}, Malformed(detail="it names no job")),
    ("nothing", {}, Malformed(detail="it names no job")),
    ("empty", b"", Malformed(detail="it is empty")),
    ("HTML", b"<html>", Malformed(detail="it is HTML")),
    ("a list", [1], Malformed(detail="it is not a JSON object")),
]


@pytest.mark.parametrize("http_status", [200, 201, 202])
@pytest.mark.parametrize(("body", "reply"), [row[1:] for row in MADE], ids=[row[0] for row in MADE])
def test_submit(http_status: int, body: Any, reply: Reply) -> None:
    assert read(SUBMIT, body, http_status) == reply


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([{"path": "prompt", "message": "too long"}], "Bad.; prompt: too long"),
        ([{"path": "a", "message": "x"}, {"path": "b"}, {"message": "y"}], "Bad.; a: x; b; y"),
        ([{}, 7, None, {"path": 7, "message": ["x"]}], "Bad."),
        ("nonsense", "Bad."),
        (None, "Bad."),
        ([{"path": "p", "message": "https://x/?sig=SIGNATURE"}], "Bad.; p: https://x/?…"),
    ],
)
def test_what_is_wrong_with_each_field_is_in_the_message(errors: Any, message: str) -> None:
    body = {"error": {"code": "invalid_request", "message": "Bad.", "details": {"errors": errors}}}
    assert read(SUBMIT, body, 422) == Refusal(http_status=422, code="invalid_request", message=message)


def test_many_field_errors_are_cut() -> None:
    errors = [{"path": f"p{number}", "message": "m" * 100} for number in range(200)]
    reply = read(SUBMIT, {"error": {"message": "Bad.", "details": {"errors": errors}}}, 400)
    assert isinstance(reply, Refusal)
    assert len(reply.message or "") == 1200


@pytest.mark.parametrize(
    ("http_status", "retryable", "reply"),
    [
        (500, False, Refusal(http_status=500, code="c", message="m", retryable=False)),
        (503, False, Refusal(http_status=503, code="c", message="m", retryable=False)),
        (408, False, Refusal(http_status=408, code="c", message="m", retryable=False)),
        (500, True, Unavailable(detail="HTTP 500")),
        (500, None, Unavailable(detail="HTTP 500")),
        (500, "false", Unavailable(detail="HTTP 500")),
        (422, True, Refusal(http_status=422, code="c", message="m", retryable=True)),
        (409, False, Refusal(http_status=409, code="c", message="m", retryable=False)),
        (401, False, Unauthorized(message="m")),
        (403, False, Forbidden(message="m")),
        (429, False, RateLimited(code="c")),
    ],
)
def test_retryable_wins_over_the_status_of_a_request_for_a_job(http_status: int, retryable: Any, reply: Reply) -> None:
    body = {"error": {"code": "c", "message": "m", "retryable": retryable}}
    assert read(SUBMIT, body, http_status) == reply
    if http_status >= 500:
        assert isinstance(read(CHECK, body, http_status), Unavailable)


# --- what headers say of limits ---


@pytest.mark.parametrize(
    ("remaining", "reset", "hint"),
    [
        ("5", "30", RateHint(remaining=5, reset_s=30)),
        (" 5 ", "30.5", RateHint(remaining=5, reset_s=30.5)),
        ("0", "86400", RateHint(remaining=0, reset_s=86_400)),
        ("-1", "30", None),
        ("5", "0", None),
        ("5", "-3", None),
        ("5", "86401", None),
        ("5", "1767225600", None),
        ("nan", "30", None),
        ("5", "inf", None),
        ("5, 100;w=60", "30", None),
        ("", "30", None),
        (None, "30", None),
        ("5", None, None),
        ("5", "soon", None),
    ],
)
@pytest.mark.parametrize("prefix", ["RateLimit-", "X-RateLimit-", "x-ratelimit-", "ratelimit-"])
def test_hints(prefix: str, remaining: str | None, reset: str | None, hint: RateHint | None) -> None:
    headers = {f"{prefix}Remaining": remaining, f"{prefix}Reset": reset}
    present = {name: value for name, value in headers.items() if value is not None}
    assert read_hint(CaseInsensitiveDict(present)) == hint


def test_a_hint_may_be_of_two_kinds() -> None:
    mixed = CaseInsensitiveDict({"RateLimit-Remaining": "x", "X-RateLimit-Remaining": "3", "RateLimit-Reset": "9"})
    assert read_hint(mixed) == RateHint(remaining=3, reset_s=9)
    assert read_hint(CaseInsensitiveDict()) is None


# --- whatever comes, there is a reply ---

FIELDS = [
    "data",
    "job",
    "result",
    "artifacts",
    "error",
    "usage",
    "status",
    "sume_status",
    "terminal",
    "canceled",
    "next_poll_after_seconds",
    "code",
    "message",
    "detail",
    "public_reason",
    "request_id",
    "url",
    "public_url",
    "video_url",
    "type",
    "kind",
    "content_type",
    "size_bytes",
    "expires_at",
    "currency",
    "captured_amount_usd_micros",
    "reserved_amount_usd_cents",
]
STRANGE = [
    "",
    " ",
    "queued",
    "https://a/b?c",
    "\ud800",
    "\x00",
    "1e999",
    "nan",
    "-1",
    "9" * 400,
    "2026-01-01T00:00:00Z",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**15, 10**310)
    | st.floats()
    | st.sampled_from(STRANGE)
    | st.text(max_size=8)
)
names = st.sampled_from(FIELDS) | st.text(max_size=4) | st.sampled_from(STRANGE)
json_values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=20,
)
calls = st.sampled_from([CHECK, COLLECT, CANCEL])
http_statuses = st.sampled_from([200, 200, 200, 202, 204, 302, 400, 401, 403, 404, 408, 409, 410, 418, 429, 500, 503])
headers = st.dictionaries(
    st.sampled_from(["Retry-After", "x-sume-request-id", "RateLimit-Reset"]), st.text(max_size=20), max_size=3
)


def assert_is_a_reply(reply: Reply) -> None:
    assert isinstance(reply, Reply)
    if isinstance(reply, JobResult):
        for item in reply.found:
            assert item.url
            assert len(format_time(item.expires_at) or "2026-03-01T12:00:00Z") == 20


@given(call=calls, http_status=http_statuses, headers=headers, value=json_values)
def test_any_json_has_a_reply(call: Call, http_status: int, headers: dict[str, str], value: Any) -> None:
    body = json.dumps(value).encode()
    reply = read_reply(call, http_status, CaseInsensitiveDict(headers), body, NOW)
    assert_is_a_reply(reply)
    assert reply == read_reply(call, http_status, CaseInsensitiveDict(headers), body, NOW)


@given(call=calls, http_status=st.integers(100, 999), body=st.binary(max_size=60))
def test_any_bytes_have_a_reply(call: Call, http_status: int, body: bytes) -> None:
    assert_is_a_reply(read_reply(call, http_status, {}, body, NOW))


PLACES = [
    path.split(".")
    for path in (
        "data",
        *(f"data.{name}" for name in FIELDS),
        *(f"job.{name}" for name in FIELDS),
        *(f"error.{name}" for name in ("code", "message", "public_reason")),
        *(f"data.job.error.{name}" for name in ("code", "message", "public_reason", "request_id")),
        *(f"usage.{name}" for name in ("status", "currency", "captured_amount_usd_micros")),
        *(f"result.artifacts.{name}" for name in FIELDS),
        "result.artifacts.video.url",
    )
]


def nested(depth: int, kind: str) -> bytes:
    return b"[" * depth + b"]" * depth if kind == "list" else b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("path", ["data", "artifacts", "result.artifacts.expires_at", "usage.status", "job.error.code"])
def test_deep_nesting_has_a_reply(path: str, kind: str) -> None:
    """Just below the depth at which the JSON reader itself gives up."""
    for depth in (3, *range(900, 1000, 5)):
        body = b'{"status": "failed",' + b"{".join(b'"%s":' % name.encode() for name in path.split("."))
        body += nested(depth, kind) + b"}" * (path.count(".") + 1)
        for call, http_status in ((CHECK, 200), (COLLECT, 200), (CANCEL, 200), (CHECK, 400)):
            assert_is_a_reply(read(call, body, http_status))


WRONG: list[Any] = [None, True, 0, -1.5, "", "x", "\ud800", [], [None], [[]], {}, {"a": {}}, {"\ud800": 1}]


@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_a_field_of_any_type_has_a_reply(path: list[str]) -> None:
    for value in WRONG:
        body: Any = value
        for name in reversed(path):
            body = {name: body}
        for call, http_status in ((CHECK, 200), (COLLECT, 200), (CANCEL, 200), (CHECK, 404), (CHECK, 409)):
            assert_is_a_reply(read(call, body, http_status))


def test_naive_times_are_in_utc() -> None:
    item = found({"artifacts": [{"url": VIDEO, "expires_at": "2026-03-01T12:00:00"}]})[0]
    assert item.expires_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
