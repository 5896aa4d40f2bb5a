"""make image: which builder is taken, what it is told, and what is said of the result."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.image_archive import write_archive, write_root

ROOT = Path(__file__).parents[2]
IMAGE = "registry.example.com/sume-operator:1"
WORKS = 'echo "$0 $@" >> "$SAID"; case "$1" in push|save) cp "$ARCHIVE" "$COPY_TO";; esac'
FAILS = "echo 'Cannot connect to the Docker daemon' >&2; exit 1"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an image archive, and a folder `bin` for builders."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "program").write_bytes(b"x" * 3 * 1024 * 1024)
    write_root(tmp_path / "root.tar", {"program": tmp_path / "program"})
    write_archive(tmp_path / "image.tar", IMAGE, tmp_path / "root.tar", {})
    return tmp_path


def build(
    place: Path, builders: Mapping[str, str], *options: str, **env: str
) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Run it where only these builders are on PATH; answers the result and what they were told."""
    for name, script in builders.items():
        program = place / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    said, out = place / "said", place / "out.tar"
    given = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "SAID": str(said), "ARCHIVE": str(place / "image.tar")}
    result = subprocess.run(
        [sys.executable, ROOT / "deploy" / "image", f"--image={IMAGE}", f"--archive={out}", *options],
        env={name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        | given
        | {"COPY_TO": str(out)}
        | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return result, said.read_text(encoding="utf-8").splitlines() if said.exists() else []


def test_a_client_without_an_engine_is_passed_over(place: Path) -> None:
    """Docker is on PATH and does not answer; Podman does."""
    result, said = build(place, {"docker": FAILS, "podman": WORKS, "buildah": WORKS})
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"building {IMAGE} with podman\n")
    assert [line.split()[0].rpartition("/")[2] for line in said] == ["podman"] * 3
    assert result.stdout.splitlines()[-1].split() == ["3.0", "MiB", f"{IMAGE},", "unpacked"]


def test_docker_is_the_first_choice(place: Path) -> None:
    """Where everything works."""
    result, _ = build(place, {"docker": WORKS, "podman": WORKS, "buildah": WORKS})
    assert result.stdout.startswith(f"building {IMAGE} with docker\n")


def test_no_builder_says_what_to_do(place: Path) -> None:
    """And fails."""
    result, _ = build(place, {"docker": FAILS, "podman": FAILS, "buildah": FAILS})
    assert result.returncode == 1
    assert result.stderr == (
        "no image can be built here: `docker info`, `podman info`, `buildah info` failed."
        " Install one of these, or start its engine.\n"
    )


def test_a_failed_build_fails(place: Path) -> None:
    """With the builder's own words before it."""
    result, _ = build(place, {"docker": 'test "$1" = info'})
    assert result.returncode == 1
    assert "returned non-zero exit status 1" in result.stderr


def test_base_image_and_origin_are_build_arguments(place: Path) -> None:
    """The revision is git's; a source is only named if it is given, as a remote's address may hold a password."""
    _, said = build(place, {"docker": WORKS}, "--python-image=base:1", "--source=https://example.com/source")
    line = next(line for line in said if " build " in line)
    for argument in ("PYTHON_IMAGE=base:1", "VERSION=", "REVISION=", "SOURCE=https://example.com/source"):
        assert f"--build-arg {argument}" in line
    _, said = build(place, {"docker": WORKS})
    assert "PYTHON_IMAGE" not in said[-2]  # the Dockerfile's own default


def test_the_callers_pip_settings_are_secrets_of_the_build(place: Path) -> None:
    """A mirror's address may hold a password: it is neither an argument nor in a file that others can read."""
    show = 'for a in "$@"; do case "$a" in id=pip.conf,*) f=${a#*src=}; stat -c %a $f; cat $f;; esac; done'
    mirror = "https://user:secret%40@pypi.example.com/simple"
    env = {"PIP_INDEX_URL": mirror, "PIP_CERT": "/etc/ca.pem"}
    result, said = build(place, {"docker": f"{WORKS}; {show}"}, **env)
    assert f"600\n[global]\nindex-url = {mirror}\ncert = /etc/pip-ca.pem\n" in result.stdout
    line = next(line for line in said if " build " in line)
    assert "secret%40" not in line
    assert "--secret id=pip-ca.pem,src=/etc/ca.pem" in line
