"""What the chart's memory limits are chosen by: ten thousand renders that are all looked at."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from controlplane import Child, ControlPlane
from kube import Kube, eventually
from stack import Stack

RENDERS: Final = 10_000
MAKERS: Final = 8
LIMIT_MIB: Final = 256  # deploy/chart/values.yaml: controller.resources, poller.resources
SPARE: Final = 0.8
SWEPT: Final = "sumerender_sweep_last_success_timestamp_seconds"


@pytest.mark.timeout(1800)
def test_ten_thousand_renders_fit_into_the_limits(
    stack: Stack, cluster: ControlPlane, figures: Callable[[str], None]
) -> None:
    namespace = stack.namespaces[0]
    with ThreadPoolExecutor(MAKERS) as makers:
        list(makers.map(lambda share: _make(cluster, namespace, share), range(MAKERS)))
    usual: Any = {"SUME_POLL_MAX_SECONDS": "300", "SUME_SWEEP_SECONDS": "60", "SUME_LOG_LEVEL": "info"}
    stack.start_sandbox("--process-s", "7200", "--next-poll-s", "600")
    controller = stack.start("controller", ready=False, **usual)
    poller = stack.start("poller", **usual)
    eventually(lambda: stack.sandbox.answered("status") >= RENDERS, within_s=1200, every_s=5, what="all looked at")
    peaks_mib = {"controller": _peak_mib(controller), "poller": _peak_mib(poller)}
    # As after an upgrade: the watch begins with all of them, each with a status, and the sweep lists them.
    controller.stop()
    again = stack.start("controller", **usual)
    eventually(lambda: stack.metric("controller", SWEPT), within_s=120, what="a pass of the sweep")
    peaks_mib["controller, started anew"] = _peak_mib(again)

    for name, peak_mib in peaks_mib.items():
        figures(f"{RENDERS:,} renders: {name} {peak_mib:.0f} MiB at most, limit {LIMIT_MIB}")
    figures(f"{RENDERS:,} renders: Redis {stack.client.info('memory')['used_memory_peak'] / 2**20:.0f} MiB at most")
    assert max(peaks_mib.values()) < LIMIT_MIB * SPARE


def _make(cluster: ControlPlane, namespace: str, share: int) -> None:
    """Every MAKERS-th render, with an own connection."""
    kube = Kube(cluster)
    for number in range(share, RENDERS, MAKERS):
        kube.create(namespace, f"r-{number:05}", {"jobID": f"job_{number:05}"})


def _peak_mib(child: Child) -> float:
    """The most memory that the process ever held."""
    lines = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8").splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024
