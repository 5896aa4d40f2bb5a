"""Which API key a render is asked for with: its own Secret's, else the operator's. Keys never leave in a text.

Secrets are read anew after CACHE_S, so that a replaced key is picked up without a restart and 500 renders of one
Secret do not mean 500 reads of it.
"""

import hashlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sume_operator.adapters.kubernetes_errors import GoneError, NotPermittedError
from sume_operator.core.job import NoCredentials
from sume_operator.core.render import Render

CACHE_S: Final = 10.0
CACHE_ENTRIES: Final = 1024

# Namespace, name, seconds at most.
SecretReader = Callable[[str, str, float], dict[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key, where it came from (`NAMESPACE/SECRET` or `default`), and a one-way fingerprint of its value."""

    key: str = field(repr=False)
    source: str
    fingerprint: str


class Credentials:
    """Resolves keys. ClusterError where the API server cannot be asked: unknown is not missing."""

    def __init__(
        self,
        read_secret: SecretReader,
        *,
        api_url: str,
        default_key: str | None = None,
        default_key_file: Path | None = None,
        default_namespaces: frozenset[str] | None = None,
        cache_s: float = CACHE_S,
    ) -> None:
        self._read_secret = read_secret
        self._api_url = api_url
        self._default_key = default_key
        self._default_key_file = default_key_file
        self._default_namespaces = default_namespaces
        self._cache_s = cache_s
        self._cache: dict[tuple[str, str], tuple[float, dict[str, bytes] | None]] = {}
        self._lock = threading.Lock()

    def resolve(self, render: Render, timeout_s: float = math.inf) -> Credential | NoCredentials:
        """The key for `render`, or why there is none; its Secret is waited for at most `timeout_s`."""
        if render.credentials is None:
            return self._default(render.ref.namespace)
        namespace, name, key = render.ref.namespace, render.credentials.name, render.credentials.key
        try:
            data = self._secret(namespace, name, timeout_s)
        except NotPermittedError:
            message = f"The operator may not read Secret {name}: its Role lacks `get` on secrets in this namespace."
            return NoCredentials(reason="CredentialsNotFound", message=message)
        if data is None:
            message = f"Secret {name} does not exist in namespace {namespace}. Create it; no restart is needed."
            return NoCredentials(reason="CredentialsNotFound", message=message)
        if key not in data:
            message = f"Secret {name} has no key {key}. Add it, or name another in spec.credentialsSecretRef.key."
            return NoCredentials(reason="CredentialsKeyMissing", message=message)
        return self._checked(data[key], f"{namespace}/{name}")

    def _default(self, namespace: str) -> Credential | NoCredentials:
        if self._default_namespaces is not None and namespace not in self._default_namespaces:
            message = (
                f"Namespace {namespace} may not use the operator's own key (SUME_DEFAULT_KEY_NAMESPACES). "
                "Name a Secret in spec.credentialsSecretRef."
            )
            return NoCredentials(reason="NamespaceNotAllowed", message=message)
        raw: bytes | None = self._default_key.encode(errors="surrogateescape") if self._default_key else None
        if self._default_key_file is not None:
            try:
                raw = self._default_key_file.read_bytes()  # so small that reading beats caching
            except OSError:
                raw = None
        if raw is None:
            message = (
                "The operator has no API key of its own (SUME_API_KEY or SUME_API_KEY_FILE). "
                "Give it one, or name a Secret in spec.credentialsSecretRef."
            )
            return NoCredentials(reason="CredentialsNotFound", message=message)
        return self._checked(raw, "default")

    def _checked(self, raw: bytes, source: str) -> Credential | NoCredentials:
        """A key that cannot stand in a header would otherwise come back whole in an exception's text."""
        key = raw.decode("latin-1").strip()
        if not key or not all(0x20 < ord(char) < 0x7F for char in key):
            message = (
                f"The API key in {source} is empty, or holds characters that no key has (blanks, control, non-ASCII)."
            )
            return NoCredentials(reason="CredentialsInvalid", message=message)
        digest = hashlib.sha256(f"{self._api_url}\0{key}".encode()).hexdigest()
        return Credential(key=key, source=source, fingerprint=digest[:16])

    def _secret(self, namespace: str, name: str, timeout_s: float) -> dict[str, bytes] | None:
        """The Secret's data, None if there is none; from the cache while it is fresh."""
        now_s = time.monotonic()
        with self._lock:
            known = self._cache.get((namespace, name))
        if known and now_s - known[0] < self._cache_s:
            return known[1]
        try:
            data: dict[str, bytes] | None = self._read_secret(namespace, name, timeout_s)
        except GoneError:
            data = None
        with self._lock:
            if len(self._cache) >= CACHE_ENTRIES:
                self._cache.clear()
            self._cache[(namespace, name)] = (now_s, data)
        return data
