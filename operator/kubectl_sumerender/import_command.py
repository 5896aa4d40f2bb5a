"""`import`: job ids, a CSV or JSON lines -> renders, as manifests on stdout or made at once."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from kubectl_sumerender import BATCH_LABEL, screen
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.entries import Entry, build_entries, what_is_wrong_with_model
from kubectl_sumerender.errors import INTERRUPTED, SOME_DID_NOT, PluginError, WrongUseError
from kubectl_sumerender.estimate import Limits, estimate
from kubectl_sumerender.manifests import manifest, to_json, to_yaml
from kubectl_sumerender.naming import what_is_wrong_with_batch
from kubectl_sumerender.reading import Format, Problem, Record, read_records

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api
    from kubectl_sumerender.applying import BrokenOffError

SHOWN_PROBLEMS: Final = 20
STDIN: Final = "-"
DEFAULT_KEY: Final = "sume:polls"


class Refusal(click.ClickException):
    """All that is wrong with a file, a line each. Ends with 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """As compilers do, so that an editor can jump there."""
        click.echo(self.message, err=True, file=file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The options, as click hands them over."""

    file: str | None
    batch: str
    model: str
    form: str | None
    applied: bool
    dry_run: bool
    from_redis: str | None
    key: str
    slots: int
    minutes_per_render: float
    submissions_per_minute: int
    submissions_per_day: int
    output: str


@click.command("import")
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option("--batch", default="", metavar="NAME", help="A label, and part of the idempotency keys.")
@click.option("--model", default="", metavar="MODEL", help="For rows that name none.")
@click.option("--format", "form", type=click.Choice([str(each) for each in Format]), help="Else by ending or look.")
@click.option("--apply", "applied", is_flag=True, help="Make them; else manifests are printed.")
@click.option("--dry-run", is_flag=True, help="Only check the file, count, and reckon the hours.")
@click.option("--from-redis", metavar="URL", help="Take over the ids of a hand-written loop, instead of FILE.")
@click.option("--key", default=DEFAULT_KEY, show_default=True, help="Its sorted set, with --from-redis.")
@click.option("--slots", type=click.IntRange(1), default=4, show_default=True, help="--dry-run: jobs at once.")
@click.option(
    "--minutes-per-render", type=click.FloatRange(0), default=5, show_default=True, help="--dry-run: what one takes."
)
@click.option(
    "--submissions-per-minute", type=click.IntRange(0), default=10, show_default=True, help="--dry-run; 0: any."
)
@click.option("--submissions-per-day", type=click.IntRange(0), default=0, show_default=True, help="0: any.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@connection_options
def import_(connection: Connection, **options: Any) -> int:
    """Make renders of FILE (- is stdin): job ids, one a line; a CSV; or JSON lines.

    \b
    Columns: name, model, endpoint, jobID; any other is an argument of the model.
    `duration:json` is read as JSON, so 5 is a number and true a boolean.

    The file is checked whole before anything is made. Doing it twice makes and pays everything once.

    \b
    Examples:
      kubectl sumerender import prompts.csv --batch july --model sume/clip-fast --dry-run
      kubectl sumerender import prompts.csv --batch july --model sume/clip-fast --apply
      cat job-ids.txt | kubectl sumerender import - | kubectl apply -f -
      kubectl sumerender import --from-redis redis://redis:6379/0 --key my:polls --apply
    """
    wanted = _Wanted(**options)
    _check_options(connection, wanted)
    name, records, problems = _read(wanted)
    entries, more = build_entries(records, batch=wanted.batch, model=wanted.model)
    problems = sorted([*problems, *more], key=lambda problem: problem.line)
    if problems:
        _refuse(name, problems)
    if not entries:
        raise WrongUseError(f"{name}: there is nothing in it")
    if wanted.dry_run:
        _say_estimate(entries, wanted)
        return 0
    if wanted.applied:
        return _apply(connection.open(), name, entries, wanted)
    bodies = [manifest(entry, batch=wanted.batch, namespace=connection.namespace) for entry in entries]
    for text in [to_json(bodies)] if wanted.output == "json" else to_yaml(bodies):
        click.echo(text.rstrip("\n"))
    return 0


def _check_options(connection: Connection, wanted: _Wanted) -> None:
    if (wanted.file is None) == (wanted.from_redis is None):
        raise WrongUseError("give a FILE (- is stdin), or --from-redis URL")
    if wanted.applied and wanted.dry_run:
        raise WrongUseError("--apply and --dry-run exclude each other: give one")
    if connection.all_namespaces:
        raise WrongUseError("renders are made in one namespace: give -n NAMESPACE instead of -A")
    if wanted.batch and (fault := what_is_wrong_with_batch(wanted.batch)):
        raise WrongUseError(f"--batch {wanted.batch[:80]}: {fault}")
    if wanted.model and (fault := what_is_wrong_with_model(wanted.model)):
        raise WrongUseError(f"--model: {fault}")


def _read(wanted: _Wanted) -> tuple[str, list[Record], list[Problem]]:
    """The records, and what to call the place that they come from."""
    file, form = wanted.file, wanted.form
    if wanted.from_redis is not None:
        from kubectl_sumerender.redis_ids import read_redis

        return wanted.key, *read_redis(wanted.from_redis, wanted.key)
    name = "stdin" if file == STDIN else str(file)
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(str(file)).read_bytes()
    except OSError as error:
        raise WrongUseError(f"{name}: {error.strerror or 'cannot be read'}") from None
    return name, *read_records(data, name, Format(form) if form else None)


def _refuse(name: str, problems: Sequence[Problem]) -> NoReturn:
    shown = [f"{name}:{problem.line}: {problem.text}" for problem in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        shown.append(f"... and {len(problems) - SHOWN_PROBLEMS} more")
    raise Refusal("\n".join([*shown, "Nothing was made."]))


def _say_estimate(entries: Sequence[Entry], wanted: _Wanted) -> None:
    limits = Limits(
        slots=wanted.slots,
        minutes_per_render=wanted.minutes_per_render,
        submissions_per_minute=wanted.submissions_per_minute,
        submissions_per_day=wanted.submissions_per_day,
    )
    made = estimate(entries, limits)
    if wanted.output == "json":
        values = {"renders": made.total, "follows": made.follows, "models": made.models, "hours": round(made.hours, 2)}
        screen.say_json(values)
        return
    for line in made.lines(limits):
        screen.say(line)


def _apply(api: "Api", name: str, entries: Sequence[Entry], wanted: _Wanted) -> int:
    from kubectl_sumerender.applying import BrokenOffError, check_all, make_all

    batch, namespace = wanted.batch, api.namespace or "default"
    bodies = [manifest(entry, batch=batch, namespace=namespace) for entry in entries]
    missing, faults = check_all(api, namespace, bodies)
    if faults:
        _refuse(name, [Problem(line=entries[fault.place].line, text=fault.text) for fault in faults])
    try:
        made = make_all(api, namespace, [bodies[place] for place in missing])
    except BrokenOffError as error:
        return _broken_off(error, len(missing))
    there = len(entries) - made
    if wanted.output == "json":
        names = [entry.name for entry in entries]
        screen.say_json({"namespace": namespace, "batch": batch, "created": made, "existing": there, "names": names})
        return 0
    screen.say(f"{screen.counted(made)} made in namespace {namespace}, {there} were there already")
    if batch:
        screen.tell(f"see them: kubectl sumerender watch -n {namespace} -l {BATCH_LABEL}={batch}")
    return 0


def _broken_off(error: "BrokenOffError", wanted: int) -> int:
    """Half way: say how far it came, and that doing it again is safe."""
    interrupted = not isinstance(error.cause, PluginError)
    cause = "interrupted" if interrupted else f"Error: {error.cause}"
    screen.tell(f"{cause}\n{error.made} of {wanted} were made. Do the same again: what is there is not made twice.")
    return INTERRUPTED if interrupted else SOME_DID_NOT
