"""What takes about a minute by its nature, at the times that users have: deletions that nobody can cancel, a key on
hold, a submission that Sume thinks about for long.

Each scene mostly waits, so all of them are played at once; the test of each tells how it went.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from controlplane import ControlPlane, NamespaceController
from kube import Body, condition, eventually, is_finished, status
from observer import Observer
from stack import DEFAULT_TIMES, Stack, scripted

# Budgets and Sume's own limits have tests of their own: here fifty jobs are asked for at once.
FREELY: Final = {"SUME_SUBMISSIONS_PER_MINUTE": "0", "SUME_READS_PER_MINUTE": "0", "SUME_MAX_ACTIVE_JOBS": "100"}
SANDBOX: Final = ("--queue-s", "0", "--process-s", "15", "--next-poll-s", "8", "--cancel-running")
ROOMY: Final = ("--running-slots", "200", "--queued-slots", "200")
QUICK_JOB: Final[Body] = {"model": "sume/clip-fast", "arguments": {"prompt": "a dog"}}
LONG_JOB: Final[Body] = QUICK_JOB | {"model": "sume/clip-slow"}  # ten times as long: it outlasts its scene
MANY: Final = 50
NAMESPACES: Final = {scene: f"t-minute-{scene}" for scene in ("slow", "gone", "key", "key2", "ns")}

Figures = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`healthy`: an operator with two pollers to which nothing happens; `own`: one that a scene may break."""

    healthy: Stack
    control_plane: ControlPlane
    directory: Path
    figures: Figures

    def own(self, name: str, *namespaces: str) -> Stack:
        """To be entered and started by the scene."""
        directory = self.directory / name
        directory.mkdir()
        return Stack(directory, self.control_plane, tuple(f"t-minute-{each}" for each in (name, *namespaces)))


Scene = Callable[[Stage], None]
_starting = threading.Lock()


def _start(stack: Stack, pollers: int = 1) -> None:
    """One operator after the other: all at once would take each of them too long on two cores."""
    with _starting:
        stack.start_sandbox(*SANDBOX, *ROOMY)
        stack.start("controller", ready=False, **(DEFAULT_TIMES | FREELY))
        for number in range(pollers):
            stack.start("poller", f"poller-{number}", ready=False, **(DEFAULT_TIMES | FREELY))
        for name, port in stack.ports.items():
            stack.wait_ready(port, name)


# --- a submission that is answered late ---


def slow_submission(stage: Stage) -> None:
    """Sume answers after 60 s, longer than a lease and any other call: not cut, and not sent again."""
    stack, namespace, delay_s = stage.healthy, NAMESPACES["slow"], 60.0
    stack.kube.make_secret(namespace, "sume", {"apiKey": "slow-key"})
    fingerprint = hashlib.sha256(b"slow-key").hexdigest()[:12]
    stack.sandbox.fault(operation="submit", key_fingerprint=fingerprint, times=1, delay_s=delay_s)
    key = {"credentialsSecretRef": {"name": "sume"}}
    uids = {"slow": stack.kube.create(namespace, "slow", {"request": QUICK_JOB, **key})["metadata"]["uid"]}
    eventually(lambda: _job_of(stack, uids["slow"]), within_s=20, what="the POST at Sume")
    since_s = time.monotonic()
    uids["quick"] = stack.kube.create(namespace, "quick", {"request": QUICK_JOB, **key})["metadata"]["uid"]
    eventually(lambda: is_finished(stack.kube.get(namespace, "quick")), within_s=delay_s - 5, every_s=0.5)
    quick_s = time.monotonic() - since_s
    assert condition(stack.kube.get(namespace, "slow"), "Submitted") == ("Unknown", "Submitting")
    eventually(lambda: status(stack.kube.get(namespace, "slow")).get("jobID"), within_s=delay_s, every_s=0.2)
    took_s = time.monotonic() - since_s
    assert took_s > delay_s - 2
    for name, uid in uids.items():
        eventually(lambda name=name: is_finished(stack.kube.get(namespace, name)), within_s=40, every_s=0.5)  # type: ignore[misc]
        render = stack.kube.get(namespace, name)
        assert condition(render, "Succeeded") == ("True", "Completed")
        assert condition(render, "Submitted") == ("True", "Created")
        assert status(render)["submission"]["attempts"] == 1
        assert _job_of(stack, uid)["submits"] == 1
    stage.figures(f"a POST answered after {took_s:.0f} s: sent once; another render ended after {quick_s:.0f} s")


def _job_of(stack: Stack, idempotency_key: str) -> Body:
    """The job that was asked for with this key; empty if none was."""
    jobs = [job for job in stack.sandbox.jobs().values() if job.get("idempotency_key") == idempotency_key]
    assert len(jobs) <= 1
    return dict(jobs[0]) if jobs else {}


