"""Which outputs a result names: a list, a mapping by kind, one output, or loose `*_url` keys."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sume_operator.adapters.bodies import Body, Number, Text, Tolerant, text_of
from sume_operator.core.job import Found

MAX_FOUND: Final = 1000
URL_KEYS: Final = ("url", "public_url", "media_url", "video_url", "image_url")
NOT_MEDIA: Final = frozenset(
    {"status_url", "result_url", "events_url", "api_url", "webhook_url", "callback_url", "cancel_url"}
)


class Artifact(Tolerant):
    url: Text = None
    public_url: Text = None
    media_url: Text = None
    video_url: Text = None
    image_url: Text = None
    type: Text = None
    kind: Text = None
    content_type: Text = None
    size_bytes: Number = None
    expires_at: Any = None


def found_in(body: Body) -> Iterator[Found]:
    result = body.first("result")
    artifacts = (result or {}).get("artifacts") or body.first("artifacts")
    found = list(_artifacts(artifacts, None))
    if not found:
        found = list(_loose_urls(body.raw_payload if result is None else result))
    yield from found[:MAX_FOUND]


def _artifacts(value: object, kind: str | None) -> Iterator[Found]:
    """A list of outputs, a mapping by kind, one output, or a bare URL."""
    if isinstance(value, str):
        if "://" in value:
            yield Found(url=value.strip(), kind=kind)
    elif isinstance(value, list):
        for item in value:
            yield from _artifacts(item, kind) if not isinstance(item, list) else ()
    elif isinstance(value, dict):
        artifact = Artifact.model_validate(value)
        url = next((text for key in URL_KEYS if (text := getattr(artifact, key))), None)
        if url:
            yield _one_found(artifact, url, kind)
        elif kind is None:  # one level only: a mapping by kind
            for name, item in value.items():
                yield from _artifacts(item, str(name))


def _one_found(artifact: Artifact, url: str, kind: str | None) -> Found:
    return Found(
        url=url,
        kind=artifact.type or artifact.kind or kind,
        content_type=artifact.content_type,
        size_bytes=int(artifact.size_bytes) if artifact.size_bytes and 0 <= artifact.size_bytes < 2**62 else None,
        expires_at=_instant(artifact.expires_at),
    )


def _loose_urls(result: Mapping[str, Any]) -> Iterator[Found]:
    for key, value in result.items():
        url = text_of(value)
        if url and key not in NOT_MEDIA and (key.endswith("_url") or key == "url"):
            yield Found(url=url, kind=key.removesuffix("_url") if key != "url" else None)


def _instant(value: object) -> datetime | None:
    """RFC 3339 or seconds since the epoch -> an instant from 1970 on; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    readers: tuple[Callable[[], datetime], ...] = (
        lambda: datetime.fromtimestamp(float(str(value)), UTC),
        lambda: datetime.fromisoformat(str(value)),
    )
    for read in readers:
        try:
            instant = read()
            instant = instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            continue
        return instant if instant.year >= 1970 else None
    return None
