"""A render that asks Sume for its job: paid once, whatever dies on the way."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from kube import Body, condition, eventually, is_finished, status
from stack import POINTS_OF_A_REQUEST, Stack
from sume_operator.core.render import FINALIZER
from sume_operator.runtime.failpoints import Failpoint

REQUEST: Body = {"model": "sume/clip-fast", "arguments": {"prompt": "a dog", "seconds": 5}}
# Budgets are for other tests: here many jobs are asked for in a short time.
UNLIMITED = {"SUME_SUBMISSIONS_PER_MINUTE": "0", "SUME_READS_PER_MINUTE": "0"}


def _start(stack: Stack, *options: str, pollers: int = 1, **variables: str) -> str:
    stack.start_sandbox("--queue-s", "0.2", "--process-s", "0.8", "--next-poll-s", "0.3", *options)
    stack.start("controller", ready=False, **(UNLIMITED | variables))
    for number in range(pollers):
        stack.start("poller", f"poller-{number}", ready=False, **(UNLIMITED | variables))
    for name, port in stack.ports.items():
        stack.wait_ready(port, name)
    return stack.namespaces[0]


def _ended(stack: Stack, namespace: str, name: str, within_s: float = 15) -> Body:
    eventually(lambda: is_finished(stack.kube.get(namespace, name)), within_s=within_s)
    return stack.kube.get(namespace, name)


def _jobs_made(stack: Stack) -> int:
    return int(stack.sandbox.stats()["jobs"]["submitted"])


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [(None, "clip-fast"), ("ImageRouter", "flux.2"), (None, "sume/avatar-video/v1.0"), ("VideoRouter", "sume/clip")],
)
def test_a_render_from_request_to_output(stack: Stack, endpoint: str | None, model: str) -> None:
    namespace = _start(stack)
    request = REQUEST | {"model": model} | ({"endpoint": endpoint} if endpoint else {})
    made = stack.kube.create(namespace, "one", {"request": request})
    render = _ended(stack, namespace, "one")
    assert condition(render, "Succeeded") == ("True", "Completed")
    assert condition(render, "Submitted") == ("True", "Created")
    assert status(render)["outputs"][0]["url"].startswith("https://")
    submission = status(render)["submission"]
    assert submission["attempts"] == 1
    assert submission["idempotencyKey"] == made["metadata"]["uid"]
    job = status(render)["jobID"]
    annotations = render["metadata"]["annotations"]
    assert annotations["render.sume.com/job-id"] == f"{namespace}/one/{job}"
    assert annotations["render.sume.com/idempotency-key"] == f"{namespace}/one/{made['metadata']['uid']}"
    assert FINALIZER not in render["metadata"].get("finalizers", [])
    assert stack.sandbox.job(job)["idempotency_key"] == made["metadata"]["uid"]
    reasons = [event["reason"] for event in stack.kube.events(namespace, "one")]
    assert {"RenderSubmitted", "RenderCompleted"} <= set(reasons)
    stack.wait_empty(within_s=5)


def _with(variables: dict[str, str], **more: str) -> Any:
    """Settings for Stack.start, some of them others."""
    return variables | more


POINTS = [
    Failpoint.AFTER_CLAIM,
    *POINTS_OF_A_REQUEST,
    Failpoint.BEFORE_CALL,
    Failpoint.AFTER_CALL,
    Failpoint.BEFORE_WRITE,
    Failpoint.AFTER_WRITE,
    Failpoint.BEFORE_SETTLE,
]


@pytest.mark.timeout(180)
def test_killed_at_each_step_around_the_post(stack: Stack) -> None:
    """One poller dies at each step, one lives: one job per object all the same, and no slot is left over."""
    namespace = _start(stack, pollers=0, SUME_MAX_ACTIVE_JOBS="30", SUME_SUBMIT_TIMEOUT_SECONDS="2")
    more = UNLIMITED | {"SUME_MAX_ACTIVE_JOBS": "30", "SUME_SUBMIT_TIMEOUT_SECONDS": "2", "SUME_CONCURRENCY": "1"}
    doomed = []
    for point in POINTS:
        doomed.append(stack.start("poller", f"doomed-{point}", ready=False, **_with(more, SUME_FAILPOINT=point.value)))
    names = [f"r-{number}" for number in range(40)]
    for name in names:
        stack.kube.create(namespace, name, {"request": REQUEST})
    for process in doomed:
        assert process.wait(timeout_s=40) == -signal.SIGKILL, process.name
    stack.start("poller", "healthy", **_with(more, SUME_CONCURRENCY="8"))
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=80, every_s=0.5)
    reasons = {condition(render, "Succeeded")[1] for render in stack.kube.all_in([namespace])}
    assert reasons == {"Completed"}
    assert _jobs_made(stack) == len(names)
    slots = list(stack.client.keys("sume:polls:slots:*"))
    eventually(lambda: sum(stack.client.zcard(key) for key in slots) == 0, within_s=20)


def test_a_crash_past_the_intent_is_told_once(stack: Stack) -> None:
    """Whoever comes next knows only that Sume may have been asked; it says so before it asks, and never again."""
    namespace = _start(stack, pollers=0)
    stack.kube.create(namespace, "one", {"request": REQUEST})

    def told() -> list[str]:
        reasons = [event["reason"] for event in stack.kube.events(namespace, "one")]
        return [reason for reason in reasons if reason.startswith(("Submission", "RenderSubmitted"))]

    for crash, expected in enumerate(([], ["SubmissionOutcomeUnknown"])):
        doomed = stack.start("poller", f"doomed-{crash}", ready=False, SUME_FAILPOINT=Failpoint.AFTER_INTENT.value)
        assert doomed.wait(timeout_s=20) == -signal.SIGKILL
        assert told() == expected
    stack.start("poller", "healthy", ready=False)
    render = _ended(stack, namespace, "one", within_s=20)
    assert condition(render, "Submitted") == ("True", "Created")
    assert status(render)["submission"]["attempts"] == 3
    assert sorted(told()) == ["RenderSubmitted", "SubmissionOutcomeUnknown"]
    assert _jobs_made(stack) == 1


@pytest.mark.parametrize(
    "fault",
    [{"drop_after_effect": True}, {"http_status": 502, "after_effect": True, "body": "<html>"}, {"delay_s": 3.0}],
    ids=["dropped", "502 but made", "answered too late"],
)
def test_a_lost_answer_is_asked_for_again_with_the_same_key(stack: Stack, fault: dict[str, Any]) -> None:
    namespace = _start(stack, SUME_SUBMIT_TIMEOUT_SECONDS="2")
    stack.sandbox.fault(operation="submit", times=2, **fault)
    stack.kube.create(namespace, "one", {"request": REQUEST})
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Submitted")[1] == "OutcomeUnknown", within_s=10)
    render = _ended(stack, namespace, "one", 30)
    assert condition(render, "Submitted") == ("True", "AlreadyExists")
    assert status(render)["submission"]["attempts"] == 3
    assert _jobs_made(stack) == 1


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a model it does not know": ({}, "SubmissionRejected", "model"),
    "content": (
        {"http_status": 400, "json": {"error": {"code": "content_policy_rejected", "message": "Not this."}}},
        "ContentPolicyRejected",
        "Not this.",
    ),
    "never again": (
        {"http_status": 500, "json": {"error": {"code": "broken", "message": "Gone bad.", "retryable": False}}},
        "SubmissionRejected",
        "Gone bad.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_for_good(stack: Stack, name: str) -> None:
    fault, reason, text = REFUSED[name]
    namespace = _start(stack)
    model = "clip-fast" if fault else "invalid-model"
    if fault:
        stack.sandbox.fault(operation="submit", **fault)
    stack.kube.create(namespace, "one", {"request": REQUEST | {"model": model}})
    render = _ended(stack, namespace, "one")
    assert condition(render, "Succeeded") == ("False", reason)
    assert text in status(render)["message"]
    assert status(render)["error"]["source"] == "Submit"
    assert "finalizers" not in render["metadata"]
    assert _jobs_made(stack) == 0
    stack.wait_empty(within_s=5)


def test_no_credits_waits(stack: Stack) -> None:
    namespace = _start(stack, SUME_POLL_MAX_SECONDS="2")
    error = {"error": {"code": "insufficient_credits", "message": "Top up."}}
    stack.sandbox.fault(operation="submit", http_status=402, json=error)
    stack.kube.create(namespace, "one", {"request": REQUEST})
    eventually(
        lambda: condition(stack.kube.get(namespace, "one"), "Submitted")[1] == "InsufficientCredits", within_s=10
    )
    assert condition(stack.kube.get(namespace, "one"), "Succeeded") == ("Unknown", "InsufficientCredits")
    stack.sandbox.mend()
    assert condition(_ended(stack, namespace, "one"), "Succeeded")[1] == "Completed"


def test_a_failed_job_is_asked_for_again(stack: Stack) -> None:
    namespace = _start(stack)
    fails = REQUEST | {"model": "clip-fail"}
    made = stack.kube.create(namespace, "one", {"request": fails, "backoffLimit": 2})
    render = _ended(stack, namespace, "one", 25)
    assert condition(render, "Succeeded") == ("False", "JobFailed")
    assert len(status(render)["failedJobIDs"]) == 2
    assert status(render)["jobID"] not in status(render)["failedJobIDs"]
    assert status(render)["submission"]["idempotencyKey"] == f"{made['metadata']['uid']}/2"
    assert _jobs_made(stack) == 3


@pytest.mark.timeout(150)
def test_a_hundred_jobs_in_a_storm(stack: Stack, figures: Callable[[str], None]) -> None:
    """Pollers are killed, answers lost, statuses not written: one job per object, a hundred times out of a hundred."""
    more = {"SUME_SUBMIT_TIMEOUT_SECONDS": "1", "SUME_MAX_ACTIVE_JOBS": "0", "SUME_CONCURRENCY": "8"}
    namespace = _start(stack, pollers=3, **more)
    for after in range(0, 100, 5):
        stack.sandbox.fault(operation="submit", times=1, after=after // 2, drop_after_effect=True)
    for number in range(100):
        stack.kube.create(namespace, f"r-{number}", {"request": REQUEST})
    kills = 0
    for number in range(9):
        eventually(lambda: stack.sandbox.stats()["jobs"]["submitted"] >= 10 * number, within_s=40)  # noqa: B023
        name = f"poller-{number % 3}"
        stack.processes[name].kill()
        kills += 1
        stack.start("poller", name, ready=False, **_with(UNLIMITED, **more))
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=90, every_s=0.5)
    renders = stack.kube.all_in([namespace])
    stats = stack.sandbox.stats()
    figures(f"storm: {kills} kills, {stats['requests']['submit']} answers, {stats['jobs']['submitted']} jobs for 100")
    assert {condition(render, "Succeeded")[1] for render in renders} == {"Completed"}
    assert len({status(render)["jobID"] for render in renders}) == 100
    assert stats["jobs"]["submitted"] == 100
    assert stats["requests"]["submit"]["dropped"] >= 10


@pytest.mark.timeout(150)
def test_a_share_of_all_jobs_fails_and_is_asked_for_again(stack: Stack, figures: Callable[[str], None]) -> None:
    """Then everything is exported, deleted and applied again without its status: no new job is made."""
    namespace = _start(stack, "--failing-share", "0.2", pollers=2, SUME_MAX_ACTIVE_JOBS="0")
    for number in range(40):
        stack.kube.create(namespace, f"r-{number}", {"request": REQUEST, "backoffLimit": 1})
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=60, every_s=0.3)
    renders = stack.kube.all_in([namespace])
    retried = [render for render in renders if status(render).get("failedJobIDs")]
    assert len(retried) >= 2
    for render in renders:
        failed = condition(render, "Succeeded")[1] == "JobFailed"
        assert len(status(render).get("failedJobIDs", [])) in ((1,) if failed else (0, 1))
    made = _jobs_made(stack)
    assert made == len(renders) + len(retried)
    figures(f"20 % fail: {made} jobs for {len(renders)} renders, {len(retried)} asked for again")

    for render in renders:
        stack.kube.delete(namespace, render["metadata"]["name"])
    eventually(lambda: not stack.kube.all_in([namespace]), within_s=20)
    for render in renders:
        metadata = {"annotations": render["metadata"]["annotations"]}
        stack.kube.create(namespace, render["metadata"]["name"], render["spec"], **metadata)
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=60, every_s=0.3)
    assert _jobs_made(stack) == made


def test_restored_without_its_status_it_pays_nothing(stack: Stack) -> None:
    """As from a backup, or applied again from an export: the annotations lead to the job."""
    namespace = _start(stack)
    stack.kube.create(namespace, "one", {"request": REQUEST})
    render = _ended(stack, namespace, "one")
    stack.kube.delete(namespace, "one")
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=5)
    annotations = render["metadata"]["annotations"]
    stack.kube.create(namespace, "one", render["spec"], annotations=annotations)
    again = _ended(stack, namespace, "one")
    assert status(again)["jobID"] == status(render)["jobID"]
    stack.kube.delete(namespace, "one")
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=5)
    key = {"render.sume.com/idempotency-key": annotations["render.sume.com/idempotency-key"]}
    stack.kube.create(namespace, "one", render["spec"], annotations=key)
    third = _ended(stack, namespace, "one")
    assert condition(third, "Submitted") == ("True", "AlreadyExists")
    assert _jobs_made(stack) == 1
    assert "OldJobReplayed" in [event["reason"] for event in stack.kube.events(namespace, "one")]


def test_deleted_while_its_answer_is_lost(stack: Stack) -> None:
    """Asked once more with the same key, and the job that this finds is canceled."""
    namespace = _start(stack, "--cancel-running", SUME_ERROR_SECONDS="4")
    stack.sandbox.fault(operation="submit", times=1, drop_after_effect=True)
    stack.kube.create(namespace, "one", {"request": REQUEST})
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Submitted")[1] == "OutcomeUnknown", within_s=10)
    stack.kube.delete(namespace, "one")
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=10)
    jobs = stack.sandbox.jobs()
    assert [job["cancels"] for job in jobs.values()] == [1]


def test_suspended_before_it_was_asked_for(stack: Stack) -> None:
    namespace = _start(stack)
    stack.kube.create(namespace, "one", {"request": REQUEST, "suspend": True})
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Submitted")[1] == "Suspended", within_s=10)
    stack.wait_empty(within_s=5)
    assert _jobs_made(stack) == 0
    stack.kube.edit(namespace, "one", suspend=False)
    assert condition(_ended(stack, namespace, "one"), "Succeeded")[1] == "Completed"


def test_canceled_before_it_was_asked_for(stack: Stack) -> None:
    namespace = _start(stack)
    stack.kube.create(namespace, "one", {"request": REQUEST, "suspend": True})
    eventually(lambda: status(stack.kube.get(namespace, "one")), within_s=10)
    stack.kube.edit(namespace, "one", cancel=True)
    assert condition(_ended(stack, namespace, "one"), "Succeeded") == ("False", "Canceled")
    assert _jobs_made(stack) == 0
