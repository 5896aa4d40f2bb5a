"""Whatever dies or hangs, all renders still end right, no end is taken back, and none waits longer than it may."""

import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controlplane import Child
from kube import condition, eventually, is_finished, status
from observer import Observer
from stack import POINTS_OF_A_REQUEST, Stack, scripted
from sume_operator.runtime.failpoints import Failpoint

LEASE_AND_SWEEP_S = 5 + 4
# Starting a process, and two cores that a whole control plane shares.
SLACK_S = 2.5

Figures = Callable[[str], None]

ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "works": (scripted("queued", "processing", "processing", "completed", next_poll_s=0.7), "Completed"),
    "breaks": (scripted("queued", "processing", "failed", next_poll_s=0.7), "Failed"),
    "stops": (scripted("processing", "processing", "canceled", next_poll_s=0.7), "Canceled"),
}


def _create(stack: Stack, count: int, prefix: str) -> list[str]:
    """`count` renders with scripted jobs; answers the jobs."""
    jobs = {f"job_{prefix}-{list(ENDS)[n % 3]}-{n}": ENDS[list(ENDS)[n % 3]] for n in range(count)}
    stack.sandbox.script({job: script for job, (script, _state) in jobs.items()})
    for number, job in enumerate(jobs):
        stack.kube.create(stack.namespaces[number % 3], f"{prefix}-{number}", {"jobID": job})
    return list(jobs)


def _all_ended(stack: Stack, jobs: list[str]) -> bool:
    renders = [r for r in stack.kube.all_in(stack.namespaces) if r["spec"]["jobID"] in jobs]
    return len(renders) == len(jobs) and all(map(is_finished, renders))


def _check(stack: Stack, jobs: list[str], observer: Observer) -> float:
    """Every render ended as its script says; answers the longest gap between two reads of one job, in seconds."""
    for render in stack.kube.all_in(stack.namespaces):
        job = render["spec"]["jobID"]
        if job not in jobs:
            continue
        state = next(state for word, (_script, state) in ENDS.items() if f"-{word}-" in job)
        assert status(render)["state"] == state, job
        assert condition(render, "Finished")[0] == "True"
    stack.wait_empty(within_s=LEASE_AND_SWEEP_S + SLACK_S)
    assert observer.versions >= 2 * len(jobs)
    assert observer.reverts() == []
    seen = stack.sandbox.jobs()
    return max(float(seen[job]["longest_gap_s"] or 0.0) for job in jobs)


@pytest.mark.timeout(300)
def test_a_poller_dies_between_any_two_steps(stack: Stack, figures: Figures) -> None:
    """Each failpoint: one of two pollers dies there, in the middle of a batch; the other one carries on."""
    stack.start_all(pollers=1, SUME_CONCURRENCY="2")
    with Observer(stack.kube, stack.namespaces) as observer:
        for point in [point for point in Failpoint if point not in POINTS_OF_A_REQUEST]:
            doomed = stack.start("poller", f"doomed-{point}", SUME_FAILPOINT=point.value, SUME_CONCURRENCY="4")
            jobs = _create(stack, 9, point.value)
            assert doomed.wait(timeout_s=15) == -signal.SIGKILL, f"{point}: the failpoint was not reached"
            eventually(partial(_all_ended, stack, jobs), within_s=30, every_s=0.2, what=point.value)
            gap_s = _check(stack, jobs, observer)
            figures(f"poller killed {point.value}: longest gap {gap_s:.1f} s, allowed {LEASE_AND_SWEEP_S} s")
            assert gap_s <= LEASE_AND_SWEEP_S + SLACK_S
    assert stack.metric("poller-0", "sumerender_leases_expired_total") > 0


def _kill_controller(stack: Stack) -> None:
    """Dead while renders are made; started again."""
    stack.processes["controller"].kill()
    time_to_miss_s = 1.0
    time.sleep(time_to_miss_s)  # the fault itself: so long is there no controller
    stack.start("controller")


def _flush(stack: Stack) -> None:
    """Three times, while alarms are leased."""
    for _ in range(3):
        assert stack.client.flushall()
        time.sleep(0.5)  # the fault itself: so far apart are the three


def _restart_redis(stack: Stack) -> None:
    stack.redis.kill()
    time.sleep(1.0)  # the fault itself
    stack.redis.start()


def _hang_redis(stack: Stack) -> None:
    stack.redis.pause()
    time.sleep(3.0)  # the fault itself
    stack.redis.resume()


def _restart_apiserver(stack: Stack) -> None:
    stack.control_plane.restart_apiserver()


def _kill_apiserver(stack: Stack) -> None:
    stack.control_plane.apiserver.kill()
    stack.control_plane.start_apiserver()


def _hang_apiserver(stack: Stack) -> None:
    stack.control_plane.apiserver.pause()
    time.sleep(4.0)  # the fault itself: longer than a call may take
    stack.control_plane.apiserver.resume()


FAULTS: list[Callable[[Stack], None]] = [
    _kill_controller,
    _flush,
    _restart_redis,
    _hang_redis,
    _restart_apiserver,
    _kill_apiserver,
    _hang_apiserver,
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__).strip("_"))
def test_a_part_fails(stack: Stack, figures: Figures, fault: Callable[[Stack], None]) -> None:
    stack.start_all(pollers=2)
    with Observer(stack.kube, stack.namespaces) as observer:
        jobs = _create(stack, 24, "first")
        eventually(lambda: sum(stack.sandbox.reads(job) for job in jobs[:6]) > 6, within_s=15)
        started_s = time.monotonic()
        fault(stack)
        outage_s = time.monotonic() - started_s
        jobs += _create(stack, 6, "later")
        eventually(lambda: _all_ended(stack, jobs), within_s=45, every_s=0.2)
        gap_s = _check(stack, jobs, observer)
    allowed_s = LEASE_AND_SWEEP_S + outage_s
    figures(f"{fault.__name__.strip('_')}: out {outage_s:.1f} s, longest gap {gap_s:.1f} s, allowed {allowed_s:.1f} s")
    assert gap_s <= allowed_s + SLACK_S
    _assert_alive(stack.processes)


def _assert_alive(processes: dict[str, Child]) -> None:
    assert [name for name, process in processes.items() if not process.is_running] == []
