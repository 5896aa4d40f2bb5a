"""Servers for what must hold on Redis and on Valkey."""

import os
from pathlib import Path

import pytest

from controlplane import MissingError, RedisServer
from controlplane.redis_server import Flavour, find_server


def start(flavour: Flavour, directory: Path, *options: str) -> RedisServer:
    """A server of that flavour. Valkey is among the packages of the tests; Redis may be missing."""
    try:
        find_server(flavour)
    except MissingError as error:
        if flavour == "redis" and not os.environ.get("CI"):  # in CI a missing part is a failure
            pytest.skip(str(error))
        raise
    return RedisServer(directory, flavour=flavour, options=options)
