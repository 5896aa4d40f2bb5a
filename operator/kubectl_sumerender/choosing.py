"""Which renders a verb is about: names, -l SELECTOR and --state, as options and as a list."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from kubectl_sumerender.connection import Connection
from kubectl_sumerender.errors import NotFoundError, PluginError, WrongUseError
from kubectl_sumerender.render import PENDING, STATES, Render, read_render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

COMPLETION_S: Final = 2.0
AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was said on the command line. Nothing at all means every render, where the verb allows that."""

    names: tuple[str, ...] = ()
    selector: str = ""
    states: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing was chosen."""
        return not (self.names or self.selector or self.states)

    @property
    def field_selector(self) -> str:
        """What the server can sort out by itself. A render that nothing has touched has no state yet: not Pending."""
        return f"status.state={self.states[0]}" if len(self.states) == 1 and self.states[0] != PENDING else ""

    def takes(self, render: Render) -> bool:
        """Whether its state is asked for."""
        return not self.states or render.state in self.states

    def in_words(self) -> str:
        """For messages: `-l batch=july --state Failed`."""
        parts = [
            *self.names,
            *([f"-l {self.selector}"] if self.selector else []),
            *(f"--state {s}" for s in self.states),
        ]
        return " ".join(parts) or "every render"


def choice_options(*, names: bool = True, states: bool = True) -> Callable[[AnyCallable], AnyCallable]:
    """Adds NAME..., -l and --state; the command gets them as one argument, `choice`."""

    def decorate(command: AnyCallable) -> AnyCallable:
        @functools.wraps(command)
        def with_choice(
            *args: Any, selector: str, state: Sequence[str] = (), name: Sequence[str] = (), **rest: Any
        ) -> Any:
            if name and selector:
                raise WrongUseError("names and -l exclude each other: give one")
            # Whichever of the two decorators stands outside.
            if name and (rest.get("all_namespaces") or getattr(rest.get("connection"), "all_namespaces", False)):
                raise WrongUseError("a name is in one namespace: give -n NAMESPACE instead of -A")
            return command(*args, choice=Choice(names=tuple(name), selector=selector, states=tuple(state)), **rest)

        decorated: Any = with_choice
        if states:
            decorated = click.option(
                "--state",
                multiple=True,
                type=click.Choice(STATES, case_sensitive=False),
                help="Only those; repeatable.",
            )(decorated)
        decorated = click.option(
            "-l", "--selector", default="", metavar="SELECTOR", help="Labels, such as render.sume.com/batch=july."
        )(decorated)
        if names:
            decorated = click.argument("name", nargs=-1, shell_complete=_complete_names)(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def chosen(api: "Api", choice: Choice) -> tuple[list[Render], list[str]]:
    """The renders, and the names that were not found."""
    from kubectl_sumerender import renders

    if not choice.names:
        found, _ = renders.list_renders(api, selector=choice.selector, field_selector=choice.field_selector)
        return [render for render in found if choice.takes(render)], []
    namespace = api.namespace or "default"
    got: list[Render] = []
    missing: list[str] = []
    for name in dict.fromkeys(choice.names):
        try:
            got.append(read_render(renders.get(api, namespace, name)))
        except NotFoundError:
            missing.append(name)
    return [render for render in got if choice.takes(render)], missing


def _complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Names on the first page, for the shell; a cluster that does not answer proposes nothing."""
    from kubectl_sumerender import renders

    said: dict[str, Any] = {name: ctx.params.get(name) for name in ("kubeconfig", "context", "namespace")}
    try:
        page = next(renders.pages(Connection(**said).open(), answer_s=COMPLETION_S))
    except PluginError:
        return []
    names = (read_render(body).name for body in page.bodies)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
