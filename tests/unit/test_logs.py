"""What reaches the log: one line a record, whoever logs it and however."""

import json
import logging
from collections.abc import Iterator

import pytest

from sume_operator import logs


@pytest.fixture(autouse=True)
def _handlers_stay_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_a_line_holds_no_signed_url(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    logging.getLogger("x").info("see %s", "https://media.example/1.mp4?sig=abc")
    line = json.loads(capsys.readouterr().err)
    assert line["message"].startswith("see https://media.example/1.mp4")
    assert "abc" not in line["message"]


def test_wrong_arguments_reach_the_log_and_not_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text", "info")
    logging.getLogger("x").info("%d of %d", "one")  # noqa: PLE1206 (the slip that is tested)
    assert "%d of %d" in capsys.readouterr().err
