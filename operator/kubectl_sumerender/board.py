"""What `watch` shows on a terminal: counts, a progress bar, and as many renders as fit, those that move first."""

import heapq
import math
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kubectl_sumerender import screen
from kubectl_sumerender.errors import clean
from kubectl_sumerender.following import Changed, Deleted, Event, Listed, Listing, Trouble
from kubectl_sumerender.render import AT_SUME, Render, parse_time
from kubectl_sumerender.tally import WAITING_FOR_SLOT, Tally, count, pace, superseded

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

HEAD_LINES: Final = 6  # counts, bar, rate, the table's head and foot
FEWEST_ROWS: Final = 3
FRESH_S: Final = 60.0


class Board:
    """All renders as they are now. One thread feeds it, another one draws."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renders: dict[str, Render] = {}
        self.trouble = ""
        self.is_whole = False  # every page of the first list is here

    def take(self, event: Event) -> list[tuple[Render, bool]]:
        """What has changed, for those who print it: (render, whether it is gone). The first list is no change."""
        with self._lock:
            self.trouble = event.text if isinstance(event, Trouble) else ""
            before = self._renders
            match event:
                case Listing(renders=found) if not self.is_whole:
                    self._renders = before | {render.ref: render for render in found}
                case Listed(renders=found):
                    was_whole, self.is_whole = self.is_whole, True
                    self._renders = {render.ref: render for render in found}
                    if was_whole:  # after an outage: what nobody could tell of meanwhile
                        gone = [(render, True) for ref, render in before.items() if ref not in self._renders]
                        return gone + [(render, False) for render in found if _is_news(before, render)]
                case Deleted(render=render):
                    before.pop(render.ref, None)
                    return [(render, True)]
                case Changed(render=render):
                    is_news = _is_news(before, render)
                    before[render.ref] = render
                    return [(render, False)] if is_news else []
        return []

    def counted(self) -> list[Render]:
        """Without those that a retry speaks for."""
        with self._lock:
            everyone = list(self._renders.values())
        spoken_for = superseded(everyone)
        return [render for render in everyone if render.ref not in spoken_for]


def _is_news(before: dict[str, Render], render: Render) -> bool:
    """Whether it stands elsewhere than it did."""
    old = before.get(render.ref)
    return old is None or (old.state, old.reason) != (render.state, render.reason)


def picture(board: Board, console: "Console", *, with_namespace: bool) -> "RenderableType":
    """The board, drawn to the size of the terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    now = datetime.now(UTC)
    everyone = board.counted()
    tally, speed = count(everyone), pace(everyone, now)
    rate = f"{speed.per_hour:.0f} an hour" if speed.per_hour is not None else "rate not known yet"
    left = f", about {screen.age(speed.left_s)} left" if speed.left_s else ""
    bar = Table.grid(expand=True)  # by itself a bar does not end its line
    bar.add_row(ProgressBar(total=max(1, tally.total), completed=tally.ended))
    parts: list[RenderableType] = [
        _counts(tally, is_whole=board.is_whole),
        bar,
        Text(f"{rate}{left}", style="dim"),
    ]
    if board.trouble:
        parts.append(Text(clean(board.trouble, console.width - 1), style="red"))
    rows = max(FEWEST_ROWS, console.height - HEAD_LINES - bool(board.trouble))
    parts.append(_table(heapq.nsmallest(rows, everyone, key=lambda r: _rank(r, now)), now, with_namespace))
    if tally.total > rows:
        parts.append(Text(f"... and {tally.total - rows} more", style="dim"))
    return Group(*parts)


def _counts(tally: Tally, *, is_whole: bool) -> "RenderableType":
    from rich.text import Text

    text = Text()
    for number, words, style in (
        (tally.succeeded, "done", "green"),
        (tally.not_succeeded, "failed", "red"),
        (tally.at_sume, "at Sume", "cyan"),
        (tally.waiting_for_slot, "waiting for a slot", "blue"),
        (tally.other, "waiting for something else", ""),
    ):
        text.append(f"{number} {words}   ", style=style if number else "dim")
    return text.append(f"of {tally.total}{'' if is_whole else ' so far'}")


def _table(shown: Iterable[Render], now: datetime, with_namespace: bool) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in [*(["NAMESPACE"] if with_namespace else []), "NAME", "STATE", "REASON", "AGE", "MESSAGE"]:
        table.add_column(title, no_wrap=True, overflow="ellipsis", ratio=1 if title == "MESSAGE" else None)
    for render in shown:
        created = parse_time(render.created)
        cells: list[RenderableType] = [
            *([render.namespace] if with_namespace else []),
            render.name,
            Text(render.state, style=screen.COLOURS.get(render.state, "")),
            render.reason or "-",
            screen.age((now - created).total_seconds()) if created else "",
            Text(clean(render.message, 200)),
        ]
        table.add_row(*cells)
    return table


def _rank(render: Render, now: datetime) -> tuple[int, float, str]:
    """What is at Sume, what waits for something unusual, what has just failed or ended, who is in line, the rest."""
    ended = parse_time(render.ended)
    since_s = (now - ended).total_seconds() if ended else math.inf
    if render.terminal:
        rank = 5 if since_s > FRESH_S else 3 if render.is_success else 2
        return rank, since_s, render.ref
    if render.state in AT_SUME:
        return 0, 0.0, render.started
    in_line = render.reason == WAITING_FOR_SLOT or not render.reason
    return (4 if in_line else 1), 0.0, render.created
