"""`completion`: the shell's completion script; and the program that kubectl calls to complete `kubectl sumerender`."""

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

NO_FILES: Final = 4  # what kubectl calls ShellCompDirectiveNoFileComp
DEFAULT: Final = 0  # the shell's own completion, of files


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for the program kubectl-sumerender.

    kubectl's own completion (`kubectl completion bash`) completes `kubectl sumerender` too, through the program
    kubectl_complete-sumerender beside this one; nothing has to be loaded for that.

    \b
    Examples:
      source <(kubectl sumerender completion bash)
      kubectl sumerender completion fish > ~/.config/fish/completions/kubectl-sumerender.fish
    """
    from kubectl_sumerender.cli import COMPLETION_VARIABLE, PROGRAM, group

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"click knows no completion for {shell}")
    click.echo(kind(group, {}, PROGRAM, COMPLETION_VARIABLE).source())


def for_kubectl() -> None:
    """kubectl hands over the words after `sumerender`, the last one unfinished; it wants one proposal a line."""
    from kubectl_sumerender.cli import COMPLETION_VARIABLE, PROGRAM, group

    *words, unfinished = sys.argv[1:] or [""]
    found = ShellComplete(group, {}, PROGRAM, COMPLETION_VARIABLE).get_completions(words, unfinished)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    wants_files = any(item.type in ("file", "dir") for item in found)
    click.echo(f":{DEFAULT if wants_files else NO_FILES}")
