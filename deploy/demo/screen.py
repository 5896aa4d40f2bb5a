"""What the demo writes: lines, steps that say how long they took, and one table that is redrawn in place."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

REPEAT_S: Final = 30.0
_CLEAR_LINE: Final = "\r\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


class Screen:
    """Plain text. Without a terminal nothing is ever redrawn."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._fleeting = False  # whether the line the cursor is on may be overwritten
        self._table: Sequence[str] = ()  # the table that stands right above the cursor
        self._shown: Sequence[str] | None = None
        self._topic, self._told_s = "", 0.0

    def say(self, text: str = "") -> None:
        """A line that stays; above the table, while there is one."""
        table = self._table
        self._wipe()
        self._write(f"{text}\n")
        if table:
            self._draw(table)

    def progress(self, text: str) -> None:
        """A line that the next one replaces."""
        if not self._is_terminal:
            self._now_and_then(text)
            return
        self._wipe()
        self._write(self._fitted(text))
        self._fleeting = True

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """`text ...`, and at the end how long it took, on the same line."""
        started_s = time.monotonic()
        self._wipe()
        self._write(f"{text} ... ")
        try:
            yield
        except BaseException:
            self._write("\n")
            raise
        self._write(f"{time.monotonic() - started_s:.1f} s\n")

    def table(self, lines: Sequence[str], compared: Sequence[str]) -> None:
        """Show `lines`: in place on a terminal; elsewhere only if `compared` is not what it was the last time."""
        if self._is_terminal and len(lines) < shutil.get_terminal_size().lines:  # nothing above the top can be redrawn
            self._wipe()
            self._draw(lines)
        elif compared != self._shown:
            self.end_table()
            self._write("\n".join([*lines, "", ""]))
        self._shown = list(compared)

    def end_table(self) -> None:
        """What the table shows now stays."""
        if self._table:
            self._write("\n")
        self._table = ()

    def _now_and_then(self, text: str) -> None:
        """Of lines that say the same but for what comes after the colon, one in half a minute."""
        topic, now_s = text.partition(":")[0], time.monotonic()
        if topic != self._topic or now_s - self._told_s >= REPEAT_S:
            self._topic, self._told_s = topic, now_s
            self.say(text)

    def _draw(self, lines: Sequence[str]) -> None:
        self._table = [self._fitted(line) for line in lines]
        self._write("".join(f"{line}\n" for line in self._table))

    def _wipe(self) -> None:
        if self._fleeting:
            self._write(_CLEAR_LINE)
        if self._table:
            self._write(f"\x1b[{len(self._table)}A\r{_CLEAR_BELOW}")
        self._fleeting, self._table = False, ()

    def _fitted(self, line: str) -> str:
        """A line that wraps would spoil the count of lines to go up."""
        return line[: shutil.get_terminal_size().columns - 1]

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
