"""The caller's own pip variables as secrets of the build: a mirror and its CA hold there too, and leave no trace."""

import os
from collections.abc import Mapping
from configparser import RawConfigParser
from pathlib import Path
from typing import Final

_INDEXES: Final = {"PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url", "PIP_TIMEOUT": "timeout"}
_CA_IN_BUILD: Final = "/etc/pip-ca.pem"  # where the Dockerfile mounts it


def pip_secrets(directory: Path, env: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Secret id -> file, as the Dockerfile mounts them; the pip.conf is written into `directory`."""
    secrets: dict[str, Path] = {}
    settings = {option: env[name] for name, option in _INDEXES.items() if env.get(name)}
    if env.get("PIP_CERT"):
        settings["cert"] = _CA_IN_BUILD
        secrets["pip-ca.pem"] = Path(env["PIP_CERT"])
    if settings:
        config = RawConfigParser()
        config["global"] = settings
        secrets["pip.conf"] = directory / "pip.conf"
        secrets["pip.conf"].touch(mode=0o600)  # the address of a mirror may hold a password
        with secrets["pip.conf"].open("w", encoding="utf-8") as file:
            config.write(file)
    return secrets
