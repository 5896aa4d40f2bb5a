"""Renders as they change: a list, then a watch from there, for ever or until a moment; an outage only makes it wait.

Level, not edge: whoever follows gets the whole of what there is after each list, and each change in between. A watch
that the server has forgotten (410), a server that restarts or hangs: list anew.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_sumerender import renders
from kubectl_sumerender.api import ANSWER_S, Api
from kubectl_sumerender.choosing import Choice
from kubectl_sumerender.errors import ApiError, ExpiredError, UnavailableError
from kubectl_sumerender.render import Render, read_render

WATCH_S: Final = 50  # one watch; a server that went silent is noticed a little after
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
SHORTEST_WATCH_S: Final = 1.0  # a proxy may end each watch at once
FORGETFUL_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of a list that goes on: for a first screen that does not wait for all of them."""

    renders: list[Render]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """All that there is, now."""

    renders: list[Render]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One is new, or another than before."""

    render: Render


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """One is gone; as it was last."""

    render: Render


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Nothing to tell: the watch was taken up anew, and it is the follower's turn to look at the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Kubernetes does not answer; it is asked again soon."""

    text: str


Event = Listing | Listed | Changed | Deleted | Quiet | Trouble


def follow(api: Api, choice: Choice, *, until_s: float = math.inf) -> Iterator[Event]:
    """The first list's errors are raised: a wrong context must not be waited for. `until_s` on the monotonic clock.

    States are not looked at: a render that leaves a state must be seen.
    """
    version, first, outage = "", True, _Outage()
    while True:
        begun_s = time.monotonic()
        try:
            if not version:
                for listed, version in _list(api, choice, until_s):
                    first = first and not version
                    yield listed
            if time.monotonic() < until_s:
                for event in _watch(api, choice, version, until_s):
                    version = event if isinstance(event, str) else event.render.resource_version
                    if not isinstance(event, str):
                        yield event
            outage = _Outage()
            yield Quiet()
            pause_s = begun_s + SHORTEST_WATCH_S - time.monotonic()
        except ExpiredError:
            version, pause_s = "", 0.0
        except ApiError as error:
            if first or not outage.bears(error):
                raise
            version, pause_s = "", outage.next_pause_s()
            yield Trouble(text=str(error))
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(max(0.0, min(pause_s, left_s)))


class _Outage:
    """A server that does not answer, or not sensibly, for a while."""

    def __init__(self) -> None:
        self._since_s = math.inf
        self._pause_s = FIRST_PAUSE_S

    def bears(self, error: ApiError) -> bool:
        """No answer is borne for ever. A server that has just come up knows no rights yet, but not for long."""
        self._since_s = min(self._since_s, time.monotonic())
        return isinstance(error, UnavailableError) or time.monotonic() - self._since_s < FORGETFUL_S

    def next_pause_s(self) -> float:
        """Doubling."""
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
        return pause_s


def _list(api: Api, choice: Choice, until_s: float) -> Iterator[tuple[Listing | Listed, str]]:
    """Each page, then all of them with the version from which a watch goes on."""
    answer_s = max(1.0, min(ANSWER_S, until_s - time.monotonic()))
    found: list[Render] = []
    version = ""
    for page in renders.pages(api, selector=choice.selector, field_selector=_one_name(choice), answer_s=answer_s):
        fresh = [render for render in map(read_render, page.bodies) if _is_meant(render, choice)]
        found = fresh if page.fresh else found + fresh
        version = page.resource_version
        yield Listing(renders=fresh), ""
    yield Listed(renders=found), version


def _watch(api: Api, choice: Choice, version: str, until_s: float) -> Iterator[Changed | Deleted | str]:
    """Changes, and the versions of bookmarks."""
    left_s = until_s - time.monotonic()
    seconds = WATCH_S if left_s > WATCH_S else max(1, math.ceil(left_s))
    for kind, body in api.watch_renders(
        selector=choice.selector, field_selector=_one_name(choice), resource_version=version, seconds=seconds
    ):
        if kind == "BOOKMARK":
            yield _version(body)
            continue
        render = read_render(body)
        if not _is_meant(render, choice):
            yield render.resource_version
        else:
            yield Deleted(render=render) if kind == "DELETED" else Changed(render=render)


def _one_name(choice: Choice) -> str:
    """For one name the server can do the choosing."""
    return f"metadata.name={choice.names[0]}" if len(choice.names) == 1 else ""


def _is_meant(render: Render, choice: Choice) -> bool:
    return not choice.names or render.name in choice.names


def _version(body: Mapping[str, Any]) -> str:
    return str((body.get("metadata") or {}).get("resourceVersion") or "")
