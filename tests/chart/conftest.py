"""Helm with a home of its own."""

from pathlib import Path

import pytest

from helm import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Without a cluster: renders and lints."""
    return Helm(Path(tmp_path_factory.mktemp("helm")))
