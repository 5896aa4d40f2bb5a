"""What an image says about its origin: version and revision of a source tree."""

import re
import subprocess
from pathlib import Path


def labels_of(tree: Path) -> dict[str, str]:
    """The Dockerfile's build arguments VERSION and REVISION; -dirty where the tree is not what the revision holds."""
    text = (tree / "operator" / "sume_operator" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.M)
    return {"VERSION": found.group(1) if found else "", "REVISION": _revision(tree)}


def _revision(tree: Path) -> str:
    """Empty outside a git repository."""
    command = ["git", "-C", str(tree), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
