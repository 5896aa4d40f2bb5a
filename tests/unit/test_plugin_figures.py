"""Figures that the plugin tells: hours to expect, times on the command line, progress of a batch, ages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubectl_sumerender.durations import parse_duration
from kubectl_sumerender.entries import Entry
from kubectl_sumerender.estimate import Limits, estimate
from kubectl_sumerender.render import Render, read_render
from kubectl_sumerender.screen import age, columns
from kubectl_sumerender.tally import count, pace, superseded

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("total", "limits", "hours", "bound"),
    [
        (800, (4, 5, 10, 0), 800 * 5 / 4 / 60, "slots"),
        (800, (100, 5, 10, 0), (799 / 10 + 5) / 60, "submissions a minute"),
        (800, (100, 5, 0, 300), (2 * 1440 + 5) / 60, "submissions a day"),
        (1, (4, 5, 10, 300), 5 / 60, "slots"),
        (4, (4, 5, 0, 0), 5 / 60, "slots"),
    ],
)
def test_hours(total: int, limits: tuple[int, float, int, int], hours: float, bound: str) -> None:
    slots, minutes, per_minute, per_day = limits
    entries = [Entry(line=n, name=str(n), source=str(n), model="m") for n in range(total)]
    entries += [Entry(line=0, name="f", source="f", job="job_1")]
    given = Limits(
        slots=slots, minutes_per_render=minutes, submissions_per_minute=per_minute, submissions_per_day=per_day
    )
    made = estimate(entries, given)
    assert made.hours == pytest.approx(hours)
    assert made.bound == bound
    assert (made.total, made.follows, made.models) == (total + 1, 1, {"m": total})
    text = "\n".join(made.lines(given))
    assert f"{hours:.1f} h" in text
    assert f"{total + 1} renders, {total} of them new at Sume" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86400), ("0", 0), ("1.5h", 5400)],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "5x", "-1", "1m2h", "h", "1 h 2"])
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172799, "47h"), (172800, "2d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


def _render(name: str, **more: Any) -> Render:
    fields: dict[str, Any] = {"namespace": "a", "name": name, "uid": name, "resource_version": "1"}
    return Render(**(fields | more))


DONE = {"terminal": True, "state": "Completed", "succeeded": "True", "reason": "Completed"}
FAILED = {"terminal": True, "state": "Failed", "succeeded": "False", "reason": "JobFailed"}


def test_where_each_stands() -> None:
    tally = count(
        [
            _render("a", **DONE),
            _render("b", **FAILED),
            _render("c", state="Processing", reason="Processing"),
            _render("d", state="Queued"),
            _render("e", reason="WaitingForSlot"),
            _render("f"),
            _render("g", reason="Unauthorized"),
            _render("h", terminal=True, state="Unknown"),
        ]
    )
    assert (tally.total, tally.succeeded, tally.not_succeeded) == (8, 1, 2)
    assert (tally.at_sume, tally.waiting_for_slot, tally.other) == (2, 1, 2)
    assert tally.ended == 3


def test_the_time_left() -> None:
    def at(minutes: float) -> str:
        return (NOW - timedelta(minutes=minutes)).isoformat()

    done = [_render(f"d{n}", created=at(10), ended=at(n), **DONE) for n in range(5)]
    live = [_render(f"l{n}", created=at(10)) for n in range(10)]
    found = pace([*done, *live], NOW)
    assert found.per_hour == pytest.approx(30)
    assert found.left_s == pytest.approx(20 * 60)
    assert pace(live, NOW).per_hour is None
    assert pace([_render("x", created=at(300), ended=at(200), **DONE), *live], NOW).per_hour is None


def test_a_retry_speaks_for_the_one_before_it() -> None:
    assert superseded([_render("a"), _render("a-r2", retry_of="a")]) == {"a/a"}


def test_columns_keep_their_place_from_page_to_page_and_carry_no_control_characters() -> None:
    widths: list[int] = []
    assert columns([["a", "bbb"], ["cc\x1b[2J", "d"]], widths) == ["a        bbb", "cc [2J   d"]
    assert columns([["x", "y"]], widths) == ["x        y"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": None, "spec": 5, "status": []},
        {"metadata": {"name": 7}, "status": {"conditions": "x", "terminal": "true", "state": 1}},
        {"status": {"conditions": [None, {"type": 5}]}},
    ],
)
def test_objects_that_are_none_read_as_pending(body: dict[str, Any]) -> None:
    render = read_render(body)
    assert (render.state, render.terminal, render.reason, render.succeeded) == ("Pending", False, "", "Unknown")
