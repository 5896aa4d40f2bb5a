"""Who asks: the API key of a request, whether it is accepted, and the workspace it stands for.

A key leaves this module as a fingerprint only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sume_sandbox import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever presented an accepted key."""

    fingerprint: str
    workspace: str  # slots, read budget and idempotency keys are counted per workspace


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The API key that a request shows, as `Authorization: Bearer KEY` or `x-api-key: KEY`."""
    authorization = headers.get("Authorization")
    if authorization is None:
        return headers.get("x-api-key", "").strip() or None
    scheme, _, credentials = authorization.partition(" ")
    return credentials.strip() or None if scheme.lower() == "bearer" else None


class Keys:
    """The accepted keys; none at all means that every key is accepted."""

    def __init__(self, api_keys: frozenset[str]) -> None:
        self._workspaces: dict[str, str] = {}
        self.replace(dict.fromkeys(api_keys))

    def replace(self, workspaces: Mapping[str, str | None]) -> None:
        """Accept these keys from now on. A key without the name of a workspace is a workspace of its own."""
        self._workspaces = {key: name or digest.fingerprint(key) for key, name in workspaces.items()}

    @property
    def fingerprints(self) -> list[str]:
        """The accepted keys, as fingerprints."""
        return sorted(map(digest.fingerprint, self._workspaces))

    def caller(self, key: str | None) -> Caller | None:
        """Who that is; None if the key is not accepted."""
        if not key or (self._workspaces and key not in self._workspaces):
            return None
        fingerprint = digest.fingerprint(key)
        return Caller(fingerprint=fingerprint, workspace=self._workspaces.get(key, fingerprint))
