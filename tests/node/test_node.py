"""A node of one's own: nothing of it shows on the machine, and nothing is left of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import Node
from controlplane.golang import cache_folder
from controlplane.node_place import clear_leftovers
from kube import eventually

SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
CONTROLPLANE = Path(__file__).parents[2] / "deploy" / "controlplane"
OWNER = """
import os, signal
from controlplane import Node
node = Node(lambda line: None)
node.start()
print(node.directory, flush=True)
signal.pause()
"""


def left(name: str) -> list[str]:
    """What can be seen of a node from outside, by its name."""
    processes = [path for path in Path("/proc").glob("[0-9]*/cmdline") if name.encode() in _bytes(path)]
    mounts = [line for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if name in line]
    groups = list(Path("/sys/fs/cgroup").glob(f"*/{name}"))
    return [str(each) for each in (*processes, *mounts, *groups)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def test_nothing_shows_on_the_machine(node: Node) -> None:
    """No mount, no interface, no setting of the kernel; but Services and their names work inside."""
    assert node.directory.name not in Path("/proc/mounts").read_text(encoding="utf-8")
    assert "pods0" not in Path("/proc/net/dev").read_text(encoding="utf-8")
    assert not list(Path("/run/netns").glob("cni-*"))


def test_a_killed_owner_leaves_no_process_and_the_next_clears_its_folder() -> None:
    """SIGKILL, so that nobody can clean up."""
    before = {name: Path("/proc/sys", name).read_text(encoding="ascii") for name in SETTINGS}
    env = os.environ | {"PYTHONPATH": str(CONTROLPLANE)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, env=env)
    assert owner.stdout is not None
    directory = Path(owner.stdout.readline().strip())
    assert directory.name
    assert left(directory.name)
    assert directory not in clear_leftovers()  # it lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()

    def ended() -> bool:
        return not any("/proc/" in each for each in left(directory.name))

    eventually(ended, within_s=30, what="every process ended with its owner")
    assert directory.exists()
    assert directory in clear_leftovers()
    assert not directory.exists()
    assert not left(directory.name)
    assert {name: Path("/proc/sys", name).read_text(encoding="ascii") for name in SETTINGS} == before


def test_a_record_without_words_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner died before it made anything."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    records = cache_folder() / "nodes"
    records.mkdir(parents=True)
    (records / "sume-node-1.json").write_text("", encoding="utf-8")
    (records / "sume-node-2.json").write_text(
        json.dumps({"directory": str(records / "sume-node-2"), "cgroup": "/sume-node-never"}), encoding="utf-8"
    )
    assert clear_leftovers() == [records / "sume-node-2"]
    assert not list(records.iterdir())
