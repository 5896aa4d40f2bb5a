"""`list`: renders, page by page as they come, so that the first screen does not wait for ten thousand."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_sumerender import screen
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.errors import NOTHING_MATCHED
from kubectl_sumerender.render import Render, parse_time, read_render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

_HEAD: Final = ("NAME", "STATE", "REASON", "JOB", "MODEL", "AGE")
# So that the first page does not decide for all how wide a column is.
_WIDTHS: Final = (16, 10, 14, 8, 8, 4)


@click.command("list")
@choice_options()
@click.option("-o", "--output", type=click.Choice(["text", "json", "name"]), default="text", show_default=True)
@connection_options
def list_(connection: Connection, choice: Choice, output: str) -> int:
    """List renders: NAME..., -l SELECTOR, --state; else all of the namespace. Ends with 3 if there is none.

    \b
    Examples:
      kubectl sumerender list
      kubectl sumerender list -A --state Failed
      kubectl sumerender list -l render.sume.com/batch=july --output json
    """
    api = connection.open()
    found = _found(api, choice)
    count = _as_json(found) if output == "json" else _as_lines(found, output, with_namespace=connection.all_namespaces)
    if not count and output == "text":
        screen.tell(f"nothing matches {choice.in_words()} in {api.where}")
    return 0 if count else NOTHING_MATCHED


def _found(api: "Api", choice: Choice) -> Iterator[list[Render]]:
    """Page by page."""
    from kubectl_sumerender import renders
    from kubectl_sumerender.choosing import chosen

    if choice.names:
        got, missing = chosen(api, choice)
        for name in missing:
            screen.tell(f"there is no render {name} in {api.where}")
        yield got
        return
    told: set[str] = set()
    restarted = False
    for page in renders.pages(api, selector=choice.selector, field_selector=choice.field_selector):
        restarted = restarted or (page.fresh and bool(told))
        fresh = [render for render in map(read_render, page.bodies) if choice.takes(render)]
        fresh = [render for render in fresh if render.uid not in told] if restarted else fresh
        told.update(render.uid for render in fresh)
        yield fresh


def _as_lines(found: Iterator[list[Render]], output: str, *, with_namespace: bool) -> int:
    count, now = 0, datetime.now(UTC)
    widths = [*([12] if with_namespace else []), *_WIDTHS]
    for page in found:
        if output == "name":
            for render in page:
                screen.say(render.ref if with_namespace else render.name)
        elif page:
            rows = [_row(render, now, with_namespace=with_namespace) for render in page]
            head = [("NAMESPACE", *_HEAD) if with_namespace else _HEAD] if not count else []
            lines = screen.columns([*head, *rows], widths)
            shown = [*lines[: len(head)], *map(_painted, lines[len(head) :], page)]
            screen.say("\n".join(shown))
        count += len(page)
    return count


def _row(render: Render, now: datetime, *, with_namespace: bool) -> tuple[str, ...]:
    created = parse_time(render.created)
    age = screen.age((now - created).total_seconds()) if created else ""
    row = (render.name, render.state, render.reason or "-", render.job or "-", render.model or "-", age)
    return (render.namespace, *row) if with_namespace else row


def _painted(line: str, render: Render) -> str:
    """The state in its colour; padding stays as it was."""
    before, state, after = line.partition(f" {render.state} ")
    return f"{before} {screen.paint(render.state)} {after}" if state else line


def _as_json(found: Iterator[list[Render]]) -> int:
    """One array, written as it comes."""
    count = 0
    click.echo("[", nl=False)
    for page in found:
        for render in page:
            click.echo(("," if count else "") + "\n  " + json.dumps(_as_dict(render), ensure_ascii=False), nl=False)
            count += 1
    click.echo("\n]" if count else "]")
    return count


def _as_dict(render: Render) -> dict[str, Any]:
    return {
        "namespace": render.namespace,
        "name": render.name,
        "state": render.state,
        "reason": render.reason,
        "succeeded": render.succeeded,
        "terminal": render.terminal,
        "message": render.message,
        "job": render.job,
        "model": render.model,
        "created": render.created,
        "started": render.started,
        "ended": render.ended,
        "suspended": render.suspended,
        "retryOf": render.retry_of,
    }
