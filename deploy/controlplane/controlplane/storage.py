"""How Buildah keeps layers of images in a folder: as overlays, where the folder's file system bears them."""

import subprocess
import tempfile
from pathlib import Path


def _bears_overlays(folder: Path) -> bool:
    """Tried, as nothing else tells: an overlay on an overlay (a container's own root) is refused, for one."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for name in ("lower", "upper", "work", "merged"):
            (Path(temporary) / name).mkdir()
        options = f"lowerdir={temporary}/lower,upperdir={temporary}/upper,workdir={temporary}/work"
        # In a mount namespace that ends with the command.
        command = ["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options, f"{temporary}/merged"]
        return not subprocess.run(command, capture_output=True, check=False).returncode


def buildah_storage(folder: Path) -> Path:
    """A storage.conf (CONTAINERS_STORAGE_CONF) that keeps Buildah's images and layers in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    driver = "overlay" if _bears_overlays(folder) else "vfs"
    config = folder / "storage.conf"
    config.write_text(
        f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/{driver}"\nrunroot = "{folder}/run"\n', encoding="utf-8"
    )
    return config
