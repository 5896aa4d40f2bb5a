"""One change to each of several renders: choose, ask, do, and tell what became of each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from kubectl_sumerender import screen
from kubectl_sumerender.choosing import Choice, chosen
from kubectl_sumerender.connection import Connection
from kubectl_sumerender.errors import NOTHING_MATCHED, OK, SOME_DID_NOT, ApiError, UnavailableError, WrongUseError
from kubectl_sumerender.render import Render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

TRIES: Final = 4
FIRST_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What is done to each. `skip` says why one needs nothing; empty if it does. `act` does it and says what it did."""

    name: str  # as in "cancel 12 renders?"
    skip: Callable[[Render], str]
    act: Callable[["Api", Render], str]
    warning: str = ""  # what to know before saying yes


def change_all(connection: Connection, choice: Choice, verb: Verb, *, yes: bool) -> int:
    """The exit code: 0, or 1 if some could not be changed, or 3 if there were none."""
    if choice.is_empty:
        raise WrongUseError(f"say what to {verb.name}: names, -l SELECTOR or --state STATE")
    api = connection.open()
    found, missing = chosen(api, choice)
    for name in missing:
        screen.tell(f"there is no render {name} in {api.where}")
    if not found:
        if not missing:
            screen.tell(f"nothing matches {choice.in_words()} in {api.where}")
        return NOTHING_MATCHED
    todo = [render for render in found if not verb.skip(render)]
    confirm(verb, todo, yes=yes)
    for render in found:
        why = verb.skip(render)
        if why and (len(found) == 1 or choice.names):
            screen.say(f"{render.ref} left alone: {why}")
    failed = _act_on_all(api, verb, todo)
    left = len(found) - len(todo)
    if len(found) > 1:
        rest = f", {left} left alone" if left else ""
        screen.say(f"{verb.name}: {len(todo) - failed} done{rest}{f', {failed} failed' if failed else ''}")
    return SOME_DID_NOT if failed or missing else OK


def confirm(verb: Verb, todo: Sequence[Render], *, yes: bool) -> None:
    """Asks before more than one. click.Abort if the answer is no."""
    if yes or len(todo) <= 1:
        return
    question = f"{verb.name} {len(todo)} renders ({_named(todo)})?{f' {verb.warning}' if verb.warning else ''}"
    if not screen.can_ask():
        raise WrongUseError(f"{question} There is nobody to ask: give --yes to do it")
    click.confirm(question, abort=True, err=True)


def _act_on_all(api: "Api", verb: Verb, todo: Sequence[Render]) -> int:
    """How many could not be changed. Each is told; no progress bar, as each has its line."""
    failed = 0
    for render in todo:
        try:
            screen.say(f"{render.ref} {_insist(api, verb, render)}")
        except ApiError as error:
            failed += 1
            screen.tell(str(error))
    return failed


def _insist(api: "Api", verb: Verb, render: Render) -> str:
    """Each change can be done twice without harm, so a server that does not answer is asked again."""
    for number in range(TRIES):
        try:
            return verb.act(api, render)
        except UnavailableError:
            if number == TRIES - 1:
                raise
            time.sleep(FIRST_PAUSE_S * 2**number)
    raise AssertionError("unreachable: the last try returns or raises")


def _named(renders: Sequence[Render]) -> str:
    names = [render.ref for render in renders[:3]]
    return ", ".join(names) + (", ..." if len(renders) > len(names) else "")
