"""Whether a server answers: one GET, past any proxy."""

import ssl
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Final

PROBE_S: Final = 2.0


def answers(url: str, headers: Mapping[str, str], ca_file: Path | None = None, *, timeout_s: float = PROBE_S) -> bool:
    """Whether a GET gets a 200. `ca_file`: what the server's certificate must be; it may not have been written yet."""
    context = None
    if ca_file is not None:
        try:
            context = ssl.create_default_context(cafile=str(ca_file))
        except OSError:  # not there yet, or half of it
            return False
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(urllib.request.Request(url, headers=dict(headers)), timeout=timeout_s) as response:
            return bool(response.status == 200)
    except (OSError, HTTPException):
        return False
