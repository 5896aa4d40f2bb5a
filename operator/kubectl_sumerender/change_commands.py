"""`cancel`, `suspend`, `resume`, `refresh`: a field or annotation of each chosen render. The operator does the rest."""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kubectl_sumerender import POLL_REQUESTED_AT
from kubectl_sumerender.changing import Verb, change_all
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.render import Render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

YES = click.option("-y", "--yes", is_flag=True, help="Do not ask before changing more than one.")


@click.command("cancel")
@choice_options()
@YES
@connection_options
def cancel(connection: Connection, choice: Choice, yes: bool) -> int:
    """Cancel the jobs of NAME..., -l SELECTOR or --state at Sume, and keep the records. It cannot be taken back.

    \b
    Examples:
      kubectl sumerender cancel intro
      kubectl sumerender cancel -l render.sume.com/batch=july --state Queued --yes
    """
    verb = Verb(
        name="cancel",
        skip=lambda render: _ended(render) or ("a cancel was asked for already" if render.canceled else ""),
        act=_patched({"spec": {"cancel": True}}, "is being canceled"),
        warning="It cannot be taken back.",
    )
    return change_all(connection, choice, verb, yes=yes)


@click.command("suspend")
@choice_options()
@YES
@connection_options
def suspend(connection: Connection, choice: Choice, yes: bool) -> int:
    """Ask nothing of Sume for NAME..., -l SELECTOR or --state until `resume`. A job that runs there goes on.

    \b
    Examples:
      kubectl sumerender suspend intro
      kubectl sumerender suspend -l render.sume.com/batch=july --state Pending
    """
    verb = Verb(
        name="suspend",
        skip=lambda render: _ended(render) or ("suspended already" if render.suspended else ""),
        act=_patched({"spec": {"suspend": True}}, "suspended"),
    )
    return change_all(connection, choice, verb, yes=yes)


@click.command("resume")
@choice_options()
@YES
@connection_options
def resume(connection: Connection, choice: Choice, yes: bool) -> int:
    """Go on with NAME..., -l SELECTOR or --state after `suspend`.

    \b
    Examples:
      kubectl sumerender resume intro
      kubectl sumerender resume -l render.sume.com/batch=july
    """
    verb = Verb(
        name="resume",
        skip=lambda render: _ended(render) or ("" if render.suspended else "not suspended"),
        act=_patched({"spec": {"suspend": False}}, "resumed"),
    )
    return change_all(connection, choice, verb, yes=yes)


@click.command("refresh")
@choice_options()
@YES
@connection_options
def refresh(connection: Connection, choice: Choice, yes: bool) -> int:
    """Have Sume looked at now for NAME..., -l SELECTOR or --state; completed ones get fresh output URLs.

    \b
    Examples:
      kubectl sumerender refresh intro
      kubectl sumerender refresh -l render.sume.com/batch=july --state Completed --yes
    """
    # New each time, which is all that counts; not a clock's time, as two within a second would be one request.
    change = {"metadata": {"annotations": {POLL_REQUESTED_AT: f"kubectl-{uuid.uuid4()}"}}}
    verb = Verb(name="refresh", skip=_no_reason, act=_patched(change, "will be looked at soon"))
    return change_all(connection, choice, verb, yes=yes)


def _ended(render: Render) -> str:
    return f"ended already ({render.reason or render.state})" if render.terminal else ""


def _no_reason(_render: Render) -> str:
    return ""


def _patched(change: dict[str, Any], done: str) -> "Callable[[Api, Render], str]":
    def act(api: "Api", render: Render) -> str:
        from kubectl_sumerender import renders

        renders.patch(api, render, change)
        return done

    return act
