"""A cgroup of one's own: made in every hierarchy there is, and taken away with all that others made below it."""

import contextlib
from pathlib import Path
from typing import Final

from controlplane.processes import wait_until

EMPTY_S: Final = 20.0
_CPU: Final = {"cpu.shares": "16384", "cpu.weight": "1600"}  # sixteen times the default, in v1 and v2


def make_cgroup(name: str) -> None:
    """`name` is a path such as /mine. With cgroup v2 its controllers are switched on for it.

    Its share of the CPU is that of many processes, as it is to hold many: by default it would get that of one.
    """
    for root, kind in _hierarchies():
        if kind == "cgroup2":
            controllers = (root / "cgroup.controllers").read_text(encoding="ascii").split()
            if not controllers:  # beside v1 it has none, and nobody looks for a group there
                continue
            switches = " ".join(f"+{controller}" for controller in controllers)
            (root / "cgroup.subtree_control").write_text(switches, encoding="ascii")
        group = root / name.lstrip("/")
        group.mkdir(exist_ok=True)
        for setting, value in _CPU.items():
            if (group / setting).exists():
                (group / setting).write_text(value, encoding="ascii")


def remove_cgroup(name: str) -> bool:
    """Whether it is gone; the kernel lets go of a group once its last process is buried."""
    groups = [root / name.lstrip("/") for root, _ in _hierarchies()]
    return wait_until(lambda: sum(_remove(group) for group in groups) == len(groups), timeout_s=EMPTY_S)


def _remove(group: Path) -> bool:
    """The deepest first: files of a group need not, and cannot, be removed."""
    if group.is_dir():
        for below in [path for path in group.iterdir() if path.is_dir()]:
            _remove(below)
        with contextlib.suppress(OSError):
            group.rmdir()
    return not group.exists()


def _hierarchies() -> list[tuple[Path, str]]:
    """Mount point and kind, cgroup or cgroup2."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    return [(Path(fields[1]), fields[2]) for fields in mounts if fields[2] in ("cgroup", "cgroup2")]
