"""Text for people: on one line, cut to the schema, and with nothing secret in it; and the log, which masks likewise."""

import json
import logging
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sume_operator.core.wording import in_seconds, masked, one_line, one_line_or_none
from sume_operator.logs import configure

MASKED = [
    ("see https://x.example/1.mp4?sig=SECRET now", "see https://x.example/1.mp4?… now"),
    ("HTTPS://x/1?sig=SECRET", "HTTPS://x/1?…"),
    ("https://x/1#SECRET", "https://x/1?…"),
    ("https://x/1?a='SECRET'&b=SECRET", "https://x/1?…"),
    ("https://x/it's?sig=SECRET", "https://x/it's?…"),
    ('{"url": "https://x/1?sig=SECRET", "n": 1}', '{"url": "https://x/1?…", "n": 1}'),
    ("<https://x/1?sig=SECRET>", "<https://x/1?…>"),
    ("http://x/?SECRET http://y/?SECRET", "http://x/?… http://y/?…"),
    ("redis://:SECRET@cache:6379/0", "redis://…@cache:6379/0"),
    ("https://user:SEC@RET@x/1", "https://…@x/1"),
    ("Authorization: Bearer SECRET", "Authorization: …"),
    ("authorization: SECRET", "authorization: …"),
    ("{'Authorization': 'Bearer SECRET', 'a': 1}", "{'Authorization': '…', 'a': 1}"),
    ("bearer SECRET", "Bearer…"),
    ("x-api-key: SECRET", "x-api-key: …"),
    ("X-API-KEY:SECRET", "X-API-KEY:…"),
    ("x-api-key=SECRET", "x-api-key=…"),
    ("{'x-api-key': 'SECRET'}", "{'x-api-key': '…'}"),
    ("x-api-key SECRET", "x-api-key …"),
    ("nothing to hide: https://x/1.mp4, a@b", "nothing to hide: https://x/1.mp4, a@b"),
    ("what? https://x/1", "what? https://x/1"),
]


@pytest.mark.parametrize(("text", "shown"), MASKED, ids=[row[0] for row in MASKED])
def test_secrets_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert "SECRET" not in masked(text)


@settings(max_examples=50)
@given(text=st.text(alphabet="ab :/?#@.'\"=<>\n", max_size=40) | st.sampled_from([row[0] for row in MASKED]))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(f"https://x/{text} Bearer {text}")
    assert masked(once) == once


@settings(max_examples=50)
@given(text=st.text(max_size=60), max_chars=st.integers(1, 50))
def test_one_line_fits(text: str, max_chars: int) -> None:
    line = one_line(text, max_chars)
    assert len(line) <= max_chars
    assert not any(ord(char) < 0x20 for char in line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\r\n\tc\x00d", "a b c d"),
        ("  a  ", "a"),
        ("a" * 10, "a" * 10),
        ("a" * 11, "a" * 9 + "…"),
        ("", ""),
    ],
    ids=repr,
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text, 10) == line


def test_a_secret_is_masked_before_the_text_is_cut() -> None:
    assert "SECRET" not in one_line("x" * 1000 + " https://x/1?sig=SECRET", 1020)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 8_000_000,
        "https://" * 1_000_000,
        "a://" * 2_000_000,
        "bearer " * 1_000_000,
        "authorization" + " " * 8_000_000,
    ],
    ids=lambda text: text[:14],
)
def test_a_text_of_megabytes_holds_nobody_up(text: str) -> None:
    """A regular expression that tries every pair of places would hold the interpreter for hours."""
    started = time.process_time()
    one_line(text, 1024)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "line"), [(None, None), ("", None), ("  ", None), ("\x00", None), (" a ", "a")], ids=repr
)
def test_nothing_at_all_is_none(text: str | None, line: str | None) -> None:
    assert one_line_or_none(text, 10) == line


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (45, "45 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h"), (12_600, "3.5 h")],
)
def test_durations(seconds: float, said: str) -> None:
    assert in_seconds(seconds) == said


# --- the log ---


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("kopf", "urllib3", "kubernetes", "asyncio", "aiohttp")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_the_log_masks_messages_arguments_and_tracebacks(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    configure(log_format, "info")
    log = logging.getLogger("sume_operator.test")
    log.info("asked %s with %s", "https://x/1?sig=SECRET", {"Authorization": "Bearer SECRET"})
    try:
        raise ValueError("Invalid header value b'Bearer SECRET'")
    except ValueError:
        log.exception("that went wrong: %d %%", 7)
    logged = capsys.readouterr().err
    assert "SECRET" not in logged
    assert "that went wrong: 7 %" in logged
    assert "test_wording.py" in logged
    assert "ValueError" in logged


def test_a_json_line_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "info")
    logging.getLogger("sume_operator.test").warning("two\nlines")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    line = json.loads(lines[0])
    assert (line["message"], line["level"], line["logger"]) == ("two\nlines", "WARNING", "sume_operator.test")
    assert line["time"]


def test_the_level_counts_and_libraries_keep_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    configure("text", "warning")
    logging.getLogger("sume_operator.test").info("not this")
    logging.getLogger("urllib3").info("nor this")
    logging.getLogger("sume_operator.test").error("but this")
    configure("text", "debug")
    logging.getLogger("kopf").info("nor this")
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["but this"]