# --- a key that is replaced ---


def replaced_key(stage: Stage) -> None:
    """Fifty wait on 401; the Secret gets another key; all move within 90 s, and those of others notice nothing."""
    stack, namespaces = stage.healthy, (NAMESPACES["key"], NAMESPACES["key2"])
    for namespace in namespaces:
        stack.kube.make_secret(namespace, "good", {"apiKey": "other-key"})
    stack.kube.make_secret(namespaces[0], "sume", {"apiKey": "revoked"})
    followed = [f"job_{letter}-{number}" for letter in ("bad", "good") for number in range(MANY)]
    stack.sandbox.script({job: scripted("processing", next_poll_s=8) for job in followed})
    with Observer(stack.kube, namespaces) as observer:
        for number in range(3):
            for namespace in namespaces:
                spec = {"jobID": f"job_good-{number}", "credentialsSecretRef": {"name": "good"}}
                stack.kube.create(namespace, f"good-{number}", spec)
        waiting = _refused(stack, namespaces[0])
        probes = stack.sandbox.stats()["requests"]["status"]["401"]
        stack.kube.make_secret(namespaces[0], "sume", {"apiKey": "new-key"})
        since_s = time.monotonic()
        eventually(lambda: all(map(_moves, _bad(stack, namespaces[0]))), within_s=90, every_s=0.5)
        took_s = time.monotonic() - since_s
        reasons = observer.reasons("Synced")
    for render in waiting:
        if "request" in render["spec"]:
            assert _job_of(stack, render["metadata"]["uid"])["submits"] == 1
    good = {name: seen for name, seen in reasons.items() if "/good-" in name}
    assert len(good) == 6
    assert set().union(*good.values()) <= {"", "NotObservedYet", "Observed"}
    assert min(status(stack.kube.get(namespaces[1], f"good-{n}"))["polling"]["count"] for n in range(3)) >= 4
    assert stack.sandbox.stats()["requests"]["status"]["401"] <= probes + 2  # one look a minute, until the key is new
    assert "APIUnauthorized" in [event["reason"] for event in stack.kube.events(namespaces[0], "bad-0")]
    stage.figures(f"{MANY} renders on hold for a revoked key: all moved {took_s:.0f} s after it was replaced")


def _refused(stack: Stack, namespace: str) -> list[Body]:
    """Fifty renders of the revoked key, most of them following a job, once all of them wait for another key."""
    for number in range(MANY):
        way = {"jobID": f"job_bad-{number}"} if number < MANY - 10 else {"request": LONG_JOB}
        stack.kube.create(namespace, f"bad-{number}", {**way, "credentialsSecretRef": {"name": "sume"}})

    def wait() -> bool:
        return {condition(render, "Synced") for render in _bad(stack, namespace)} == {("False", "Unauthorized")}

    eventually(wait, within_s=30, every_s=0.3)
    # What was under way when the first 401 came; after that nobody asks.
    assert 1 <= stack.sandbox.stats()["requests"]["status"]["401"] <= 2 * 16 + 2
    return _bad(stack, namespace)


def _bad(stack: Stack, namespace: str) -> list[Body]:
    found = [render for render in stack.kube.all_in([namespace]) if render["metadata"]["name"].startswith("bad-")]
    assert len(found) == MANY
    return found


def _moves(render: Body) -> bool:
    return condition(render, "Synced")[0] == "True" or is_finished(render)


# --- a namespace that is deleted ---


def namespace_of_fifty(stage: Stage) -> None:
    """Each job gets its cancel, the followed one does not, and the namespace goes."""
    stack, namespace = stage.healthy, NAMESPACES["ns"]
    asked, followed = _fifty_running(stack, namespace)
    took_s = _namespace_gone_s(stack, namespace, _delete_namespace(stack, namespace))
    jobs = stack.sandbox.jobs()
    assert {(jobs[job]["cancels"], jobs[job]["state"]) for job in asked} == {(1, "canceled")}
    assert jobs[followed]["cancels"] == 0
    # Usually at once; a slot whose turn broke off, by the next pass of the sweep that finds it older than a lease.
    eventually(lambda: not _left_in_redis(stack, namespace), within_s=45 + 2 * 60, every_s=0.5)
    assert _trouble(stack, namespace) == []
    stage.figures(f"a namespace of {MANY} running renders: gone after {took_s:.0f} s, {len(asked)} jobs canceled")


