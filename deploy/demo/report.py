"""What the demo says at its end: the sorted set, each sample's expected and real end, and how to look closer."""

import subprocess
from collections.abc import Mapping, Set
from typing import Final

from deploy.demo.kubectl import Kubectl
from deploy.demo.processes import BIN, Parts
from deploy.demo.samples import Key, Samples
from deploy.demo.screen import Screen
from deploy.demo.standing import Standing, mismatch

QUEUE_S: Final = 20.0


def show_queue(screen: Screen, env: Mapping[str, str]) -> None:
    """What `sume-operator queue` prints."""
    result = subprocess.run([str(BIN), "queue"], env=env, capture_output=True, text=True, check=False, timeout=QUEUE_S)
    screen.say("$ sume-operator queue")
    screen.say((result.stdout + result.stderr).rstrip())
    screen.say()


def show_ends(screen: Screen, samples: Samples, standings: Mapping[Key, Standing], gone: Set[Key]) -> int:
    """Expected and real ends side by side, a line for each mismatch; answers how many there were."""
    rows = [("RENDER", "EXPECTED", "ENDED AS", "OUTPUTS", "")]
    wrong: list[str] = []
    for sample in sorted(samples.renders, key=lambda each: each.key):
        standing = standings.get(sample.key)
        problem = mismatch(sample, standing)
        if problem is not None:
            wrong.append(f"not as expected: {sample.key} {problem}")
        verdict = "MISMATCH" if problem else "ok, and deleted itself" if sample.key in gone else "ok"
        ended = standing.result if standing and standing.has_ended else "(not ended)"
        outputs = standing.outputs if standing else "-"
        rows.append((str(sample.key), sample.result, ended, outputs, verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        screen.say("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    screen.say()
    for line in wrong:
        screen.say(line)
    return len(wrong)


def show_summary(screen: Screen, renders: int, wrong: int, took_s: float) -> None:
    """The last word."""
    screen.say(f"{renders - wrong} of {renders} renders ended as expected. All of it took {took_s:.0f} s.")


def show_kept(screen: Screen, kubectl: Kubectl, parts: Parts) -> None:
    """How to use what keeps running."""
    lines = (
        "It keeps running until Ctrl-C. In another terminal:",
        "",
        f"    export KUBECONFIG={kubectl.kubeconfig}",
        f"    export REDIS_URL={parts.redis.url}",
        f"    export PATH={kubectl.program.parent}:{BIN.parent}:$PATH",
        "    kubectl get sumerenders -A -o wide",
        "    sume-operator queue",
        "",
        f"The simulated Sume: {parts.sandbox_url}/v1 (what was asked of it: {parts.sandbox_url}/_sandbox/jobs)",
        f"Logs of all processes: {parts.fleet.logs}",
    )
    for line in lines:
        screen.say(line)
