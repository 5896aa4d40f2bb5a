"""`watch`: renders as they change, for a person; a live table on a terminal, else a line for each change."""

import time
from typing import TYPE_CHECKING, Final

import click

from kubectl_sumerender import screen
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.render import Render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

REDRAWS_A_SECOND: Final = 2


@click.command("watch")
@choice_options(states=False)
@connection_options
def watch(connection: Connection, choice: Choice) -> None:
    """Watch NAME..., or -l SELECTOR, else all of the namespace, until Ctrl-C.

    On a terminal: a live table with progress, rate and the time left. Elsewhere: a line for each change. To have a
    script go on when all have ended, use `wait`.

    \b
    Examples:
      kubectl sumerender watch
      kubectl sumerender watch -l render.sume.com/batch=july
    """
    api = connection.open()
    if screen.is_terminal():
        _live(api, choice, with_namespace=connection.all_namespaces)
    else:
        _lines(api, choice)


def _live(api: "Api", choice: Choice, *, with_namespace: bool) -> None:
    from rich.live import Live

    from kubectl_sumerender.board import Board, picture
    from kubectl_sumerender.following import follow

    board, console = Board(), screen.console()
    events = follow(api, choice)
    board.take(next(events))  # its errors are told before the terminal is taken over
    with Live(
        get_renderable=lambda: picture(board, console, with_namespace=with_namespace),
        console=console,
        refresh_per_second=REDRAWS_A_SECOND,
    ):
        for event in events:
            board.take(event)


def _lines(api: "Api", choice: Choice) -> None:
    from kubectl_sumerender.board import Board
    from kubectl_sumerender.following import Listed, Trouble, follow
    from kubectl_sumerender.tally import count

    board, told = Board(), ""
    for event in follow(api, choice):
        changed = board.take(event)
        for render, is_gone in changed:
            _line(render, is_gone=is_gone)
        words = count(board.counted()).in_words() if changed or isinstance(event, Listed) else told
        if words != told:
            told = words
            screen.say(f"{time.strftime('%H:%M:%S')} {told}")
        if isinstance(event, Trouble):
            screen.tell(event.text)


def _line(render: Render, *, is_gone: bool) -> None:
    standing = "deleted" if is_gone else f"{render.state} {render.reason}".strip()
    screen.say(f"{time.strftime('%H:%M:%S')} {render.ref} {standing}")
