"""What is printed, and how: colours and moving parts only on a terminal, plain lines everywhere else."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_sumerender.errors import clean

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S: Final = 5.0
COLOURS: Final = {
    "Completed": "green",
    "Failed": "red",
    "Canceled": "yellow",
    "Unknown": "magenta",
    "Processing": "cyan",
    "Queued": "blue",
}


def is_terminal() -> bool:
    """Whether a person looks at stdout, on something that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def can_ask() -> bool:
    """Whether there is somebody to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def has_colours() -> bool:
    """Colours: on a terminal, unless NO_COLOR is set (no-color.org: to anything but nothing)."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def console(*, to_stderr: bool = False) -> "Console":
    """rich's console, for live tables and progress bars."""
    from rich.console import Console

    return Console(stderr=to_stderr, highlight=False, soft_wrap=False, no_color=not has_colours() or None)


def say(text: str = "") -> None:
    """A line on stdout: what was asked for."""
    click.echo(text, color=has_colours())


def tell(text: str) -> None:
    """A line on stderr: about the work, so that stdout can be piped."""
    click.echo(text, err=True)


def say_json(value: Any) -> None:
    """A JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def paint(state: str, text: str = "") -> str:
    """The text (else the state itself) in the state's colour."""
    return click.style(text or state, fg=COLOURS.get(state)) if has_colours() else text or state


def paint_err(state: str) -> str:
    """The state in its colour, for a line on stderr."""
    return click.style(state, fg=COLOURS.get(state)) if sys.stderr.isatty() and has_colours() else state


def columns(rows: Sequence[Sequence[str]], widths: list[int] | None = None) -> list[str]:
    """Rows as aligned lines. `widths` are grown in place, so that page follows page in line."""
    grown = widths if widths is not None else []
    safe = [[clean(cell) for cell in row] for row in rows]
    for row in safe:
        grown += [0] * (len(row) - len(grown))
        for place, cell in enumerate(row):
            grown[place] = max(grown[place], len(cell))
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, grown, strict=False)).rstrip() for row in safe]


def counted(number: int) -> str:
    """1 render, 2 renders."""
    return f"{number} render" if number == 1 else f"{number} renders"


def age(seconds: float) -> str:
    """As kubectl writes it: 12s, 5m, 3h, 2d."""
    whole = max(0, int(seconds))
    for size_s, unit, until in ((1, "s", 120), (60, "m", 120), (3600, "h", 48), (86400, "d", sys.maxsize)):
        if whole // size_s < until:
            return f"{whole // size_s}{unit}"
    raise AssertionError("unreachable: days have no end")


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Progress of long work, on stderr: a bar on a terminal, else a line every few seconds. Gives: one more is done."""
    if sys.stderr.isatty() and is_terminal():
        from rich.progress import Progress

        with Progress(console=console(to_stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
        return
    done, told_s = 0, time.monotonic()

    def advance() -> None:
        nonlocal done, told_s
        done += 1
        if time.monotonic() - told_s >= LINE_EVERY_S and done < total:
            told_s = time.monotonic()
            tell(f"{what}: {done} of {total}")

    yield advance
