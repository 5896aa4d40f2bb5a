"""Image archives of the kind that `docker save` writes, made of finished root file systems. No builder needed."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(target: Path, image: str, root: Path, config: Mapping[str, Any]) -> None:
    """`root`, a tar of a whole file system, becomes the one layer of `image`. Appears whole or not at all."""
    with root.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    described = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": f"root file system of {image}"}],
    }
    text = json.dumps(described).encode()
    config_name, layer_name = f"{hashlib.sha256(text).hexdigest()}.json", f"{digest}.tar"
    part = target.with_name(f"{target.name}.part")
    with tarfile.open(part, "w") as tar:
        _add(tar, config_name, text)
        tar.add(root, layer_name)
        manifest = [{"Config": config_name, "RepoTags": [image], "Layers": [layer_name]}]
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    part.rename(target)


def write_root(target: Path, programs: Mapping[str, Path]) -> None:
    """A tar of a file system that holds nothing but these programs, by name."""
    with tarfile.open(target, "w") as tar:
        for name, path in programs.items():
            info = tarfile.TarInfo(name)
            info.mode, info.size = 0o755, path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(info, file)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
