"""Many renders of one key: slots, order, budget, and what becomes of them when their owner changes his mind."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from controlplane import RedisServer
from kube import Body, condition, eventually, is_finished, status
from observer import Observer
from stack import Stack

REQUEST: Body = {"model": "sume/clip-fast", "arguments": {"prompt": "a dog"}}
SLOTS = 5
FREELY = {"SUME_SUBMISSIONS_PER_MINUTE": "0", "SUME_READS_PER_MINUTE": "0", "SUME_MAX_ACTIVE_JOBS": str(SLOTS)}

Figures = Callable[[str], None]


def _start(stack: Stack, *options: str, pollers: int = 2, **variables: str) -> str:
    stack.start_sandbox("--queue-s", "0.2", "--process-s", "0.8", "--next-poll-s", "0.3", *options)
    stack.start("controller", ready=False, **(FREELY | variables))
    for number in range(pollers):
        stack.start("poller", f"poller-{number}", ready=False, **(FREELY | variables))
    for name, port in stack.ports.items():
        stack.wait_ready(port, name)
    return stack.namespaces[0]


def _all_ended(stack: Stack) -> bool:
    return all(map(is_finished, stack.kube.all_in(stack.namespaces)))


@pytest.mark.timeout(180)
def test_more_renders_than_slots(stack: Stack, figures: Figures) -> None:
    """Fed to Sume as slots come free, oldest first; the waiting ones say so, and cost Sume no call."""
    namespace = _start(stack, SUME_MAX_ACTIVE_JOBS=str(SLOTS))
    names = [f"r-{number:02}" for number in range(40)]
    for number, name in enumerate(names):
        stack.kube.create(namespace, name, {"request": REQUEST, "priority": 1 if number == 39 else 0})
        if number == SLOTS:  # creation times have whole seconds: the order must be told from them
            time.sleep(1.1)
    eventually(lambda: _reasons(stack, namespace).get("WaitingForSlot", 0) > 20, within_s=15)
    waiting = next(r for r in stack.kube.all_in([namespace]) if condition(r, "Succeeded")[1] == "WaitingForSlot")
    assert "before it" in status(waiting)["message"]
    started_s = time.monotonic()
    with Observer(stack.kube, stack.namespaces) as observer:
        eventually(lambda: _all_ended(stack), within_s=90, every_s=0.3)
        assert observer.reverts() == []
    stats = stack.sandbox.stats()
    assert stats["max_active"] <= SLOTS
    assert stats["jobs"]["submitted"] == len(names)
    assert stats["requests"]["submit"] == {"202": len(names)}
    figures(f"40 renders through {SLOTS} slots: {time.monotonic() - started_s:.1f} s, {stats['requests']['status']}")
    order = sorted(stack.kube.all_in([namespace]), key=lambda r: str(status(r)["startTime"]))
    assert order.index(next(r for r in order if r["metadata"]["name"] == "r-39")) < 39 - SLOTS  # its priority
    stack.wait_empty(within_s=5)


def _reasons(stack: Stack, namespace: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for render in stack.kube.all_in([namespace]):
        reason = condition(render, "Succeeded")[1]
        found[reason] = found.get(reason, 0) + 1
    return found


@pytest.mark.timeout(180)
def test_slots_after_flushall_and_a_dead_poller(stack: Stack) -> None:
    """The count of jobs under way equals the truth again after one pass of the sweep."""
    namespace = _start(stack)
    for number in range(30):
        stack.kube.create(namespace, f"r-{number}", {"request": REQUEST})
    eventually(lambda: sum(map(is_finished, stack.kube.all_in([namespace]))) > 3, within_s=20)
    stack.client.flushall()
    stack.processes["poller-0"].kill()
    eventually(lambda: _all_ended(stack), within_s=120, every_s=0.3)
    assert {condition(r, "Succeeded")[1] for r in stack.kube.all_in([namespace])} == {"Completed"}
    stats = stack.sandbox.stats()
    assert stats["max_active"] <= SLOTS
    assert stats["jobs"]["submitted"] == 30
    eventually(lambda: _slots(stack) == 0, within_s=20)


def _slots(stack: Stack) -> int:
    return sum(int(stack.client.zcard(key)) for key in stack.client.keys("sume:polls:slots:*"))


@pytest.mark.parametrize("sume", ["up", "down"])
def test_deleted_in_each_phase(stack: Stack, sume: str) -> None:
    """Gone at once, and the job canceled, if Sume can be asked."""
    namespace = _start(stack, "--cancel-running", "--queue-s", "60", SUME_MAX_ACTIVE_JOBS="1", SUME_POLL_SECONDS="60")
    stack.kube.create(namespace, "runs", {"request": REQUEST})
    eventually(lambda: status(stack.kube.get(namespace, "runs")).get("jobID"), within_s=10)
    stack.kube.create(namespace, "waits", {"request": REQUEST})
    reason = "WaitingForSlot"
    eventually(lambda: condition(stack.kube.get(namespace, "waits"), "Succeeded")[1] == reason, within_s=10)
    job = status(stack.kube.get(namespace, "runs"))["jobID"]
    if sume == "down":
        stack.sandbox.fault(http_status=503)
    stack.kube.delete(namespace, "waits")
    eventually(lambda: not stack.kube.exists(namespace, "waits"), within_s=3)
    stack.kube.delete(namespace, "runs")
    if sume == "up":
        eventually(lambda: not stack.kube.exists(namespace, "runs"), within_s=5)
        assert stack.sandbox.job(job)["cancels"] == 1
        eventually(lambda: _slots(stack) == 0, within_s=10)
    else:
        eventually(lambda: stack.sandbox.job(job)["cancels"] >= 2, within_s=10)  # it is tried, and the object waits
        assert stack.kube.exists(namespace, "runs")
        stack.sandbox.mend()
        eventually(lambda: not stack.kube.exists(namespace, "runs"), within_s=10)


def test_orphaned_on_request(stack: Stack) -> None:
    namespace = _start(stack)
    stack.kube.create(namespace, "one", {"request": REQUEST | {"model": "clip-slow"}, "deletionPolicy": "Orphan"})
    job = eventually(lambda: status(stack.kube.get(namespace, "one")).get("jobID"), within_s=10)
    assert "finalizers" not in stack.kube.get(namespace, "one")["metadata"]
    stack.kube.delete(namespace, "one")
    eventually(lambda: not stack.kube.exists(namespace, "one"), within_s=3)
    assert stack.sandbox.job(job)["cancels"] == 0


def test_canceled_while_it_runs(stack: Stack) -> None:
    namespace = _start(stack, "--cancel-running")
    stack.kube.create(namespace, "one", {"request": REQUEST | {"model": "clip-slow"}})
    eventually(lambda: status(stack.kube.get(namespace, "one")).get("jobID"), within_s=10)
    stack.kube.edit(namespace, "one", cancel=True)
    eventually(lambda: is_finished(stack.kube.get(namespace, "one")), within_s=5)
    render = stack.kube.get(namespace, "one")
    assert condition(render, "Succeeded") == ("False", "Canceled")
    assert "finalizers" not in render["metadata"]
    eventually(lambda: _slots(stack) == 0, within_s=10)


def test_two_secrets_with_one_key_share_its_slots(stack: Stack) -> None:
    namespace = _start(stack, SUME_MAX_ACTIVE_JOBS="3")
    other = stack.namespaces[1]
    for each in (namespace, other):
        stack.kube.make_secret(each, "sume", {"apiKey": "shared-key\n" if each == other else "shared-key"})
        for number in range(6):
            spec = {"request": REQUEST, "credentialsSecretRef": {"name": "sume"}}
            stack.kube.create(each, f"r-{number}", spec)
    eventually(lambda: _all_ended(stack), within_s=40, every_s=0.2)
    assert stack.sandbox.stats()["max_active"] <= 3


@pytest.mark.timeout(150)
def test_within_the_budget_of_reads(stack: Stack, figures: Figures) -> None:
    """Sume allows so many reads a minute: never a 429, and of many renders none starves."""
    namespace = _start(stack, "--reads-per-minute", "240", SUME_READS_PER_MINUTE="240", SUME_MAX_ACTIVE_JOBS="0")
    names = [f"r-{number}" for number in range(60)]
    for name in names:
        stack.kube.create(namespace, name, {"jobID": f"job_{name}-slow"})
    eventually(lambda: _all_ended(stack), within_s=110, every_s=0.5)
    stats = stack.sandbox.stats()
    reads = [int(job["status_reads"]) for job in stack.sandbox.jobs().values()]
    figures(f"60 renders, 240 reads a minute: {min(reads)} to {max(reads)} reads each, 429: {stats['rate_limited']}")
    assert stats["rate_limited"] == 0
    assert {condition(render, "Succeeded")[1] for render in stack.kube.all_in([namespace])} == {"Completed"}


MARKER = "mark3r"


def test_no_secret_is_told(stack: Stack) -> None:
    """A marker in API keys, in Redis' password and in an output's URL is found nowhere it must not be."""
    secret_redis = RedisServer(stack.directory / "secret", options=("--requirepass", f"{MARKER}-redis"))
    secret_redis.start()
    (stack.directory / "password").write_text(f"{MARKER}-redis\n")
    (stack.directory / "key").write_text(f"{MARKER}-key\n")
    try:
        more: dict[str, Any] = {
            "REDIS_URL": secret_redis.url,
            "REDIS_PASSWORD_FILE": str(stack.directory / "password"),
            "SUME_API_KEY": "",
            "SUME_API_KEY_FILE": str(stack.directory / "key"),
        }
        namespace = _start(stack, **more)
        stack.sandbox.keys([f"{MARKER}-key"])
        outputs = [{"kind": "video", "url": f"https://media.example/1.mp4?sig={MARKER}-url"}]
        done = {"script": [{"status": "completed"}], "outputs": outputs}
        stack.sandbox.script({"job_one": done, "job_bad": done, "job_revoked": done})
        stack.kube.make_secret(namespace, "bad", {"apiKey": f"{MARKER}\x01key"})
        stack.kube.make_secret(namespace, "revoked", {"apiKey": f"{MARKER}-revoked\n"})
        stack.kube.create(namespace, "one", {"jobID": "job_one"})
        stack.kube.create(namespace, "bad", {"jobID": "job_bad", "credentialsSecretRef": {"name": "bad"}})
        stack.kube.create(namespace, "revoked", {"jobID": "job_revoked", "credentialsSecretRef": {"name": "revoked"}})
        eventually(lambda: is_finished(stack.kube.get(namespace, "one")), within_s=10)
        eventually(lambda: condition(stack.kube.get(namespace, "revoked"), "Synced")[1] == "Unauthorized", within_s=10)
        eventually(lambda: condition(stack.kube.get(namespace, "bad"), "Accepted")[1], within_s=10)
        assert condition(stack.kube.get(namespace, "bad"), "Accepted")[1] == "CredentialsInvalid"
        one = stack.kube.get(namespace, "one")
        assert f"{MARKER}-url" in status(one)["outputs"][0]["url"]  # whole, where it belongs
        del one["status"]["outputs"]
        told = {name: stack.processes[name].log.read_text() for name in stack.processes}
        told |= {f"metrics of {name}": stack.http(port, "/metrics")[1] for name, port in stack.ports.items()}
        told["events"] = json.dumps([stack.kube.events(namespace, name) for name in ("one", "bad", "revoked")])
        told["objects"] = json.dumps([one, *(stack.kube.get(namespace, name) for name in ("bad", "revoked"))])
        assert [where for where, text in told.items() if MARKER in text] == []
        assert "RenderCompleted" in told["events"]
    finally:
        for child in stack.processes.values():
            child.kill()
        secret_redis.stop()
