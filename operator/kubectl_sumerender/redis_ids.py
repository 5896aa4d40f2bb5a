"""Job ids of a hand-written polling loop: the members of its sorted set. Reads only; the loop stays as it is."""

from typing import Any, Final
from urllib.parse import urlsplit

from kubectl_sumerender.errors import PluginError, UnavailableError, WrongUseError
from kubectl_sumerender.reading import Problem, Record

TIMEOUT_S: Final = 10
# Where the operator puts what is not its own, when both use one key.
FOREIGN_SUFFIX: Final = ":foreign"
_SLASHES_OF_THE_OPERATOR: Final = 2


def read_redis(url: str, key: str) -> tuple[list[Record], list[Problem]]:
    """The ids under `key`, and those that the operator has set aside beside it. The URL's password is never shown."""
    try:
        members = _members(url, key)
    except PluginError:
        raise
    except Exception as error:  # noqa: BLE001  # the text may hold the URL with its password
        raise UnavailableError(
            f"{_shown(url)}: Redis does not answer ({type(error).__name__}); see --from-redis"
        ) from None
    records: list[Record] = []
    problems: list[Problem] = []
    for member in dict.fromkeys(members):
        row = len(records) + len(problems) + 1
        try:
            text = member.decode()
        except UnicodeDecodeError:
            problems.append(Problem(line=row, text="not UTF-8, so no job id"))
            continue
        if text.count("/") != _SLASHES_OF_THE_OPERATOR:  # namespace/name/uid: the operator's own alarm
            records.append(Record(row=row, line=row, fields={"jobID": text}))
    if not records and not problems:
        raise WrongUseError(f"{_shown(url)}: no job ids under {key!r}; see --key")
    return records, problems


def _members(url: str, key: str) -> list[bytes]:
    import redis

    try:
        client: Any = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, decode_responses=False
        )
    except ValueError:
        raise WrongUseError("--from-redis: wants a URL such as redis://redis:6379/0") from None
    found: list[bytes] = []
    with client:
        for name in (key, key + FOREIGN_SUFFIX):
            kind = client.type(name).decode()
            if kind not in ("zset", "none"):
                raise WrongUseError(f"{_shown(url)}: {name!r} is a {kind}, no sorted set; see --key")
            found += client.zrange(name, 0, -1)
    return found


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
