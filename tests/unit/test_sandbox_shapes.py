"""Every shape of the sandbox's answers means the same to a reader who knows the contract and nothing of the shapes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sume_sandbox.outputs import CONTENT_POLICY_REJECTED, GENERATION_FAILED, Output
from sume_sandbox.shape_table import SHAPES, Shape, shape_of
from sume_sandbox.shapes import ResultFacts, StatusFacts, cancel_body, result_body, status_body, submit_body
from sume_sandbox.states import JobState, meaning

NEVER_MEDIA = {"status_url", "result_url", "events_url", "api_url", "webhook_url", "callback_url"}
URL_KEYS = ("url", "public_url", "media_url", "video_url", "image_url")

shapes = st.sampled_from(SHAPES)
job_ids = st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True)
states = st.sampled_from(tuple(JobState))
kinds = st.sampled_from(("video", "image", "audio", "idle-loop", "status"))


def payload_of(body: dict[str, Any]) -> dict[str, Any]:
    data = body.get("data")
    return data if isinstance(data, dict) else body


def field_of(body: dict[str, Any], name: str) -> Any:
    payload = payload_of(body)
    return payload.get(name, payload.get("job", {}).get(name))


def word_of(body: dict[str, Any]) -> str:
    word = field_of(body, "sume_status") or field_of(body, "status")
    assert isinstance(word, str)
    return word


def outputs_of(body: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, address without its signature) of every output."""
    payload = payload_of(body)
    result = payload.get("result", {})
    artifacts = result.get("artifacts", payload.get("artifacts"))
    if artifacts is None:
        found = [(key.removesuffix("_url"), url) for key, url in result.items() if key not in NEVER_MEDIA]
    elif isinstance(artifacts, dict):
        found = [(kind, address_of(artifact)) for kind, artifact in artifacts.items()]
    else:
        found = [(artifact.get("type") or artifact["kind"], address_of(artifact)) for artifact in artifacts]
    return [(kind, url.partition("?")[0]) for kind, url in found]


def address_of(artifact: dict[str, str]) -> str:
    return next(artifact[key] for key in URL_KEYS if key in artifact)


@given(shape=shapes, job_id=job_ids, state=states, delay_s=st.floats(0.5, 1e6))
def test_a_status_means_the_same_in_every_shape(shape: Shape, job_id: str, state: JobState, delay_s: float) -> None:
    delay = None if state.ended else delay_s
    body = status_body(StatusFacts(job_id=job_id, word=state, ended=state.ended, next_poll_s=delay), shape)
    assert meaning(word_of(body)) is state
    assert field_of(body, "terminal") in (state.ended, None)
    said = field_of(body, "next_poll_after_seconds")
    assert (None if said is None else float(said)) == delay


@given(shape=shapes, job_id=job_ids, state=states)
def test_a_root_request_id_beside_data_is_no_job_id(shape: Shape, job_id: str, state: JobState) -> None:
    body = status_body(StatusFacts(job_id=job_id, word=state, ended=state.ended), shape)
    named = {payload_of(body).get(key, job_id) for key in ("request_id", "job_id")}
    assert named | {payload_of(body).get("job", {}).get("id", job_id)} == {job_id}
    if "data" in body and "request_id" in body:
        assert body["request_id"] != job_id


@given(shape=shapes, job_id=job_ids, by_policy=st.booleans())
def test_a_failure_says_why_in_every_shape(shape: Shape, job_id: str, by_policy: bool) -> None:
    error = CONTENT_POLICY_REJECTED if by_policy else GENERATION_FAILED
    body = status_body(StatusFacts(job_id=job_id, word=JobState.FAILED, ended=True, error=error), shape)
    assert meaning(word_of(body)) is JobState.FAILED
    assert payload_of(body)["job"]["error"].get("public_reason") == error.public_reason
    assert by_policy or word_of(body).strip().lower() != "nsfw"


@given(shape=shapes, word=st.text(min_size=1).filter(lambda word: word not in tuple(JobState)), ended=st.booleans())
def test_a_word_that_is_no_plain_state_is_said_as_it_is(shape: Shape, word: str, ended: bool) -> None:
    body = status_body(StatusFacts(job_id="job_1", word=word, ended=ended, terminal=ended), shape)
    assert word_of(body) == word
    assert field_of(body, "terminal") is ended


@given(shape=shapes, job_id=job_ids, chosen=st.lists(kinds, max_size=5), expires_at_s=st.integers(0, 2_000_000_000))
def test_no_output_is_lost_in_any_shape(shape: Shape, job_id: str, chosen: list[str], expires_at_s: int) -> None:
    outputs = tuple(Output(kind=kind, url=f"https://media.example/{n}.bin") for n, kind in enumerate(chosen))
    body = result_body(ResultFacts(job_id=job_id, outputs=outputs, expires_at_s=expires_at_s), shape)
    assert outputs_of(body) == [(output.kind, output.url) for output in outputs]


@given(shape=shapes, job_id=job_ids, replayed=st.booleans())
def test_a_submission_names_its_job_in_every_shape(shape: Shape, job_id: str, replayed: bool) -> None:
    body = submit_body(job_id, JobState.QUEUED, replayed=replayed, shape=shape)
    payload = payload_of(body)
    keys = ("job_id", "request_id", "id") if "data" in body else ("job_id", "id")  # at the root it would be a trace id
    found = next((payload[key] for key in keys if key in payload), None) or payload["job"]["id"]
    assert found == job_id
    assert payload["idempotency_hit"] is replayed


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cancellation_is_said_in_every_shape(shape: Shape) -> None:
    payload = payload_of(cancel_body("job_1", shape))
    assert payload == {"request_id": "job_1", "job_id": "job_1", "status": "CANCELED", "canceled": True}


def test_a_job_keeps_its_shape_and_jobs_use_all_shapes() -> None:
    assert all(shape_of(f"job_{n}") is shape_of(f"job_{n}") for n in range(10))
    assert {shape_of(f"job_{n}") for n in range(500)} == set(SHAPES)


def test_the_shapes_cover_every_choice_of_the_contract() -> None:
    assert {shape.wrapped for shape in SHAPES} == {True, False}
    assert {shape.outputs_in for shape in SHAPES} == {"result.artifacts", "artifacts", "loose"}
    assert {shape.url_key for shape in SHAPES} == {"url", "public_url", "media_url", "typed"}
    assert {shape.submit_id for shape in SHAPES} == {"request_id", "job_id", "id", "job.id"}
    assert {shape.casing for shape in SHAPES} == {"lower", "upper", "title", "padded"}
    for name in ("says_terminal", "numbers_as_text", "by_kind", "signed", "root_trace", "tells_usage", "recommends"):
        assert {getattr(shape, name) for shape in SHAPES} == {True, False}, name


def test_a_charge_is_kept_on_success_only() -> None:
    def usage(state: JobState) -> Any:
        facts = StatusFacts(job_id="job_1", word=state, ended=state.ended)
        return payload_of(status_body(facts, SHAPES[0]))["usage"]["status"]

    assert [usage(state) for state in JobState] == ["reserved", "reserved", "charged", "refunded", "refunded"]
