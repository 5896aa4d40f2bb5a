"""Five hundred renders of one key at the limits of a real plan: 4 running + 20 queued jobs, 120 reads a minute."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from kube import Body, condition, eventually, is_finished, status
from stack import Stack

RENDERS = 500
REQUEST: Body = {"model": "sume/clip-fast", "arguments": {"prompt": "a dog"}}


@pytest.mark.timeout(2400)
def test_five_hundred_renders_of_one_key(stack: Stack, figures: Callable[[str], None]) -> None:
    """All end; never more than 24 under way; never a 429; the order of submission follows age."""
    limits: Any = {
        "SUME_MAX_ACTIVE_JOBS": "24",
        "SUME_READS_PER_MINUTE": "120",
        "SUME_SUBMISSIONS_PER_MINUTE": "0",
        "SUME_POLL_MIN_SECONDS": "2",
        "SUME_POLL_MAX_SECONDS": "300",
        "SUME_POLL_SECONDS": "15",
        "SUME_SWEEP_SECONDS": "60",
        "SUME_LOG_LEVEL": "info",
    }
    stack.start_sandbox("--queue-s", "1", "--process-s", "4", "--next-poll-s", "12", "--reads-per-minute", "120")
    stack.start("controller", **limits)
    for number in range(3):
        stack.start("poller", f"poller-{number}", **limits)
    namespace = stack.namespaces[0]
    started_s = time.monotonic()
    for number in range(RENDERS):
        stack.kube.create(namespace, f"r-{number:03}", {"request": REQUEST})
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=2300, every_s=5)
    took_s = time.monotonic() - started_s

    renders, stats = stack.kube.all_in([namespace]), stack.sandbox.stats()
    reads = sum(map(stack.sandbox.answered, ("status", "result")))
    figures(f"{RENDERS} renders, 24 slots, 120 reads a minute: {took_s / 60:.1f} min, {reads / RENDERS:.2f} reads each")
    figures(f"most under way {stats['max_active']}, 429: {stats['rate_limited']}, {stats['requests']}")
    assert {condition(render, "Succeeded")[1] for render in renders} == {"Completed"}
    assert stats["jobs"]["submitted"] == RENDERS
    assert stats["max_active"] <= 24
    assert stats["rate_limited"] == 0
    by_start = sorted(renders, key=lambda render: str(status(render)["startTime"]))
    for place, render in enumerate(by_start):
        age = int(render["metadata"]["name"].removeprefix("r-"))
        # Those made within one second are alike in age, and 24 are under way at once.
        assert abs(place - age) < 120, f"{render['metadata']['name']} was number {place}"
    stack.wait_empty(within_s=10)
