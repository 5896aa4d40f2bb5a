"""The samples: which renders there are, how each says that it should end, and what is to be done to it half way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from deploy.demo.errors import DemoError

PREFIX: Final = "demo.render.sume.com"
EXPECT: Final = f"{PREFIX}/expect"
OUTPUTS: Final = f"{PREFIX}/outputs"
MIDWAY: Final = f"{PREFIX}/midway"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Namespace and name of a render."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One render. `result`: STATE/REASON; `midway`: a merge patch, as JSON."""

    key: Key
    result: str
    outputs: str | None
    midway: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """All of them, in the order of their files."""

    folder: Path
    files: tuple[Path, ...]  # those with renders or namespaces: the folder has other samples, too
    namespaces: tuple[Mapping[str, Any], ...]
    renders: tuple[Sample, ...]

    @property
    def namespace_names(self) -> tuple[str, ...]:
        """Their namespaces."""
        return tuple(str(each["metadata"]["name"]) for each in self.namespaces)


def load_samples(folder: Path) -> Samples:
    """The samples of a folder; DemoError names the file that says too little."""
    namespaces: list[Mapping[str, Any]] = []
    renders: list[Sample] = []
    files: list[Path] = []
    for path in sorted(folder.glob("*.yaml")):
        documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
        if not all(document["kind"] in ("Namespace", "SumeRender") for document in documents):
            continue
        files.append(path)
        for document in documents:
            if document["kind"] == "Namespace":
                namespaces.append(document)
            else:
                renders.append(_sample(document, path))
    samples = Samples(folder=folder, files=tuple(files), namespaces=tuple(namespaces), renders=tuple(renders))
    strays = [sample for sample in renders if sample.key.namespace not in samples.namespace_names]
    if strays or not renders:
        what = f"no namespace for {strays[0].key}" if strays else "no SumeRender"
        raise DemoError(f"{folder}: has {what}")
    return samples


def _sample(document: Mapping[str, Any], path: Path) -> Sample:
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or {}
    key = Key(str(metadata.get("namespace", "default")), str(metadata["name"]))
    if EXPECT not in annotations:
        raise DemoError(f"{path}: {key} does not say how it should end (annotation {EXPECT}: STATE/REASON)")
    midway = annotations.get(MIDWAY)
    if midway is not None and not _is_json(midway):
        raise DemoError(f"{path}: {key}: annotation {MIDWAY} wants a merge patch as JSON")
    return Sample(key=key, result=annotations[EXPECT], outputs=annotations.get(OUTPUTS), midway=midway)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
