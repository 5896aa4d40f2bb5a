"""Objects as the API server sends them -> values, and back."""

from datetime import UTC, datetime
from typing import Any

import pytest

from builders import NOW, at, completed, following, merged
from sume_operator.core.render import (
    FINALIZER,
    POLL_REQUESTED_AT,
    MalformedObjectError,
    Ref,
    SecretRef,
    parse_render,
    ref_of,
)
from sume_operator.core.status import Status, format_time, parse_status, parse_time, to_body

METADATA: dict[str, Any] = {"namespace": "studio", "name": "intro", "uid": "5e0b-1"}


def body(**parts: Any) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {"jobID": "job_1"}} | parts


def test_a_new_object() -> None:
    render = parse_render(body())
    assert render.ref == Ref("studio", "intro", "5e0b-1")
    assert (render.job_id, render.followed_job_id, render.generation) == ("job_1", "job_1", 1)
    assert (render.status, render.credentials, render.suspend, render.cancel) == (Status(), None, False, False)
    assert not render.is_observed


def test_every_field() -> None:
    metadata = METADATA | {
        "resourceVersion": "77",
        "generation": 3,
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "deletionTimestamp": "2026-03-01T12:00:09Z",
        "finalizers": [FINALIZER, "x/y"],
        "annotations": {POLL_REQUESTED_AT: "now", "other": "x"},
    }
    spec = {
        "request": {"model": "m"},
        "suspend": True,
        "cancel": True,
        "activeDeadlineSeconds": 60,
        "ttlSecondsAfterFinished": 0,
        "deletionPolicy": "Orphan",
        "credentialsSecretRef": {"name": "sume", "key": "k"},
    }
    status = {"observedGeneration": 3, "lastHandledPollRequest": "now", "jobID": "job_2", "state": "Queued"}
    render = parse_render({"metadata": metadata, "spec": spec, "status": status})
    assert (render.resource_version, render.generation) == ("77", 3)
    assert (render.creation_time, render.deletion_time) == (NOW, at(9))
    assert (render.has_finalizer, render.poll_request, render.is_observed) == (True, "now", True)
    assert (render.followed_job_id, render.job_id) == (None, "job_2")
    assert (render.suspend, render.cancel, render.active_deadline_s, render.ttl_after_finished_s) == (True, True, 60, 0)
    assert (render.deletion_policy, render.credentials) == ("Orphan", SecretRef(name="sume", key="k"))
    assert render.status.state == "Queued"


def test_the_secrets_key_has_a_default() -> None:
    render = parse_render(body(spec={"jobID": "j", "credentialsSecretRef": {"name": "sume"}}))
    assert render.credentials == SecretRef(name="sume", key="apiKey")


@pytest.mark.parametrize(
    ("spec", "cancels"),
    [
        ({"jobID": "j"}, False),
        ({"request": {"model": "m"}}, True),
        ({"jobID": "j", "deletionPolicy": "Cancel"}, True),
        ({"jobID": "j", "deletionPolicy": "Orphan"}, False),
        ({"request": {"model": "m"}, "deletionPolicy": "Orphan"}, False),
    ],
    ids=str,
)
def test_whether_deletion_cancels(spec: dict[str, Any], cancels: bool) -> None:
    assert parse_render(body(spec=spec)).deletion_cancels is cancels


@pytest.mark.parametrize(
    ("generation", "request_", "status", "is_observed"),
    [
        (1, None, {}, False),
        (1, None, {"observedGeneration": 1}, True),
        (2, None, {"observedGeneration": 1}, False),
        (1, "a", {"observedGeneration": 1}, False),
        (1, "a", {"observedGeneration": 1, "lastHandledPollRequest": "a"}, True),
        (1, "b", {"observedGeneration": 1, "lastHandledPollRequest": "a"}, False),
        (1, None, {"observedGeneration": 1, "lastHandledPollRequest": "a"}, True),
        (1, "", {"observedGeneration": 1}, True),
    ],
    ids=str,
)
def test_whether_a_status_is_up_to_date(
    generation: int, request_: str | None, status: dict[str, Any], is_observed: bool
) -> None:
    annotations = {} if request_ is None else {POLL_REQUESTED_AT: request_}
    metadata = METADATA | {"generation": generation, "annotations": annotations}
    assert parse_render(body(metadata=metadata, status=status)).is_observed is is_observed


