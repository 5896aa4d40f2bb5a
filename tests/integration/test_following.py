"""The main job: renders follow their jobs to the end, each read exactly as often as its job calls for."""

from functools import partial
from typing import Any

import pytest

from kube import Body, condition, eventually, is_finished, status
from stack import Stack, scripted

FATES: dict[str, tuple[dict[str, Any], str, str, int]] = {
    # word: (script, state, reason, status reads)
    "ready": (scripted("completed"), "Completed", "Completed", 1),
    "plain": (scripted("queued", "processing", "completed"), "Completed", "Completed", 3),
    "long": (scripted("queued", "queued", "processing", "processing", "completed"), "Completed", "Completed", 5),
    "fails": (
        scripted("queued", "processing", "failed", error={"code": "generation_failed", "message": "It broke."}),
        "Failed",
        "JobFailed",
        3,
    ),
    "nsfw": (
        scripted("processing", "failed", error={"code": "refused", "public_reason": "content_policy_rejected"}),
        "Failed",
        "ContentPolicyRejected",
        2,
    ),
    "canceled": (scripted("queued", "canceled"), "Canceled", "Canceled", 2),
}


@pytest.mark.timeout(180)
def test_three_hundred_renders(stack: Stack) -> None:
    stack.start_all(pollers=3)
    fates = [list(FATES)[number % len(FATES)] for number in range(300)]
    jobs = {f"job_{fate}-{number}": FATES[fate] for number, fate in enumerate(fates)}
    stack.sandbox.script({job: fate[0] for job, fate in jobs.items()})

    for number, job in enumerate(jobs):
        stack.kube.create(stack.namespaces[number % 3], f"render-{number}", {"jobID": job})
    eventually(lambda: all(map(is_finished, stack.kube.all_in(stack.namespaces))), within_s=90, every_s=0.5)

    renders = stack.kube.all_in(stack.namespaces)
    assert len(renders) == 300
    seen = stack.sandbox.jobs()
    for render in renders:
        job = render["spec"]["jobID"]
        _script, state, reason, reads = jobs[job]
        assert (status(render)["state"], condition(render, "Succeeded")[1]) == (state, reason), job
        assert status(render)["polling"]["count"] == reads == seen[job]["status_reads"], job
        assert seen[job]["overlapping_reads"] == 0
        assert seen[job]["result_reads"] == (1 if state == "Completed" else 0)
        assert bool(status(render).get("outputs")) == (state == "Completed")
        assert {c["observedGeneration"] for c in status(render)["conditions"]} == {render["metadata"]["generation"]}
    stack.wait_empty(within_s=5)
    assert stack.queue()["size"] == 0


def test_the_status_is_written_after_each_answer(stack: Stack) -> None:
    stack.start_all()
    stack.sandbox.script({"job_1": scripted("queued", "processing", "processing", next_poll_s=0.6)})
    namespace = stack.namespaces[0]
    stack.kube.create(namespace, "one", {"jobID": "job_1"})
    seen: list[Body] = []
    for reads in (1, 2, 3):
        render = eventually(partial(_if_count, stack, namespace, reads), within_s=8, every_s=0.02)
        seen.append(status(render))
    assert [s["polling"]["count"] for s in seen] == [1, 2, 3]
    assert [s["state"] for s in seen] == ["Queued", "Processing", "Processing"]
    assert all(s["polling"]["lastPollTime"] <= s["polling"]["nextPollTime"] for s in seen)
    assert seen[0]["startTime"] == seen[2]["startTime"]
    assert seen[0]["apiURL"] == f"{stack.sandbox.url}/v1"
    assert [e["reason"] for e in stack.kube.events(namespace, "one")].count("RenderQueued") == 1


def _if_count(stack: Stack, namespace: str, count: int) -> Body | None:
    render = stack.kube.get(namespace, "one")
    return render if status(render).get("polling", {}).get("count", 0) == count else None


def test_a_request_waits_where_submissions_are_off(stack: Stack) -> None:
    stack.start_all(SUME_SUBMISSIONS_ENABLED="false")
    namespace = stack.namespaces[0]
    stack.kube.create(namespace, "asked", {"request": {"model": "sume/clip", "arguments": {"prompt": "a dog"}}})
    render = eventually(lambda: _if_set(stack.kube.get(namespace, "asked")), within_s=8)
    assert condition(render, "Accepted") == ("False", "SubmissionsDisabled")
    assert condition(render, "Submitted") == ("False", "NotSubmitted")
    assert condition(render, "Succeeded") == ("Unknown", "SubmissionsDisabled")
    assert status(render)["state"] == "Pending"
    assert stack.sandbox.stats()["requests"].get("submit", {}) == {}


def _if_set(render: Body) -> Body | None:
    return render if status(render) else None
