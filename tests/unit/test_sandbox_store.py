"""The sandbox's jobs, slots, fates, read budget and faults, with the clock as an argument."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sume_sandbox.admin_input import FaultInput, JobInput, KeysInput, complaint
from sume_sandbox.answer import Answer
from sume_sandbox.budget import ReadBudget
from sume_sandbox.config import SandboxConfig
from sume_sandbox.fates import Fate, Refusal, fate_of, refusal_of
from sume_sandbox.faults import Faults
from sume_sandbox.job import Job
from sume_sandbox.keys import Keys, presented_key
from sume_sandbox.lanes import Lanes, Timing
from sume_sandbox.states import JobState, meaning
from sume_sandbox.store import CancelOutcome, JobStore, Submission

CONFIG = SandboxConfig(queue_s=2, process_s=10, running_slots=2, queued_slots=3)


def submit(store: JobStore, now_s: float, key: str | None = None, workspace: str = "w", model: str = "m") -> Job | None:
    submission = Submission(workspace=workspace, model=model, kind="video", idempotency_key=key)
    return store.replay(submission, now_s) or store.submit(submission, now_s)


def made(store: JobStore, now_s: float, key: str | None = None, workspace: str = "w", model: str = "m") -> Job:
    job = submit(store, now_s, key, workspace, model)
    assert job is not None
    return job


def state(store: JobStore, job: Job, now_s: float) -> JobState | None:
    found = store.find(job.job_id, now_s)
    assert found is job
    return found.state_at(now_s)


def test_a_submitted_job_queues_runs_and_ends_by_the_clock() -> None:
    store = JobStore(CONFIG)
    job = made(store, 0)
    at = {now_s: state(store, job, now_s) for now_s in (0, 1.9, 2, 11.9, 12)}
    assert list(at.values()) == ["queued", "queued", "processing", "processing", "completed"]


def test_jobs_run_first_in_first_out_in_the_slots_of_their_workspace() -> None:
    store = JobStore(CONFIG)
    jobs = [made(store, 0) for _ in range(5)]
    assert submit(store, 0) is None
    assert submit(store, 0, workspace="other") is not None
    assert [state(store, job, 2) for job in jobs] == ["processing"] * 2 + ["queued"] * 3
    assert [state(store, job, 12) for job in jobs] == ["completed"] * 2 + ["processing"] * 2 + ["queued"]
    assert [state(store, job, 22) for job in jobs] == ["completed"] * 4 + ["processing"]
    assert state(store, jobs[4], 32) is JobState.COMPLETED
    assert store.max_active == {"other": 1, "w": 5}
    assert submit(store, 32) is not None


@given(
    st.lists(st.tuples(st.floats(0, 20), st.floats(0, 5), st.floats(0, 30)), max_size=30),
    st.integers(1, 4),
    st.floats(0, 200),
)
def test_slots_are_never_exceeded_and_the_outcome_does_not_depend_on_when_one_looks(
    jobs: list[tuple[float, float, float]], running_slots: int, looked_at_s: float
) -> None:
    def played(looks: bool) -> list[float | None]:
        lanes = Lanes(running_slots=running_slots, queued_slots=100)
        timings, now_s = [], 0.0
        for gap_s, queue_s, process_s in jobs:
            if looks:
                lanes.advance(now_s + gap_s / 2)
            now_s += gap_s
            lanes.advance(now_s)
            timings.append(Timing(ready_at_s=now_s + queue_s, process_s=process_s))
            lanes.add(timings[-1], now_s)
        if looks:
            lanes.advance(now_s + looked_at_s)
        lanes.advance(now_s + 10_000)
        starts = [(timing.started_at_s, timing.ends_at_s) for timing in timings]
        for started_at_s, _ in starts:
            assert started_at_s is not None
            assert sum(start is not None and start <= started_at_s < end for start, end in starts) <= running_slots
        return [timing.started_at_s for timing in timings]

    starts = played(looks=False)
    assert starts == played(looks=True)
    assert starts == sorted(starts, key=lambda start: start or 0.0)


def test_the_same_idempotency_key_never_makes_a_second_job() -> None:
    store = JobStore(CONFIG)
    first = made(store, 0, key="k")
    assert made(store, 1, key="k") is first
    assert made(store, 1, key="k", workspace="other") is not first
    assert made(store, 1).job_id != made(store, 1).job_id
    assert store.submitted == 4
    restarted = JobStore(CONFIG)
    assert made(restarted, 0, key="k").job_id == first.job_id


def test_an_unknown_job_is_adopted_as_running_and_takes_no_slot() -> None:
    store = JobStore(CONFIG)
    job = store.look("job_demo-slow", 100)
    assert job is not None
    assert state(store, job, 100) is JobState.PROCESSING
    assert state(store, job, 199) is JobState.PROCESSING
    assert state(store, job, 200) is JobState.COMPLETED
    assert store.max_active == {}
    assert store.look("job_missing", 0) is None
    assert store.look("no/job", 0) is None
    assert {job.job_id for job in store.all(0)} == {"job_demo-slow"}


def test_canceling_depends_on_the_state() -> None:
    store = JobStore(CONFIG)
    jobs = [made(store, 0) for _ in range(3)]
    assert store.cancel(jobs[2], 0) is CancelOutcome.CANCELED
    assert state(store, jobs[2], 5) is JobState.CANCELED
    assert store.cancel(jobs[2], 5) is CancelOutcome.ENDED
    store.find(jobs[0].job_id, 5)
    assert store.cancel(jobs[0], 5) is CancelOutcome.ALREADY_STARTED
    assert store.cancel(jobs[0], 12) is CancelOutcome.ENDED


def test_a_canceled_job_frees_its_slot_for_the_next() -> None:
    store = JobStore(SandboxConfig(queue_s=0, process_s=10, running_slots=1, queued_slots=1, cancel_running=True))
    first, second = made(store, 0), made(store, 0)
    assert submit(store, 1) is None
    assert store.cancel(first, 1) is CancelOutcome.CANCELED
    assert state(store, second, 1) is JobState.PROCESSING
    assert state(store, second, 11) is JobState.COMPLETED


def test_a_script_gives_each_read_its_entry_and_repeats_the_last() -> None:
    store = JobStore(CONFIG)
    script = JobInput.model_validate({"script": [{"status": "queued"}, {"http_status": 500}, {"status": "Success"}]})
    job = store.script("job_missing", script, 0)
    assert store.look("job_missing", 0) is job
    assert job.state_at(0) is JobState.QUEUED
    told = [entry.status for _ in range(4) if (entry := job.next_entry())]
    assert told == ["queued", None, "Success", "Success"]
    assert job.state_at(0) is JobState.COMPLETED


def test_a_scripted_job_is_canceled_only_where_the_script_allows_it() -> None:
    store = JobStore(CONFIG)
    for cancelable, outcome in ((True, CancelOutcome.CANCELED), (False, CancelOutcome.ALREADY_STARTED)):
        script = JobInput.model_validate({"script": [{"status": "processing"}], "cancelable": cancelable})
        job = store.script("job_1", script, 0)
        assert store.cancel(job, 0) is outcome
        assert (job.state_at(0), job.next_entry() is None) == (
            (JobState.CANCELED, True) if cancelable else (JobState.PROCESSING, False)
        )


def test_scripting_a_submitted_job_frees_its_slot() -> None:
    store = JobStore(SandboxConfig(running_slots=1, queued_slots=0))
    job = made(store, 0)
    store.script(job.job_id, JobInput.model_validate({"script": [{"status": "processing"}]}), 0)
    assert submit(store, 0) is not None


@pytest.mark.parametrize(
    ("job_id", "fate"),
    [
        ("job_plain", Fate()),
        ("job_FAIL", Fate(ending=JobState.FAILED)),
        ("job_nsfw", Fate(ending=JobState.FAILED, by_policy=True)),
        ("job_cancel", Fate(ending=JobState.CANCELED)),
        ("job_slow-multi-image", Fate(slowness=10, several=True, kind="image")),
        ("job_missing", Fate(unknown=True)),
        ("job_expired", Fate(result_gone=True)),
    ],
)
def test_words_in_a_job_id_choose_its_fate(job_id: str, fate: Fate) -> None:
    assert fate_of(job_id, seed=0, failing_share=0) == fate


def test_words_in_a_model_choose_the_fate_of_a_submitted_job() -> None:
    fate = fate_of("job_fail", seed=0, failing_share=0, model="demo/slow-image-to-video-missing")
    assert fate == Fate(slowness=10)


def test_a_share_of_jobs_fails_always_the_same_ones() -> None:
    def fates(seed: int) -> list[Fate]:
        return [fate_of(f"job_{n}", seed=seed, failing_share=0.2) for n in range(1000)]

    failed = [fate for fate in fates(1) if fate.ending is JobState.FAILED]
    assert 150 < len(failed) < 250
    assert 20 < sum(fate.by_policy for fate in failed) < 90
    assert fates(1) == fates(1) != fates(2)


@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        ("sume/avatar-video/v1.0", None),
        ("invalid-model", Refusal.INVALID),
        ("sume/invalid-model/v1", Refusal.INVALID),
        ("not-invalid-model", None),
        ("demo-no-credits", Refusal.NO_CREDITS),
    ],
)
def test_some_models_are_refused(model: str, refusal: Refusal | None) -> None:
    assert refusal_of(model) is refusal


@pytest.mark.parametrize(
    ("word", "expected"),
    [(" NSFW ", JobState.FAILED), ("Running", JobState.PROCESSING), ("succeeded", JobState.COMPLETED), ("odd", None)],
)
def test_status_words_have_a_meaning(word: str, expected: JobState | None) -> None:
    assert meaning(word) is expected


def test_reads_are_counted_per_workspace_in_windows_of_a_minute() -> None:
    budget = ReadBudget(2)
    taken = [budget.take("w", now_s) for now_s in (100, 110.5, 111, 160)]
    assert [(a.granted, a.remaining, a.reset_s) for a in taken if a] == [
        (True, 1, 60),
        (True, 0, 50),
        (False, 0, 49),
        (True, 1, 60),
    ]
    other = budget.take("other", 111)
    assert other is not None
    assert other.headers == {"ratelimit-limit": "2", "ratelimit-remaining": "1", "ratelimit-reset": "60"}
    assert ReadBudget(0).take("w", 0) is None


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"Authorization": "Bearer k"}, "k"),
        ({"Authorization": "bearer  k "}, "k"),
        ({"x-api-key": "k"}, "k"),
        ({"Authorization": "Basic k", "x-api-key": "k"}, None),
        ({"Authorization": "Bearer "}, None),
        ({"x-api-key": " "}, None),
        ({}, None),
    ],
)
def test_a_key_is_presented_in_one_of_two_headers(headers: dict[str, str], key: str | None) -> None:
    assert presented_key(headers) == key


def test_two_keys_can_share_a_workspace() -> None:
    keys = Keys(frozenset({"a"}))
    keys.replace({"b": "studio", "c": "studio", "d": None})
    workspaces = [caller.workspace if (caller := keys.caller(key)) else None for key in ("a", "b", "c", "d")]
    assert workspaces[:3] == [None, "studio", "studio"]
    assert workspaces[3] in keys.fingerprints


def test_a_fault_skips_then_strikes_then_is_spent() -> None:
    faults = Faults()
    fault = faults.add(
        FaultInput.model_validate({"job": "a", "operation": "status", "after": 1, "times": 2, "drop": True})
    )
    struck = [faults.meet("status", "a", None) is fault for _ in range(5)]
    assert struck == [False, True, True, False, False]
    assert faults.meet("status", "b", None) is None
    assert faults.meet("result", "a", None) is None
    described = faults.describe()[0]
    assert (described["id"], described["matched"], described["hits"]) == (fault.fault_id, 3, 2)


@pytest.mark.parametrize(
    ("rule", "works", "http_status", "dropped"),
    [
        ({"delay_s": 1}, True, 202, False),
        ({"headers": {"x": "y"}}, True, 202, False),
        ({"http_status": 503}, False, 503, False),
        ({"json": None}, False, 200, False),
        ({"drop": True}, False, 200, True),
        ({"drop_after_effect": True}, True, 202, True),
        ({"http_status": 502, "after_effect": True}, True, 502, False),
    ],
)
def test_a_fault_replaces_the_work_or_only_its_answer(
    rule: dict[str, object], works: bool, http_status: int, dropped: bool
) -> None:
    worked = []

    def work() -> Answer:
        worked.append(True)
        return Answer(http_status=202)

    answer = Faults().add(FaultInput.model_validate(rule)).apply(work)
    assert (bool(worked), answer.http_status, answer.drop) == (works, http_status, dropped)


@pytest.mark.parametrize(
    ("given_script", "complains_of"),
    [
        ({"script": [{}]}, "script.0"),
        ({"script": [{"status": "queued", "http_status": 500}]}, "script.0"),
        ({"script": [{"http_status": 500, "terminal": True}]}, "script.0"),
        ({"script": [{"status": 5}]}, "script.0.status"),
        ({"script": [{"body": "x", "headers": {"a b": "c"}}]}, "script.0.headers"),
        ({"script": [{"body": "x", "headers": {"a": "b\r\nc: d"}}]}, "script.0.headers"),
        ({"script": [{"body": "x", "headers": {"Content-Length": "7"}}]}, "script.0.headers"),
        ({"scrip": []}, "scrip"),
        ({"outputs": [{"kind": "video"}]}, "outputs.0.url"),
    ],
)
def test_bad_scripts_are_refused_by_the_name_of_the_field(given_script: object, complains_of: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobInput.model_validate(given_script)
    assert complaint(caught.value).startswith(f"{complains_of}: ")


def test_a_complaint_about_keys_never_holds_one() -> None:
    with pytest.raises(ValidationError) as caught:
        KeysInput.model_validate({"keys": {"s3cret": 5}})
    assert "s3cret" not in complaint(caught.value)
