"""What is in an image archive of the kind that `docker save` writes: its layers, and what made each."""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SHOWN: Final = 100


class ArchiveError(RuntimeError):
    """The file is no such archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer, as large as it is unpacked."""

    size_bytes: int
    made_by: str


def layers_of(archive: Path) -> list[Layer]:
    """The layers, the base image's first."""
    try:
        with tarfile.open(archive) as tar:
            manifest = _json(tar, "manifest.json")[0]
            made_by = _made_by(_json(tar, manifest["Config"]))
            sizes = [_size(tar, name) for name in manifest["Layers"]]
    except (tarfile.TarError, KeyError, IndexError, ValueError) as error:
        raise ArchiveError(f"{archive} is no image archive: {error!r}") from error
    made_by += [""] * (len(sizes) - len(made_by))
    return [Layer(size_bytes=size, made_by=text) for size, text in zip(sizes, made_by, strict=False)]


def config_of(archive: Path) -> Any:
    """The image's configuration: user, entrypoint, environment, labels."""
    with tarfile.open(archive) as tar:
        return _json(tar, _json(tar, "manifest.json")[0]["Config"])["config"]


def _json(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return json.load(file)


def _size(tar: tarfile.TarFile, name: str) -> int:
    """The layer's own size: some builders make a second name for the same layer, as a link."""
    member = tar.getmember(name)
    while member.issym() or member.islnk():
        parent = name.rpartition("/")[0]
        name = str(Path(parent, member.linkname)) if member.issym() else member.linkname
        member = tar.getmember(str(Path("/", name).resolve()).lstrip("/"))
    return member.size


def _made_by(config: Any) -> list[str]:
    """The commands that made a layer, in one short line each."""
    history = [step for step in config.get("history", ()) if not step.get("empty_layer")]
    return [" ".join(str(step.get("created_by", "")).split())[:SHOWN] for step in history]