def sume_down(stage: Stage) -> None:
    """Cancels are tried in vain; the rescue frees all renders, so that one goes, and a namespace with fifty."""
    with stage.own("sume-down", "sume-down-ns") as stack:
        _start(stack)
        single, namespace = stack.namespaces
        one = _two_running(stack, single)
        fifty, followed = _fifty_running(stack, namespace)
        stack.sandbox.fault(drop=True)  # down, but it counts who asks
        since_s = _delete_namespace(stack, namespace)
        eventually(lambda: _are_all_deleted(stack, namespace), within_s=60, every_s=0.5)
        _deleted_within_a_minute(stage, stack, single, "Sume")
        waited_s = _longest_wait_s(stack, namespace)
        assert waited_s <= 60
        took_s = _namespace_gone_s(stack, namespace, since_s)
        jobs = stack.sandbox.jobs()
        assert all(jobs[job]["cancels"] >= 1 for job in [one, *fifty])
        assert {jobs[job]["state"] for job in [one, *fifty]} == {"processing"}
        assert jobs[followed]["cancels"] == 0
        # An event in a namespace that is going is refused: it is logged, and nothing else suffers.
        log = stack.processes["controller"].log.read_text()
        unrecorded = [line for line in log.splitlines() if "event CancelAbandoned" in line and "not recorded" in line]
        assert len(unrecorded) == MANY
        assert _trouble(stack, namespace, "deleted without a confirmed cancel") == []
        stack.wait_empty(within_s=20)
    stage.figures(f"a namespace of {MANY} running renders, Sume down: gone after {took_s:.0f} s")


def _fifty_running(stack: Stack, namespace: str) -> tuple[list[str], str]:
    """The jobs of fifty renders that asked for them, and that of one that follows a job."""
    followed = f"job_{namespace}-slow"
    stack.kube.create(namespace, "follows", {"jobID": followed})
    for number in range(MANY):
        stack.kube.create(namespace, f"r-{number}", {"request": LONG_JOB, "deletionPolicy": "Cancel"})
    renders: list[Body] = eventually(lambda: _if_all_run(stack, namespace), within_s=60, every_s=0.3)
    return [job for job in (status(render)["jobID"] for render in renders) if job != followed], followed


def _if_all_run(stack: Stack, namespace: str) -> list[Body]:
    renders = stack.kube.all_in([namespace])
    return renders if all(status(render).get("jobID") for render in renders) else []


def _are_all_deleted(stack: Stack, namespace: str) -> bool:
    return all("deletionTimestamp" in render["metadata"] for render in stack.kube.all_in([namespace]))


def _longest_wait_s(stack: Stack, namespace: str) -> float:
    """Until no render is left: how long one of them was seen to be there after its own deletion."""
    longest_s = 0.0
    while renders := stack.kube.all_in([namespace]):
        now = datetime.now(UTC)
        deleted = [datetime.fromisoformat(render["metadata"]["deletionTimestamp"]) for render in renders]
        longest_s = max(longest_s, *((now - each).total_seconds() for each in deleted))
        assert longest_s < 100, f"{len(renders)} renders are still there"
        time.sleep(0.2)
    return longest_s


def _delete_namespace(stack: Stack, namespace: str) -> float:
    """When it was deleted."""
    assert stack.kube.request("DELETE", f"/api/v1/namespaces/{namespace}").ok
    return time.monotonic()


def _namespace_gone_s(stack: Stack, namespace: str, since_s: float) -> float:
    """How many seconds it took until it was gone; asserts that it goes.

    The namespace controller begins after 5 s, and looks again every 8 s: with Sume down that makes 63 s. How much
    longer it takes on a busy machine is its own affair.
    """
    path = f"/api/v1/namespaces/{namespace}"
    eventually(lambda: stack.kube.request("GET", path).status_code == 404, within_s=150, every_s=0.3, what=path)
    return time.monotonic() - since_s


def _left_in_redis(stack: Stack, namespace: str) -> list[str]:
    """Alarms, slots and places in a line of renders of this namespace."""
    keys = [key for key in stack.client.keys("sume:polls*") if stack.client.type(key) == "zset"]
    members = [member for key in keys for member in stack.client.zrange(key, 0, -1)]
    return [member for member in members if f"{namespace}/" in member]


def _trouble(stack: Stack, namespace: str, *expected: str) -> list[str]:
    """Warnings and errors about renders of this namespace, and every stack trace, but for what is expected."""
    lines = [line for name in stack.ports for line in stack.processes[name].log.read_text().splitlines()]
    bad = [line for line in lines if "WARNING" in line or "ERROR" in line]
    traces = [line for line in lines if "Traceback" in line]
    return traces + [line for line in bad if f"{namespace}/" in line and not any(text in line for text in expected)]


# --- a render that is deleted while something is missing ---


