"""Counts over many renders: what `watch` and `wait` tell of a whole batch. Pure; time is a parameter."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubectl_sumerender.render import AT_SUME, Render, parse_time

WAITING_FOR_SLOT: Final = "WaitingForSlot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many stand where; they add up to `total`."""

    total: int = 0
    succeeded: int = 0
    not_succeeded: int = 0
    at_sume: int = 0
    waiting_for_slot: int = 0
    other: int = 0  # not taken up yet, suspended, or kept waiting by something else: REASON says what

    @property
    def ended(self) -> int:
        """Well or not."""
        return self.succeeded + self.not_succeeded

    def in_words(self) -> str:
        """A line of progress."""
        return (
            f"{self.ended} of {self.total} ended ({self.not_succeeded} not successfully), {self.at_sume} at Sume, "
            f"{self.waiting_for_slot} waiting for a slot, {self.other} waiting for something else"
        )


def count(renders: Iterable[Render]) -> Tally:
    """One pass over them."""
    total = succeeded = not_succeeded = at_sume = waiting = 0
    for render in renders:
        total += 1
        if render.terminal:
            succeeded += render.is_success
            not_succeeded += not render.is_success
        elif render.reason == WAITING_FOR_SLOT:
            waiting += 1
        else:
            at_sume += render.state in AT_SUME
    return Tally(
        total=total,
        succeeded=succeeded,
        not_succeeded=not_succeeded,
        at_sume=at_sume,
        waiting_for_slot=waiting,
        other=total - succeeded - not_succeeded - at_sume - waiting,
    )


def superseded(renders: Iterable[Render]) -> set[str]:
    """Refs of those that `retry` has made another one for: what became of them is told by the other one."""
    return {f"{render.namespace}/{render.retry_of}" for render in renders if render.retry_of}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Renders that ended per hour, lately; None while that cannot be told."""

    per_hour: float | None
    left_s: float | None


WINDOW_S: Final = 3600.0
SHORTEST_S: Final = 30.0


def pace(renders: Iterable[Render], now: datetime) -> Pace:
    """From the ends of the last hour (or since the first one began, if that is less): the rate, and the time left."""
    ends: list[float] = []
    begun: list[float] = []
    live = 0
    for render in renders:
        live += not render.terminal
        ended, created = parse_time(render.ended), parse_time(render.created)
        if render.terminal and ended and (now - ended).total_seconds() <= WINDOW_S:
            ends.append((now - ended).total_seconds())
            begun.append((now - created).total_seconds() if created else 0.0)
    span_s = min(WINDOW_S, max(begun, default=0.0))
    if not ends or span_s < SHORTEST_S:
        return Pace(per_hour=None, left_s=None)
    per_hour = len(ends) / span_s * 3600
    return Pace(per_hour=per_hour, left_s=live / per_hour * 3600)
