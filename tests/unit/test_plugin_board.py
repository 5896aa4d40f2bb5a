"""What `watch` shows: each change once, and those that move first."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from kubectl_sumerender.board import Board, picture
from kubectl_sumerender.following import Changed, Deleted, Listed, Listing, Quiet, Trouble
from kubectl_sumerender.render import Render


def _render(name: str, **more: Any) -> Render:
    fields: dict[str, Any] = {"namespace": "a", "name": name, "uid": name, "resource_version": "1"}
    return Render(**(fields | more))


def _names(changes: list[tuple[Render, bool]]) -> list[tuple[str, bool]]:
    return [(render.name, is_gone) for render, is_gone in changes]


def test_each_change_is_told_once() -> None:
    board = Board()
    first = [_render("a"), _render("b")]
    assert board.take(Listing(renders=first[:1])) == []
    assert not board.is_whole
    assert board.take(Listed(renders=first)) == []
    assert board.is_whole
    assert _names(board.take(Changed(render=_render("a", state="Queued")))) == [("a", False)]
    assert board.take(Changed(render=_render("a", state="Queued", message="other"))) == []
    assert board.take(Trouble(text="away")) == []
    assert board.trouble == "away"
    # a page of a list anew is not all there is
    assert board.take(Listing(renders=[])) == []
    assert len(board.counted()) == 2
    after = [_render("a", state="Completed"), _render("new")]
    assert _names(board.take(Listed(renders=after))) == [("b", True), ("a", False), ("new", False)]
    assert board.take(Quiet()) == []
    assert _names(board.take(Deleted(render=_render("a")))) == [("a", True)]
    assert [render.name for render in board.counted()] == ["new"]


def test_those_that_move_come_first_and_no_more_than_fit() -> None:
    now = datetime.now(UTC)

    def at(seconds: float) -> str:
        return (now - timedelta(seconds=seconds)).isoformat()

    done = {"terminal": True, "state": "Completed", "succeeded": "True"}
    board = Board()
    everyone = [
        _render("old", ended=at(500), **done),
        _render("line", reason="WaitingForSlot", created=at(2)),
        _render("fresh", ended=at(20), **done),
        _render("fresher", ended=at(5), **done),
        _render("failed", ended=at(30), terminal=True, state="Failed", succeeded="False"),
        _render("odd", reason="Unauthorized", message="key\x1b[31m refused"),
        _render("busy", state="Processing", started=at(9)),
    ]
    board.take(Listed(renders=everyone))
    console = Console(width=100, height=12, force_terminal=False)
    with console.capture() as captured:
        console.print(picture(board, console, with_namespace=True))
    lines = captured.get().splitlines()
    assert lines[0].startswith(
        "3 done   1 failed   1 at Sume   1 waiting for a slot   1 waiting for something else   of 7"
    )
    assert [line.split()[1] for line in lines[4:-1]] == ["busy", "odd", "failed", "fresher", "fresh", "line"]
    assert lines[-1].strip() == "... and 1 more"
    assert "\x1b" not in captured.get()
    assert len(lines) <= console.height
