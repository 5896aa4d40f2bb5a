"""The lock files say the same: what is tested is what the image holds."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHOLE = ROOT / "requirements.lock"
IN_IMAGE = ROOT / "deploy" / "image" / "requirements.lock"
FOR_BUILD = ROOT / "deploy" / "image" / "build.lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(path: Path) -> dict[str, set[str]]:
    """Name==version -> its hashes."""
    found: dict[str, set[str]] = {}
    for entry in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        head, *hashes = entry.split("--hash=")
        if head.strip():
            found.setdefault(head.split(";")[0].strip(), set()).update(each.strip() for each in hashes)
    return found


def names(path: Path) -> set[str]:
    """Of the packages in a lock."""
    return {pin.partition("==")[0] for pin in locked(path)}


def wanted(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[<>=!~;\[ ]", each)[0].lower().replace("_", "-") for each in requirements}


@pytest.mark.parametrize("path", [IN_IMAGE, FOR_BUILD], ids=["image", "build"])
def test_each_pin_of_the_image_is_a_pin_of_the_whole(path: Path) -> None:
    """Version and hashes; `make lock` writes them all."""
    whole = locked(WHOLE)
    differing = [pin for pin, hashes in locked(path).items() if not hashes or whole.get(pin) != hashes]
    assert not differing, "run make lock"


def test_the_image_has_every_runtime_dependency_and_nothing_for_development() -> None:
    """Of the project itself, and of the extras that the image brings."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    assert wanted([*project["dependencies"], *extras["sandbox"], *extras["cli"]]) <= names(IN_IMAGE)
    assert not wanted(extras["dev"]) & names(IN_IMAGE)


def test_the_build_has_its_backend() -> None:
    """Built without a network: what pyproject.toml requires must be there."""
    assert wanted(PROJECT["build-system"]["requires"]) <= names(FOR_BUILD)
