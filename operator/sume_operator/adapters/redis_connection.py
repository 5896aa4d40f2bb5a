"""The one connection pool to Redis: bounded time-outs, no retries, a password that may change, errors in one place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.retry import Retry

SOCKET_TIMEOUT_S: Final = 2.0
SPARE_CONNECTIONS: Final = 8


class RedisUnavailableError(Exception):
    """Redis did not answer, or refused: nothing is known of what it holds. The text names no password."""


class _PasswordFile(CredentialProvider):
    """Reads the password at each connect, so that a rotated one is picked up without a restart."""

    def __init__(self, path: Path, username: str | None) -> None:
        self._path = path
        self._username = username

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        password = self._path.read_text(encoding="utf-8", errors="surrogateescape").strip()
        return (self._username, password) if self._username else (password,)


def connect(url: str, *, connections: int, password_file: Path | None = None) -> "redis.Redis":
    """A client for `url` (redis, rediss or unix). It connects at the first command.

    `connections`: how many threads use it at once. Raises ValueError for a URL that is none.
    """
    # redis-py repeats any command ten times by default: a claim could then run twice.
    options: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "max_connections": connections + SPARE_CONNECTIONS,
        "decode_responses": True,
        "encoding_errors": "surrogateescape",  # a foreign member may be any bytes, and is to be set aside as it is
    }
    try:
        if password_file is not None:
            user_info, at, _host = urlsplit(url).netloc.rpartition("@")
            user = unquote(user_info.partition(":")[0])
            options["credential_provider"] = _PasswordFile(password_file, user or None)
            url = url.replace(user_info + at, "", 1)  # redis-py takes credentials from one place only
        return redis.Redis.from_url(url, **options)
    except ValueError:  # its text can hold what stands before the @
        raise ValueError("not the URL of a Redis: wants redis://, rediss:// or unix://, host and port") from None


@contextmanager
def translated(on_error: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Whatever redis-py raises -> RedisUnavailableError, with only its kind and text."""
    try:
        yield
    except (redis.RedisError, OSError) as error:
        on_error()
        raise RedisUnavailableError(f"{type(error).__name__}: {error}") from None
