"""`wait`: until every chosen render has ended. The exit code tells the outcome; a script needs nothing else."""

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from kubectl_sumerender import screen
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.durations import duration
from kubectl_sumerender.errors import NOTHING_MATCHED, OK, SOME_DID_NOT, TIMED_OUT, WrongUseError, clean
from kubectl_sumerender.render import Render
from kubectl_sumerender.tally import count, superseded

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api


@dataclass(slots=True, kw_only=True)
class _Seen:
    """Where each render stands, and those that went before they had ended."""

    names: tuple[str, ...]
    live: dict[str, Render] = field(default_factory=dict)
    gone: dict[str, Render] = field(default_factory=dict)

    def take(self, render: Render) -> Render | None:
        """Note it; what it was before."""
        before = self.live.get(render.ref)
        self.gone.pop(render.ref, None)
        self.live[render.ref] = render
        return before

    def drop(self, render: Render) -> None:
        """It was deleted. One that had ended counts as it ended: its time to live may be short."""
        self.live.pop(render.ref, None)
        self.gone[render.ref] = render

    def counted(self) -> list[Render]:
        """Those that the verdict is about: a failed one that was retried is spoken for by the retry."""
        everyone = [*self.live.values(), *self.gone.values()]
        spoken_for = superseded(everyone)
        return [render for render in everyone if render.ref not in spoken_for or render.is_success]

    def waits_for(self) -> list[Render]:
        """Those that have not ended."""
        return [render for render in self.live.values() if not render.terminal]


@click.command("wait")
@choice_options(states=False)
@click.option("--timeout", "timeout_s", type=duration, metavar="TIME", help="90s, 2h...; else for ever; 0: look once.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No line for each change.")
@connection_options
def wait(connection: Connection, choice: Choice, timeout_s: float | None, output: str, quiet: bool) -> int:
    """Wait until all of NAME... (or -l SELECTOR) have ended. The exit code tells how:

    \b
      0    all succeeded
      1    some did not; each is listed with its reason
      2    wrong use, or Kubernetes refused or did not answer at the start
      3    nothing matched
      124  time is up

    A render deleted before its end counts as not succeeded. Kubernetes may restart meanwhile.

    \b
    Examples:
      kubectl sumerender wait -l render.sume.com/batch=july --timeout 4h
      kubectl sumerender wait intro outro -n studio-a --output json
    """
    if choice.is_empty:
        raise WrongUseError("say what to wait for: names, or -l SELECTOR")
    until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    seen = _Seen(names=choice.names)
    code = _wait(connection.open(), choice, seen, until_s, quiet=quiet)
    _report(seen, code, output)
    return code


def _wait(api: "Api", choice: Choice, seen: _Seen, until_s: float, *, quiet: bool) -> int:
    from kubectl_sumerender.following import Changed, Deleted, Listed, Listing, Trouble, follow

    first, trouble = True, ""
    for event in follow(api, choice, until_s=until_s):
        match event:
            case Listing():
                continue
            case Listed(renders=found):
                _take_all(seen, found, quiet=quiet or first)
                if first and (not found or not {render.name for render in found} >= set(choice.names)):
                    _say_missing(choice, found, api.where)
                    return NOTHING_MATCHED
                if first and not quiet:
                    screen.tell(count(seen.live.values()).in_words())
                first = False
            case Changed(render=render):
                _say_change(seen.take(render), render, quiet=quiet)
            case Deleted(render=render):
                seen.drop(render)
                _line(render, "deleted", quiet=quiet)
            case Trouble(text=text) if text != trouble:
                screen.tell(f"{text}; waiting for it")
        trouble = event.text if isinstance(event, Trouble) else ""
        if not trouble and not seen.waits_for():
            return OK if all(render.is_success for render in seen.counted()) else SOME_DID_NOT
    return TIMED_OUT


def _take_all(seen: _Seen, found: list[Render], *, quiet: bool) -> None:
    """A whole list: what it lacks is gone, unseen; what of it is new or other is told."""
    there = {render.ref for render in found}
    for render in list(seen.live.values()):
        if render.ref not in there:
            seen.drop(render)
            _line(render, "deleted", quiet=quiet)
    for render in found:
        _say_change(seen.take(render), render, quiet=quiet)


def _say_change(before: Render | None, render: Render, *, quiet: bool) -> None:
    if before is None or (before.state, before.reason) != (render.state, render.reason):
        _line(render, _standing(render), quiet=quiet)


def _line(render: Render, text: str, *, quiet: bool) -> None:
    if not quiet:
        screen.tell(f"{time.strftime('%H:%M:%S')} {render.ref} {text}")


def _standing(render: Render) -> str:
    reason = f" {render.reason}" if render.reason and render.reason != render.state else ""
    return f"{screen.paint_err(render.state)}{reason}"


def _say_missing(choice: Choice, found: list[Render], where: str) -> None:
    absent = sorted(set(choice.names) - {render.name for render in found})
    what = f"no render {', '.join(absent)}" if absent else f"nothing matches {choice.in_words()}"
    screen.tell(f"{what} in {where}; `kubectl sumerender list` shows what there is")


def _why(render: Render, seen: _Seen) -> str:
    """Why it is not among those that succeeded."""
    if render.ref in seen.gone and not render.terminal:
        return "Deleted: it was deleted, or lost its label, before its end"
    told = clean(render.message, 300)
    return f"{render.reason or render.state}{f': {told}' if told else ''}"


def _as_dict(render: Render, seen: _Seen) -> dict[str, str]:
    reason = _why(render, seen).partition(":")[0]
    return {"render": render.ref, "state": render.state, "reason": reason, "message": render.message}


def _report(seen: _Seen, code: int, output: str) -> None:
    if code == NOTHING_MATCHED and output == "text":
        return
    counted = seen.counted()
    bad = [r for r in counted if not r.is_success and (r.terminal or r.ref in seen.gone)]
    live = seen.waits_for()
    if output == "json":
        told = {
            "succeeded": [render.ref for render in counted if render.is_success],
            "notSucceeded": [_as_dict(render, seen) for render in bad],
            "notEnded": [_as_dict(render, seen) for render in live],
            "timedOut": code == TIMED_OUT,
        }
        screen.say_json(told)
        return
    for render in bad:
        screen.say(f"{render.ref}   {_why(render, seen)}")
    for render in live:
        screen.say(f"{render.ref}   not ended: {_why(render, seen)}")
    good = sum(render.is_success for render in counted)
    screen.say(f"{good} succeeded, {len(bad)} did not{f', {len(live)} not ended when the time was up' if live else ''}")
