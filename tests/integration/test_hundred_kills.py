"""A hundred pollers die between the slot and the POST, then Redis is emptied: the slots are counted right all the same.

Nobody else works while they die, so that what Redis holds can be compared with the truth: what Sume runs, and what the
objects say is being asked for.
"""

import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from kube import Body, condition, eventually, is_finished, status
from nursery import Nursery
from stack import Stack
from sume_operator.runtime.failpoints import Failpoint

KILLS: Final = 100
AT_ONCE: Final = 6
RUNNING: Final = 10
WAITING: Final = 50
SLOTS: Final = 40
# The lease is long from the last of them on, so those renders come back last: they are killed first.
POINTS: Final = [
    *[Failpoint.BEFORE_CALL] * 15,
    *itertools.chain(*[[Failpoint.AFTER_SLOT, Failpoint.AFTER_INTENT]] * KILLS),
][:KILLS]
SETTINGS: Final[dict[str, Any]] = {
    "SUME_MAX_ACTIVE_JOBS": str(SLOTS),
    "SUME_SUBMIT_TIMEOUT_SECONDS": "2",
    "SUME_LEASE_SECONDS": "5",
}
# Who is to live has time, however busy the machine is.
HEALTHY: Final[dict[str, Any]] = SETTINGS | {
    "SUME_LEASE_SECONDS": "30",
    "SUME_KUBERNETES_TIMEOUT_SECONDS": "15",
    "SUME_CONCURRENCY": "8",
}


@pytest.mark.timeout(600)
def test_a_hundred_pollers_die_between_slot_and_post(stack: Stack, figures: Callable[[str], None]) -> None:
    stack.start_sandbox("--queue-s", "0", "--process-s", "1", "--running-slots", "99", "--queued-slots", "99")
    stack.start("controller", **SETTINGS)
    uids = _jobs_under_way(stack)
    namespace = stack.namespaces[0]
    for number in range(WAITING):
        made = stack.kube.create(namespace, f"r-{number}", {"request": {"model": "sume/clip-fast", "arguments": {}}})
        uids.append(made["metadata"]["uid"])
    since_s = time.monotonic()
    most_held = _kill(stack)
    killing_s = time.monotonic() - since_s
    assert most_held <= SLOTS

    eventually(lambda: _held(stack) == _truth(stack), within_s=30, every_s=0.5, what="slots as the truth")
    before = _truth(stack)
    stack.client.flushall()
    eventually(lambda: stack.queue()["whole"], within_s=15, every_s=0.5, what="Redis whole again")
    assert _held(stack) == _truth(stack) == before
    assert len(before) > RUNNING  # some died with their intent on record
    figures(f"{KILLS} kills in {killing_s:.0f} s, FLUSHALL: {len(before)} slots held, as many as there should be")

    for number in range(2):
        stack.start("poller", f"healthy-{number}", ready=False, **HEALTHY)
    eventually(lambda: all(map(is_finished, _renders(stack))), within_s=200, every_s=1.0)
    assert {condition(render, "Succeeded")[1] for render in _renders(stack)} == {"Completed"}
    keys = Counter(job["idempotency_key"] for job in stack.sandbox.jobs().values())
    assert keys == Counter(uids)  # one job each
    eventually(lambda: not _held(stack), within_s=20, what="no slot held")


def _jobs_under_way(stack: Stack) -> list[str]:
    """Ten renders whose jobs Sume has, and that are not seen to end while nobody looks; answers the uids."""
    first = stack.start("poller", "first", **HEALTHY)
    request = {"model": "sume/clip-slow", "arguments": {}}
    made = [stack.kube.create(stack.namespaces[1], f"runs-{n}", {"request": request}) for n in range(RUNNING)]
    eventually(lambda: all(status(render).get("jobID") for render in _renders(stack)), within_s=30)
    assert first.stop() == 0
    return [body["metadata"]["uid"] for body in made]


def _kill(stack: Stack) -> int:
    """Some pollers at a time, each of them until it dies at its point; answers the most slots that were held."""
    numbers, alive, most = iter(enumerate(POINTS)), set[int](), 0
    over_s = time.monotonic() + 300
    with Nursery() as nursery:
        while True:
            for number, point in itertools.islice(numbers, AT_ONCE - len(alive)):
                more = SETTINGS | {"SUME_FAILPOINT": point.value, "SUME_CONCURRENCY": "1", "SUME_HTTP_PORT": "0"}
                log = stack.directory / f"doomed-{number}.log"
                alive.add(nursery.start("poller", log, stack.environment(**more)))
            if not alive:
                return most
            most = max(most, len(_held(stack)))
            assert time.monotonic() < over_s, f"{len(alive)} pollers did not reach their point"
            time.sleep(0.1)
            ended = nursery.ended()
            assert set(ended.values()) <= {-signal.SIGKILL}
            alive -= set(ended)


def _held(stack: Stack) -> set[str]:
    """The uids of the renders that hold a slot."""
    members = [member for key in stack.client.keys("sume:polls:slots:*") for member in stack.client.zrange(key, 0, -1)]
    return {str(member).rpartition("/")[2] for member in members}


def _truth(stack: Stack) -> set[str]:
    """The uids of the renders whose job has not been seen to end, or may be being asked for."""
    return {
        render["metadata"]["uid"]
        for render in _renders(stack)
        if not is_finished(render) and (status(render).get("jobID") or condition(render, "Submitted")[0] == "Unknown")
    }


def _renders(stack: Stack) -> list[Body]:
    return stack.kube.all_in(stack.namespaces)
