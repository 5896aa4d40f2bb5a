"""The images that a node needs and no registry gives here: made once of Debian's packages, kept in the cache folder."""

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from controlplane.golang import MissingError, Progress, build, cache_folder, find_go, go_version, locked
from controlplane.image_archive import write_archive, write_root
from controlplane.node_config import PAUSE_IMAGE
from controlplane.processes import dying_with_parent
from controlplane.programs import MODULES_DIR

SUITE: Final = "bookworm"
PYTHON_IMAGE: Final = "localhost/python:3"
REDIS_IMAGE: Final = "localhost/redis:7"
_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Documentation is not for containers.
_LEANER: Final = (
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)


def python_image(progress: Progress = print) -> Path:
    """PYTHON_IMAGE as an archive: stands for the official slim Python image as the Dockerfile's base."""
    packages = ("python3", "python3-venv", "ca-certificates")
    return _debian_image("python", PYTHON_IMAGE, packages, {"Env": [_PATH], "Cmd": ["python3"]}, progress)


def redis_image(progress: Progress = print) -> Path:
    """REDIS_IMAGE as an archive: stands for the official Redis image; any command line is run as it is given."""
    return _debian_image("redis", REDIS_IMAGE, ("redis-server",), {"Env": [_PATH], "Cmd": ["redis-server"]}, progress)


def pause_image(progress: Progress = print) -> Path:
    """PAUSE_IMAGE as an archive: one static program."""
    source, go = MODULES_DIR / "pause", find_go(progress)
    key = _key((source / "main.go").read_text(encoding="utf-8"), go_version(go))

    def make(folder: Path, target: Path) -> None:
        build(go, source, ".", "", folder / "pause", progress)
        write_root(folder / "root.tar", {"pause": folder / "pause"})
        write_archive(target, PAUSE_IMAGE, folder / "root.tar", {"Entrypoint": ["/pause"]})

    return _cached(f"pause-{key}.tar", make)


def _debian_image(name: str, image: str, packages: tuple[str, ...], config: dict[str, Any], progress: Progress) -> Path:
    """Of these packages and the least that they need."""

    def make(folder: Path, target: Path) -> None:
        started_s, root = time.monotonic(), folder / "root.tar"
        progress(f"making the image {image} of Debian's packages (about half a minute)")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *_LEANER]
        try:
            result = subprocess.run(
                dying_with_parent([*command, SUITE, str(root)]), capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise MissingError("mmdebstrap is needed on PATH (package mmdebstrap)") from None
        if result.returncode:
            raise MissingError(f"mmdebstrap could not make {image}:\n{result.stderr[-2000:]}")
        write_archive(target, image, root, config)
        progress(f"made {image} in {time.monotonic() - started_s:.0f} s")

    return _cached(f"{name}-{_key(SUITE, image, *packages, *_LEANER, str(config))}.tar", make)


def _cached(name: str, make: Callable[[Path, Path], None]) -> Path:
    """The file of that name in the cache, made if need be with the help of a folder that goes."""
    images = cache_folder() / "images"
    images.mkdir(parents=True, exist_ok=True)
    target = images / name
    with locked(images / ".lock"):
        if not target.exists():
            # Beside the target: large, and renamed into its place.
            folder = Path(tempfile.mkdtemp(dir=images))
            try:
                make(folder, target)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return target


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
