"""Ctrl-C, SIGTERM and a closed terminal: the first one ends the demo in order, the others do not disturb that."""

import signal
from types import FrameType
from typing import Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody wants the demo to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Signals:
    """Turns the first signal into `Stopped`, wherever the main thread is at that moment."""

    def __init__(self) -> None:
        self._muted = False

    def install(self) -> None:
        """From now on."""
        for number in _NUMBERS:
            signal.signal(number, self._told)

    def mute(self) -> None:
        """Nothing interrupts from now on: what is left is bounded, and must be done."""
        self._muted = True

    def _told(self, number: int, _frame: FrameType | None) -> None:
        if not self._muted:
            self._muted = True
            raise Stopped(number)
