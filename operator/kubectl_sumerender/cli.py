"""`kubectl sumerender`: the verbs, each loaded when it is called, and how a command ends."""

import importlib
import os
import sys
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from kubectl_sumerender.errors import INTERRUPTED, OK, SOME_DID_NOT, WRONG_USE, PluginError

BROKEN_PIPE: Final = 141  # as a shell counts a program that SIGPIPE ended
NAME: Final = "kubectl sumerender"
PROGRAM: Final = "kubectl-sumerender"
COMPLETION_VARIABLE: Final = "_KUBECTL_SUMERENDER_COMPLETE"

# verb: (module:command, one line for --help). --help loads none of them.
_HERE: Final = "kubectl_sumerender"
VERBS: Final[dict[str, tuple[str, str]]] = {
    "import": (f"{_HERE}.import_command:import_", "Make renders of job ids, a CSV or JSON lines."),
    "list": (f"{_HERE}.list_command:list_", "List renders, with where they stand and why."),
    "watch": (f"{_HERE}.watch_command:watch", "Watch renders: a live table, progress and the time left."),
    "wait": (f"{_HERE}.wait_command:wait", "Wait for the end; the exit code tells the outcome."),
    "why": (f"{_HERE}.why_command:why", "Say why a render waits or how it ended, and what to do."),
    "cancel": (f"{_HERE}.change_commands:cancel", "Cancel jobs at Sume, keep the records."),
    "suspend": (f"{_HERE}.change_commands:suspend", "Stop asking Sume for a while."),
    "resume": (f"{_HERE}.change_commands:resume", "Go on after suspend."),
    "refresh": (f"{_HERE}.change_commands:refresh", "Have Sume looked at now; on ended ones, fresh output URLs."),
    "retry": (f"{_HERE}.retry_command:retry", "Ask again for what did not succeed, as new renders."),
    "download": (f"{_HERE}.download_command:download", "Download outputs into a folder."),
    "completion": (f"{_HERE}.completion_command:completion", "Print a completion script for a shell."),
}


class _PipeClosedError(Exception):
    """`... | head`: nobody reads on, which is no fault."""


class LazyGroup(click.Group):
    """A group that imports a verb's module when the verb is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # click would end with 1, which means something here
            raise _PipeClosedError from None
        return code

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's interface
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        target, help_line = VERBS[cmd_name]
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        command.short_help = help_line
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs and the group's own options, without loading the verbs."""
        verbs = [CompletionItem(verb, help=line) for verb, (_, line) in VERBS.items() if verb.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, help_line) for verb, (_, help_line) in VERBS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sume-operator", prog_name=NAME, message="%(prog)s %(version)s")
def group() -> None:
    """Many AI video renders at once: SumeRender resources from a file, waited for, asked about, changed, downloaded.

    \b
    Example:
      kubectl sumerender import prompts.csv --batch july --model sume/clip-fast --apply
      kubectl sumerender wait -l render.sume.com/batch=july --timeout 4h
      kubectl sumerender download -l render.sume.com/batch=july --to july/

    `kubectl sumerender VERB --help` has an example for each verb.
    """


def main() -> NoReturn:
    """The console script. A verb returns its exit code, or nothing for 0."""
    sys.exit(_ended())


def _ended() -> int:
    try:
        code: Any = group.main(prog_name=NAME, complete_var=COMPLETION_VARIABLE, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return int(error.exit_code)
    except PluginError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("\ninterrupted", err=True)
        return INTERRUPTED
    except _PipeClosedError:
        # The interpreter flushes stdout once more at its end; that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return BROKEN_PIPE
    return code if isinstance(code, int) else OK


__all__ = ["OK", "SOME_DID_NOT", "VERBS", "WRONG_USE", "group", "main"]
