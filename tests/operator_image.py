"""The operator's image as tests need it: built of this tree by the project's own Dockerfile, under any version."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from controlplane import node_images
from controlplane.golang import Progress, cache_folder, locked
from controlplane.storage import buildah_storage

ROOT: Final = Path(__file__).parents[1]
BUILD_S: Final = 600.0
_COPIED: Final = ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE", "operator", "deploy/image")


class OperatorImages:
    """Builds with Buildah, whose layers stay in the cache folder: a build after a small change takes seconds."""

    def __init__(self, directory: Path, progress: Progress) -> None:
        self._directory = directory
        self._progress = progress
        self._storage = cache_folder() / "buildah"
        self._env = os.environ | {
            "BUILDAH_ISOLATION": "chroot",  # all that a machine without every capability allows
            "CONTAINERS_STORAGE_CONF": str(buildah_storage(self._storage)),
        }

    def build(self, image: str, version: str | None = None) -> Path:
        """An archive of `image`; with `version`, as if the tree had that one."""
        context = ROOT if version is None else self._tree_of(version)
        archive = self._directory / f"{image.replace('/', '_').replace(':', '_')}.tar"
        command = [sys.executable, str(ROOT / "deploy" / "image"), "--builder=buildah", f"--image={image}"]
        command += [f"--python-image={node_images.PYTHON_IMAGE}", f"--archive={archive}", f"--context={context}"]
        with locked(self._storage / ".lock"):
            self._have_base()
            self._progress(self._run(command).splitlines()[-1].strip())
        return archive

    def _have_base(self) -> None:
        """The base image in Buildah's store, once for each archive of it."""
        archive = node_images.python_image(self._progress)
        mark = self._storage / f"{archive.stem}.pulled"
        if not mark.exists():
            self._run(["buildah", "pull", "--quiet", f"docker-archive:{archive}"])
            mark.touch()

    def _run(self, command: list[str]) -> str:
        """What it prints. Its own processes end with it, also when the test is broken off."""
        process = subprocess.Popen(
            command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            said, _ = process.communicate(timeout=BUILD_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        assert not process.returncode, f"{' '.join(command)}:\n{said[-4000:]}"
        return said

    def _tree_of(self, version: str) -> Path:
        """A copy of what the image is made of, with another version."""
        tree = self._directory / version
        for name in _COPIED:
            source, target = ROOT / name, tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        told = tree / "operator" / "sume_operator" / "__init__.py"
        text = told.read_text(encoding="utf-8")
        told.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', text), encoding="utf-8")
        return tree
