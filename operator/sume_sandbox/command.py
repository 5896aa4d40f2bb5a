"""`sandbox`: the command line and the environment of a sandbox. Mounted by the operator's own command."""

import logging
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from sume_sandbox.admin_input import MAX_MEDIA_BYTES
from sume_sandbox.config import SandboxConfig
from sume_sandbox.server import run

DEFAULTS = SandboxConfig()

AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])


class _Port(click.IntRange):
    """A port. Kubernetes puts `SUME_SANDBOX_PORT=tcp://...` into pods beside a Service named `sume-sandbox`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith("tcp://"):
            return DEFAULTS.port
        return super().convert(value, param, ctx)


def _option(flag: str, **attributes: Any) -> Callable[[AnyCallable], AnyCallable]:
    """An option that can come from the environment too."""
    name = flag.removeprefix("--").split("/")[0].replace("-", "_")
    attributes.setdefault("default", getattr(DEFAULTS, name, None))
    return click.option(flag, envvar=f"SUME_SANDBOX_{name.upper()}", show_envvar=True, show_default=True, **attributes)


_SECONDS = click.FloatRange(min=0)
_FILE = click.Path(dir_okay=False)


@click.command("sandbox")
@_option("--host", help="Address to listen on.")
@_option("--port", type=_Port(0, 65535), help="Port to listen on; 0 picks a free one.")
@_option("--queue-s", type=_SECONDS, help="Seconds a submitted job is queued, at least.")
@_option("--process-s", type=_SECONDS, help="Seconds from the start of processing to the end.")
@_option("--failing-share", type=click.FloatRange(0, 1), help="Share of all jobs that fail.")
@_option("--running-slots", type=click.IntRange(min=1), help="Jobs of a workspace that run at once.")
@_option("--queued-slots", type=click.IntRange(min=0), help="Jobs of a workspace that wait behind them.")
@_option("--reads-per-minute", type=click.IntRange(min=0), help="Reads of a workspace in a minute; 0: no limit.")
@_option("--next-poll-s", type=_SECONDS, help="Delay that status answers suggest, in seconds; 0: none.")
@_option("--cancel-running/--no-cancel-running", help="Whether a job that runs can be canceled.")
@_option("--seed", type=int, help="Chooses other jobs that fail, and other ids.")
@_option("--api-keys", default="", help="Accepted keys, separated by commas; none: every key.")
@_option("--media-url", help="Where the addresses of outputs point. The files are served under /artifacts.")
@_option("--media-bytes", type=click.IntRange(0, MAX_MEDIA_BYTES), help="Size of each output.")
@_option("--link-life-s", type=_SECONDS, help="Seconds for which a signed address of an output works.")
@_option("--tls-port", type=_Port(1, 65535), help="Port for TLS, if there is a certificate.")
@_option("--tls-cert", type=_FILE, help="PEM file with a certificate (and its key, or see --tls-key).")
@_option("--tls-key", type=_FILE, help="PEM file with the key of the certificate.")
@_option("--log-requests/--no-log-requests", help="One JSON line per request, without keys.")
def sandbox(api_keys: str, **options: Any) -> None:
    """A simulated Sume over real HTTP. It makes no videos, and costs nothing."""
    keys = frozenset(key.strip() for key in api_keys.split(",") if key.strip())
    if options["log_requests"] and not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        run(SandboxConfig(api_keys=keys, **options))
    except OSError as error:
        raise click.ClickException(f"cannot listen on {options['host']} port {options['port']}: {error}") from error