def secret_gone(stage: Stage) -> None:
    stack, namespace = stage.healthy, NAMESPACES["gone"]
    stack.kube.make_secret(namespace, "sume", {"apiKey": "gone-key"})
    asked = _two_running(stack, namespace, credentialsSecretRef={"name": "sume"})
    assert stack.kube.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/sume").ok
    missing = ("False", "CredentialsNotFound")
    eventually(lambda: condition(stack.kube.get(namespace, "asked"), "Accepted") == missing, within_s=40, every_s=0.3)
    _deleted_within_a_minute(stage, stack, namespace, "Secret")
    assert stack.sandbox.job(asked)["cancels"] == 0


def redis_down(stage: Stage) -> None:
    with stage.own("redis-down") as stack:
        _start(stack)
        asked = _two_running(stack, stack.namespaces[0])
        stack.redis.kill()
        _deleted_within_a_minute(stage, stack, stack.namespaces[0], "Redis")
        assert stack.sandbox.job(asked)["cancels"] == 0
        stack.redis.start()
        stack.wait_empty(within_s=20)


def no_poller(stage: Stage) -> None:
    with stage.own("no-poller") as stack:
        _start(stack)
        asked = _two_running(stack, stack.namespaces[0])
        stack.processes["poller-0"].kill()
        _deleted_within_a_minute(stage, stack, stack.namespaces[0], "poller")
        assert stack.sandbox.job(asked)["cancels"] == 0
        stack.wait_empty(within_s=20)


def everything_down_but_the_controller(stage: Stage) -> None:
    with stage.own("all-down") as stack:
        _start(stack)
        namespace = stack.namespaces[0]
        stack.kube.make_secret(namespace, "sume", {"apiKey": "a-key"})
        _two_running(stack, namespace, credentialsSecretRef={"name": "sume"})
        for name in ("poller-0", "sandbox"):
            stack.processes[name].kill()
        stack.redis.kill()
        assert stack.kube.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/sume").ok
        _deleted_within_a_minute(stage, stack, namespace, "poller, Redis, Sume or Secret")


def _two_running(stack: Stack, namespace: str, **spec: Any) -> str:
    """One render that asked for its job and one that follows a job, both seen running; answers the job asked for."""
    stack.kube.create(namespace, "asked", {"request": LONG_JOB, **spec})
    stack.kube.create(namespace, "follows", {"jobID": f"job_{namespace}-slow", **spec})

    def run() -> bool:
        return {status(render).get("state") for render in stack.kube.all_in([namespace])} == {"Processing"}

    eventually(run, within_s=40, every_s=0.3)
    return str(status(stack.kube.get(namespace, "asked"))["jobID"])


def _deleted_within_a_minute(stage: Stage, stack: Stack, namespace: str, missing: str) -> None:
    """The followed job's render goes at once and the other one in time, saying what that means."""
    for name in ("follows", "asked"):
        stack.kube.delete(namespace, name)
    assert not stack.kube.exists(namespace, "follows")
    assert stack.kube.exists(namespace, "asked")
    took_s = _longest_wait_s(stack, namespace)
    assert took_s <= 60
    eventually(lambda: "CancelAbandoned" in _told(stack, namespace), within_s=5)  # it is told after the deed
    if stack.processes["sandbox"].is_running:
        assert stack.sandbox.job(f"job_{namespace}-slow")["cancels"] == 0
    stage.figures(f"deletion without {missing}: {took_s:.0f} s")


def _told(stack: Stack, namespace: str) -> list[str]:
    return [event["reason"] for event in stack.kube.events(namespace, "asked")]


SCENES: Final[tuple[Scene, ...]] = (
    sume_down,  # the longest first
    slow_submission,
    replaced_key,
    namespace_of_fifty,
    secret_gone,
    redis_down,
    no_poller,
    everything_down_but_the_controller,
)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cluster: ControlPlane, figures: Figures
) -> Iterator[dict[Scene, "Future[None]"]]:
    """All scenes that were asked for, under way at once."""
    wanted = _selected(request)
    directory = tmp_path_factory.mktemp("minute")
    with NamespaceController(cluster), Stack(directory, cluster, tuple(NAMESPACES.values())) as healthy:
        _start(healthy, pollers=2)
        healthy.sandbox.keys(["test-key", "slow-key", "gone-key", "other-key", "new-key"])
        stage = Stage(healthy=healthy, control_plane=cluster, directory=directory, figures=figures)
        with ThreadPoolExecutor(len(wanted)) as pool:
            yield {scene: pool.submit(scene, stage) for scene in wanted}


def _selected(request: pytest.FixtureRequest) -> list[Scene]:
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    selected: list[Any] = [item.callspec.params["scene"] for item in items if item.module is request.module]
    return selected


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: str(scene.__name__))
def test_scene(scene: Scene, outcomes: dict[Scene, "Future[None]"]) -> None:
    outcomes[scene].result()
