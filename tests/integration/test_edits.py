"""What an owner changes is acted on within a second: while the alarm sleeps, and in the middle of a turn."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from kube import condition, eventually, is_finished, status
from stack import Stack, scripted

ACTED_ON_S = 1.0
# Long enough to tell "at once" from "when the alarm was due anyway".
SLEEPING: dict[str, str] = {"SUME_POLL_MAX_SECONDS": "60"}
FAR_S = 60.0

Figures = Callable[[str], None]


def _start(stack: Stack, **variables: str) -> str:
    """Everything up, with two pollers, and a namespace to work in."""
    stack.start_all(pollers=2, **(SLEEPING | variables))
    return stack.namespaces[0]


def _sleeping(stack: Stack, namespace: str, name: str, *words: str, **spec: Any) -> str:
    """A render whose alarm is far away; answers its job."""
    job = f"job_{name}"
    stack.sandbox.script({job: scripted(*(words or ("processing",)), next_poll_s=FAR_S)})
    stack.kube.create(namespace, name, {"jobID": job, **spec})
    eventually(lambda: status(stack.kube.get(namespace, name)).get("polling", {}).get("count") == 1, within_s=10)
    eventually(lambda: all(score % 1 == 0 for score in stack.alarms().values()), within_s=5)
    return job


def _in_a_read(stack: Stack, namespace: str, name: str, hold_s: float, **spec: Any) -> str:
    """A render in the middle of a turn: Sume takes `hold_s` to answer. Answers its job."""
    job = f"job_{name}"
    script = scripted("processing", next_poll_s=FAR_S)
    script["script"][0]["delay_s"] = hold_s
    stack.sandbox.script({job: script})
    stack.kube.create(namespace, name, {"jobID": job, **spec})
    eventually(lambda: stack.sandbox.reads(job) == 1, within_s=10)
    return job


def _took_s(since_s: float, figures: Figures, what: str) -> float:
    took_s = time.monotonic() - since_s
    figures(f"{what}: acted on after {took_s:.2f} s")
    return took_s


def test_suspend_and_resume_while_it_sleeps(stack: Stack, figures: Figures) -> None:
    namespace = _start(stack)
    job = _sleeping(stack, namespace, "one", "processing", "processing", "completed")
    since_s = time.monotonic()
    stack.kube.edit(namespace, "one", suspend=True)
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Succeeded")[1] == "Suspended", within_s=5)
    assert _took_s(since_s, figures, "suspend, asleep") < ACTED_ON_S
    stack.wait_empty(within_s=2)
    assert "nextPollTime" not in status(stack.kube.get(namespace, "one"))["polling"]
    assert stack.sandbox.reads(job) == 1

    since_s = time.monotonic()
    stack.kube.edit(namespace, "one", suspend=False)
    eventually(lambda: stack.sandbox.reads(job) == 2, within_s=5)
    assert _took_s(since_s, figures, "resume") < ACTED_ON_S
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Succeeded")[1] == "Processing", within_s=5)


def test_suspend_in_the_middle_of_a_read(stack: Stack, figures: Figures) -> None:
    namespace, hold_s = _start(stack), 1.0
    job = _in_a_read(stack, namespace, "one", hold_s)
    since_s = time.monotonic()
    stack.kube.edit(namespace, "one", suspend=True)
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Succeeded")[1] == "Suspended", within_s=6)
    assert _took_s(since_s, figures, f"suspend, in a read of {hold_s:g} s") < hold_s + ACTED_ON_S
    assert status(stack.kube.get(namespace, "one"))["polling"]["count"] == 1  # the answer was not thrown away
    assert stack.sandbox.job(job)["overlapping_reads"] == 0
    stack.wait_empty(within_s=3)


@pytest.mark.parametrize("moment", ["asleep", "in a read"])
def test_cancel(stack: Stack, figures: Figures, moment: str) -> None:
    namespace, hold_s = _start(stack), 0.8
    if moment == "asleep":
        job = _sleeping(stack, namespace, "one", "queued", "canceled")
    else:
        job = _in_a_read(stack, namespace, "one", hold_s)
    since_s = time.monotonic()
    stack.kube.edit(namespace, "one", cancel=True)
    eventually(lambda: stack.sandbox.job(job).get("cancels") == 1, within_s=6)
    allowed_s = ACTED_ON_S + (0 if moment == "asleep" else hold_s)
    assert _took_s(since_s, figures, f"cancel, {moment}") < allowed_s
    if moment == "asleep":
        eventually(lambda: is_finished(stack.kube.get(namespace, "one")), within_s=5)
        assert condition(stack.kube.get(namespace, "one"), "Succeeded") == ("False", "Canceled")
    refused = stack.kube.patch(namespace, "one", {"spec": {"cancel": False}})
    assert refused.status_code == 422
    assert "cannot be made active again" in refused.text


def test_a_refused_cancel_is_told_and_the_render_goes_on(stack: Stack) -> None:
    namespace = _start(stack)
    stack.sandbox.script({"job_one": scripted("processing", "processing", "completed", cancelable=False)})
    stack.kube.create(namespace, "one", {"jobID": "job_one", "cancel": True})
    render = eventually(lambda: _finished(stack, namespace, "one"), within_s=10)
    assert status(render)["cancellation"]["result"] == "Refused"
    assert condition(render, "Succeeded") == ("True", "Completed")
    assert stack.sandbox.job("job_one")["cancels"] == 1
    assert "CancelRefused" in [event["reason"] for event in stack.kube.events(namespace, "one")]


def _finished(stack: Stack, namespace: str, name: str) -> Any:
    render = stack.kube.get(namespace, name)
    return render if is_finished(render) else None


def test_another_look_while_it_sleeps(stack: Stack, figures: Figures) -> None:
    namespace = _start(stack)
    job = _sleeping(stack, namespace, "one")
    for number, value in enumerate(["once", "twice"], start=2):
        since_s = time.monotonic()
        stack.kube.annotate(namespace, "one", value)
        eventually(lambda value=value: _handled(stack, namespace) == value, within_s=5)  # type: ignore[misc]
        assert _took_s(since_s, figures, "poll-requested-at, asleep") < ACTED_ON_S
        assert stack.sandbox.reads(job) == number


def test_another_look_in_the_middle_of_a_read(stack: Stack, figures: Figures) -> None:
    """The read under way began before it was asked for, so another one follows at once."""
    namespace, hold_s = _start(stack), 0.8
    job = _in_a_read(stack, namespace, "one", hold_s)
    since_s = time.monotonic()
    stack.kube.annotate(namespace, "one", "now")
    eventually(lambda: stack.sandbox.reads(job) == 2, within_s=5)
    assert _took_s(since_s, figures, f"poll-requested-at, in a read of {hold_s:g} s") < hold_s + ACTED_ON_S
    eventually(lambda: _handled(stack, namespace) == "now", within_s=5)
    assert stack.sandbox.job(job)["overlapping_reads"] == 0


def _handled(stack: Stack, namespace: str) -> str | None:
    value = status(stack.kube.get(namespace, "one")).get("lastHandledPollRequest")
    return str(value) if value else None


def test_fresh_outputs_of_a_completed_render(stack: Stack) -> None:
    namespace = _start(stack)
    outputs = [{"kind": "video", "url": "https://media.example/1.mp4?sig=old", "content_type": "video/mp4"}]
    stack.sandbox.script({"job_one": scripted("completed", outputs=outputs)})
    stack.kube.create(namespace, "one", {"jobID": "job_one"})
    before = eventually(lambda: _finished(stack, namespace, "one"), within_s=10)
    assert status(before)["outputs"][0]["url"].endswith("?sig=old")
    stack.wait_empty(within_s=5)

    outputs[0]["url"] = "https://media.example/1.mp4?sig=new"
    stack.sandbox.script({"job_one": scripted("completed", outputs=outputs)})
    stack.kube.annotate(namespace, "one", "fresh, please")
    eventually(lambda: _handled(stack, namespace) == "fresh, please", within_s=5)
    after = status(stack.kube.get(namespace, "one"))
    assert after["outputs"][0]["url"].endswith("?sig=new")
    changed = {"outputs", "lastHandledPollRequest"}
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in status(before).items() if k not in changed
    }
    stack.wait_empty(within_s=5)


@pytest.mark.parametrize("flush", [False, True], ids=["", "after FLUSHALL"])
def test_an_edit_of_a_finished_render_is_observed(stack: Stack, figures: Figures, flush: bool) -> None:
    namespace = _start(stack)
    stack.sandbox.script({"job_one": scripted("completed")})
    stack.kube.create(namespace, "one", {"jobID": "job_one"})
    eventually(lambda: is_finished(stack.kube.get(namespace, "one")), within_s=10)
    stack.wait_empty(within_s=5)
    if flush:
        stack.client.flushall()
    since_s = time.monotonic()
    generation = stack.kube.edit(namespace, "one", priority=7)["metadata"]["generation"]
    eventually(lambda: status(stack.kube.get(namespace, "one"))["observedGeneration"] == generation, within_s=5)
    assert _took_s(since_s, figures, "edit of a finished render") < ACTED_ON_S
    render = stack.kube.get(namespace, "one")
    assert {c["observedGeneration"] for c in status(render)["conditions"]} == {generation}
    waited = stack.control_plane.kubectl(
        "wait", "-n", namespace, "srender/one", "--for=condition=Finished", "--timeout=5s"
    )
    assert "condition met" in waited.stdout
    assert stack.sandbox.reads("job_one") == 1
    stack.wait_empty(within_s=10)


def test_it_deletes_itself_after_its_time(stack: Stack) -> None:
    namespace = _start(stack)
    stack.sandbox.script({"job_one": scripted("completed")})
    stack.kube.create(namespace, "one", {"jobID": "job_one", "ttlSecondsAfterFinished": 2})
    eventually(lambda: is_finished(stack.kube.get(namespace, "one")), within_s=10)
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=8)
    stack.wait_empty(within_s=3)


def test_a_deadline_ends_only_what_still_runs(stack: Stack) -> None:
    namespace = _start(stack)
    stack.sandbox.script({"job_slow": scripted("processing", next_poll_s=0.5), "job_done": scripted("completed")})
    spec = {"activeDeadlineSeconds": 1, "deletionPolicy": "Cancel"}
    stack.kube.create(namespace, "slow", {"jobID": "job_slow", **spec})
    stack.kube.create(namespace, "done", {"jobID": "job_done", **spec})
    slow = eventually(lambda: _finished(stack, namespace, "slow"), within_s=10)
    done = eventually(lambda: _finished(stack, namespace, "done"), within_s=10)
    assert condition(slow, "Succeeded") == ("False", "DeadlineExceeded")
    assert condition(done, "Succeeded") == ("True", "Completed")
    assert stack.sandbox.job("job_slow")["cancels"] == 1
    assert "finalizers" not in slow["metadata"]


@pytest.mark.parametrize(("policy", "cancels"), [("Cancel", 1), (None, 0)])
def test_deletion(stack: Stack, policy: str | None, cancels: int) -> None:
    """A followed job is never canceled unless that was asked for."""
    namespace = _start(stack)
    job = _sleeping(stack, namespace, "one", **({"deletionPolicy": policy} if policy else {}))
    assert ("finalizers" in stack.kube.get(namespace, "one")["metadata"]) == bool(policy)
    stack.kube.delete(namespace, "one")
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=3)
    assert stack.sandbox.job(job)["cancels"] == cancels
    stack.wait_empty(within_s=3)


def test_a_recreated_object_starts_anew(stack: Stack) -> None:
    namespace = _start(stack)
    _sleeping(stack, namespace, "one")
    stack.kube.delete(namespace, "one")
    stack.sandbox.script({"job_other": scripted("completed")})
    stack.kube.create(namespace, "one", {"jobID": "job_other"})
    render = eventually(lambda: _finished(stack, namespace, "one"), within_s=5)
    assert status(render)["jobID"] == "job_other"
    stack.wait_empty(within_s=3)


def test_made_while_redis_was_down(stack: Stack, figures: Figures) -> None:
    namespace = _start(stack)
    stack.sandbox.script({"job_one": scripted("processing")})
    stack.redis.kill()
    stack.kube.create(namespace, "one", {"jobID": "job_one"})
    eventually(lambda: "the sweep will" in stack.processes["controller"].log.read_text(), within_s=10)
    stack.redis.start()
    since_s = time.monotonic()
    eventually(lambda: stack.sandbox.reads("job_one") >= 1, within_s=10)
    assert _took_s(since_s, figures, "made while Redis was down, first read after its return") < 5.0