def test_a_long_poll_request_is_cut_as_it_is_echoed() -> None:
    render = parse_render(body(metadata=METADATA | {"annotations": {POLL_REQUESTED_AT: "p" * 5000}}))
    assert render.poll_request == "p" * 128


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {"name": "n", "uid": "u"}},
        {"metadata": "x"},
        body(spec=[1]),
        body(spec="x"),
        body(spec={"jobID": "j", "credentialsSecretRef": {"key": "k"}}),
        body(metadata=METADATA | {"generation": "many"}),
        body(metadata=METADATA | {"creationTimestamp": "yesterday"}),
        body(metadata=METADATA | {"annotations": ["x"]}),
        body(status={"startTime": "soon"}),
        body(status={"startTime": 7}),
        body(status={"observedGeneration": "x"}),
        body(status={"polling": {"count": "x"}}),
        body(status={"polling": [1]}),
        body(status={"outputs": [{"name": "video"}]}),
        body(status={"outputs": 7}),
        body(status={"conditions": [{"type": "Synced"}]}),
        body(status={"conditions": [{"type": "Synced", "status": "True", "reason": "R", "message": ""}]}),
    ],
    ids=lambda strange: str(strange)[-70:],
)
def test_what_is_no_render_says_so(strange: dict[str, Any]) -> None:
    with pytest.raises(MalformedObjectError):
        parse_render(strange)


def test_a_missing_spec_is_no_reason_to_fail() -> None:
    assert parse_render({"metadata": METADATA}).job_id is None


@pytest.mark.parametrize(
    ("member", "ref"),
    [
        ("studio/intro/5e0b-1", Ref("studio", "intro", "5e0b-1")),
        ("job_0b6f", None),
        ("studio/intro", None),
        ("studio/intro/5e0b-1/x", None),
        ("studio//5e0b-1", None),
        ("//", None),
        ("", None),
    ],
)
def test_members_of_the_set(member: str, ref: Ref | None) -> None:
    assert Ref.parse(member) == ref
    if ref:
        assert ref.member == member
        assert str(ref) == "studio/intro"
        assert ref_of(body()) == ref


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        (None, None),
        ("", None),
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01T14:00:00+02:00", NOW),
        ("2026-03-01T12:00:00.000000Z", NOW),
        ("2026-03-01T12:00:00", NOW),
    ],
)
def test_times(text: str | None, instant: datetime | None) -> None:
    assert parse_time(text) == instant


def test_times_are_written_in_whole_seconds() -> None:
    assert format_time(datetime(2026, 3, 1, 12, 0, 0, 999_999, UTC)) == "2026-03-01T12:00:00Z"
    assert format_time(None) is None


def test_every_field_is_named_so_that_a_patch_removes_it() -> None:
    old, new = merged({}, to_body(completed().status)), to_body(Status())
    assert {name for name, value in new.items() if value is None} > {"outputs", "usage", "error", "completionTime"}
    left = merged(old, new)
    assert set(left) == {"observedGeneration", "state", "terminal", "polling", "conditions"}
    assert parse_status(left) == Status()


def test_no_null_stands_in_a_list() -> None:
    """A merge patch would take it for a value, and the schema refuse it."""
    for output in to_body(completed().status)["outputs"]:
        assert None not in output.values()


def test_outputs_are_never_shown() -> None:
    shown = repr(completed())
    assert "video" in shown
    assert "media.sume.com" not in shown


@pytest.mark.parametrize(
    "streak",
    [{"kind": "JobNotFound", "count": 3}, {}, None, {"since": None}],
    ids=["no time", "empty", "null", "null time"],
)
def test_half_a_streak_is_none(streak: Any) -> None:
    assert parse_status({"polling": {"streak": streak}}).polling.streak is None
    assert parse_status({"cancellation": streak}).cancellation is None


def test_a_state_is_never_empty() -> None:
    assert (parse_status({"state": ""}).state, parse_status({"terminal": "true"}).terminal) == ("Pending", False)
    assert following().status == Status()
