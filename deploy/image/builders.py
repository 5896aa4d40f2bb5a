"""What can build an image: Docker, else Podman, else Buildah. The first that works, not the first on PATH."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECK_S: Final = 30.0


class BuilderError(RuntimeError):
    """No image can be built here; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """How to ask one of them. `check` shows that it works: a Docker client with no engine behind it does not."""

    name: str
    check: tuple[str, ...]
    build_options: tuple[str, ...]
    save_command: tuple[str, ...]  # {image} and {file} are filled in

    def works(self) -> bool:
        """Whether it can build anything."""
        if shutil.which(self.name) is None:
            return False
        try:
            return not subprocess.run(self.check, capture_output=True, check=False, timeout=CHECK_S).returncode
        except (OSError, subprocess.TimeoutExpired):
            return False

    def build(self, context: Path, image: str, arguments: Mapping[str, str], secrets: Mapping[str, Path]) -> None:
        """Build `context`; what the builder says goes where ours goes."""
        command = [self.name, "build", *self.build_options, "--tag", image]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        for name, path in secrets.items():
            command += ["--secret", f"id={name},src={path}"]
        command += ["--file", str(context / "Dockerfile"), str(context)]
        subprocess.run(command, check=True, env=os.environ | {"DOCKER_BUILDKIT": "1"})

    def save(self, image: str, file: Path) -> None:
        """The image as one file, of the kind that `docker save` writes."""
        file.unlink(missing_ok=True)  # Buildah would add to it
        subprocess.run(
            [part.format(image=image, file=file) for part in self.save_command], check=True, capture_output=True
        )


_BUILDERS: Final[Sequence[Builder]] = (
    Builder(
        name="docker",
        check=("docker", "info"),
        build_options=(),
        save_command=("docker", "save", "--output", "{file}", "{image}"),
    ),
    Builder(
        name="podman",
        check=("podman", "info"),
        build_options=("--layers",),
        save_command=("podman", "save", "--format", "docker-archive", "--output", "{file}", "{image}"),
    ),
    Builder(
        name="buildah",
        check=("buildah", "info"),
        build_options=("--layers",),
        save_command=("buildah", "push", "--quiet", "{image}", "docker-archive:{file}:{image}"),
    ),
)
BUILDERS: Final = tuple(builder.name for builder in _BUILDERS)


def find_builder(name: str | None = None) -> Builder:
    """The first that works, or the one of that name."""
    wanted = [builder for builder in _BUILDERS if name in (None, builder.name)]
    for builder in wanted:
        if builder.works():
            return builder
    tried = ", ".join(f"`{' '.join(builder.check)}`" for builder in wanted)
    raise BuilderError(f"no image can be built here: {tried} failed. Install one of these, or start its engine.")
