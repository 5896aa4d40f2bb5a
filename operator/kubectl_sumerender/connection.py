"""Which cluster, which namespace: the options of kubectl, read as kubectl reads them, and the way in.

Nothing of the Kubernetes client is imported before `open()`: it takes most of a second, and `--help` must not wait.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from kubectl_sumerender.errors import WrongUseError, clean

if TYPE_CHECKING:
    from kubernetes.client import Configuration

    from kubectl_sumerender.api import Api

AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])

CONNECTIONS: Final = 8  # calls at once, at most
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where to go, as said on the command line."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False

    def open(self) -> "Api":
        """The way in; `Api.namespace` is the one to work in, None for all. WrongUseError says what is missing."""
        from kubectl_sumerender.api import Api

        configuration, home = _configuration(self)
        return Api(configuration, None if self.all_namespaces else self.namespace or home)


def connection_options(command: AnyCallable) -> AnyCallable:
    """Adds --context, --namespace, -A and --kubeconfig; the command gets them as one argument, `connection`."""

    @functools.wraps(command)
    def with_connection(
        *args: Any,
        kubeconfig: str | None,
        context: str | None,
        namespace: str | None,
        all_namespaces: bool,
        **rest: Any,
    ) -> Any:
        if namespace and all_namespaces:
            raise WrongUseError("--namespace and --all-namespaces exclude each other: give one")
        chosen = Connection(
            kubeconfig=kubeconfig, context=context, namespace=namespace or None, all_namespaces=all_namespaces
        )
        return command(*args, connection=chosen, **rest)

    options = (
        click.option("-n", "--namespace", metavar="NAME", help="Namespace; else the context's own."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Every namespace."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig; else its current one."),
        click.option(
            "--kubeconfig", metavar="FILE", help="Kubeconfig; else $KUBECONFIG, ~/.kube/config, the pod's account."
        ),
    )
    decorated: Any = with_connection
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _configuration(connection: Connection) -> tuple["Configuration", str]:
    """The client's configuration, and the namespace that it stands in."""
    from kubernetes import client, config

    loaded = client.Configuration()
    paths = _paths(connection.kubeconfig)
    try:
        if paths:
            home = _from_files(paths, connection.context, loaded)
        elif connection.context:
            raise WrongUseError(f"--context {connection.context}: there is no kubeconfig; give --kubeconfig FILE")
        else:
            config.load_incluster_config(client_configuration=loaded)
            home = _own_namespace()
    except WrongUseError:
        raise
    except Exception as error:  # noqa: BLE001  # a file that is no kubeconfig breaks the loader in many ways
        detail = (
            clean(str(error), 200).rstrip(".") if isinstance(error, config.ConfigException) else type(error).__name__
        )
        where = f"in {os.pathsep.join(paths)}" if paths else "(no kubeconfig, and not in a pod)"
        raise WrongUseError(f"no way to a cluster {where}: {detail}. Set KUBECONFIG or give --kubeconfig") from None
    loaded.retries = False  # urllib3 would repeat a read three times, and so treble every time-out
    loaded.connection_pool_maxsize = CONNECTIONS + 2
    if (urlsplit(loaded.host).hostname or "") in ("localhost", "127.0.0.1", "::1"):
        loaded.proxy = None  # kubectl never asks a proxy for the loopback either
    return loaded, home


def _paths(kubeconfig: str | None) -> list[str]:
    """The files to read, those that exist; one that was named must exist."""
    if kubeconfig:
        if not Path(kubeconfig).is_file():
            raise WrongUseError(f"--kubeconfig {kubeconfig}: there is no such file")
        return [kubeconfig]
    named = os.environ.get("KUBECONFIG")
    wanted = [os.path.expanduser(each) for each in (named or "~/.kube/config").split(os.pathsep) if each]
    found = [each for each in wanted if Path(each).is_file()]
    if named and not found:
        raise WrongUseError(f"KUBECONFIG={named}: there is no such file")
    return found


def _from_files(paths: list[str], context: str | None, into: "Configuration") -> str:
    """Load the context (else the current one) of these files, merged as kubectl merges them; its namespace."""
    from kubernetes import config

    name = context or _current_context(paths)
    if not name:
        raise WrongUseError(
            f"{os.pathsep.join(paths)}: no current context; give --context, or `kubectl config use-context`"
        )
    joined = os.pathsep.join(paths)
    contexts = _contexts(paths)
    chosen = next((each for each in contexts if each.get("name") == name), None)
    if chosen is None:
        known = ", ".join(str(each.get("name")) for each in contexts) or "none"
        raise WrongUseError(f"there is no context {name!r} in {joined}; it has: {known}")
    config.load_kube_config(joined, context=name, client_configuration=into)
    return str((chosen.get("context") or {}).get("namespace") or "default")


def _contexts(paths: list[str]) -> list[dict[str, Any]]:
    """All contexts; of two with one name the first file's."""
    found: dict[str, dict[str, Any]] = {}
    for body in _bodies(paths):
        for each in body.get("contexts") or ():
            found.setdefault(str(each.get("name")), each)
    return list(found.values())


def _current_context(paths: list[str]) -> str:
    """As kubectl: the first file that names one wins (the Python client takes the last)."""
    return next((str(body["current-context"]) for body in _bodies(paths) if body.get("current-context")), "")


def _bodies(paths: list[str]) -> list[dict[str, Any]]:
    import yaml

    bodies = (yaml.safe_load(Path(path).read_text(encoding="utf-8")) for path in paths)
    return [body for body in bodies if isinstance(body, dict)]


def _own_namespace() -> str:
    """The pod's."""
    path = _ACCOUNT / "namespace"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else "default"
