"""The commands: reads the settings, builds the adapters, starts a role."""

import json
import logging
import os
import secrets
import socket
import sys
from typing import Any, NoReturn

import click

from sume_operator import __version__
from sume_operator.settings import Settings, SettingsError, load_settings

log = logging.getLogger("sume_operator")

BAD_SETTINGS = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Follows AI video renders at Sume: SumeRender resources in Kubernetes, due times in Redis.

    Every setting is an environment variable; a bad one ends the process with exit code 2 and one line that says what
    the variable wants.
    """


@main.command()
def controller() -> None:
    """Watch SumeRenders and keep an alarm for each that has something left to do. Run one."""
    settings = _start("controller")
    from sume_operator.metrics import ControllerMetrics
    from sume_operator.runtime import controller as role

    metrics = ControllerMetrics()
    cluster = _cluster(settings, connections=8)
    client = _redis(settings, connections=16)
    code = role.run(settings, cluster, client, _queue(settings, client, metrics), metrics, _instance())
    log.info("stopped")
    sys.exit(code)


@main.command()
def poller() -> None:
    """Work off what is due: read Sume once, write the status, set the next due time. Run as many as you like."""
    settings = _start("poller")
    from sume_operator.metrics import PollerMetrics
    from sume_operator.runtime import polling as role

    metrics = PollerMetrics()
    cluster = _cluster(settings, connections=settings.sume_concurrency)
    client = _redis(settings, connections=settings.sume_concurrency)
    left = role.run(settings, cluster, client, _queue(settings, client, metrics), metrics, _instance())
    log.info("stopped; turns left to their lease: %d", left)
    if left:  # a turn that hangs would keep the interpreter waiting for its thread
        logging.shutdown()
        os._exit(0)


@main.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def queue(output: str) -> None:
    """Show how the sorted set stands: alarms, how many are due or leased, and how late the oldest is."""
    settings = _load()
    from sume_operator.adapters.redis_connection import RedisUnavailableError

    due_queue = _queue(settings, _redis(settings, connections=1), None)
    try:
        measures, leased, foreign = due_queue.measure(), due_queue.count_leased(), due_queue.count_foreign()
        whole = due_queue.is_whole()
    except RedisUnavailableError as error:
        _fail(f"Redis does not answer (REDIS_URL): {error}", 1)
    shown = {
        "key": settings.sume_queue_key,
        "size": measures.size,
        "due": measures.due,
        "leased": leased,
        "lag_seconds": measures.lag_s,
        "foreign": foreign,
        "whole": whole,
    }
    if output == "json":
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name.replace('_', ' '):12} {str(value).lower() if isinstance(value, bool) else value}")


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def sandbox(arguments: tuple[str, ...]) -> None:
    """Serve a simulated Sume, for trying things out without spending anything."""
    from sume_sandbox.command import sandbox as command

    command.main(args=list(arguments), prog_name="sume-operator sandbox")


@main.command()
@click.option("--crd", is_flag=True, help="The CRD is served, with every field of this version.")
@click.option("--redis", is_flag=True, help="Redis answers, and takes the password.")
@click.option("--sume", is_flag=True, help="Sume takes the operator's own key. Spends nothing.")
@click.option("--follow", metavar="NAMESPACE", help="A render there ends that follows a made-up job: for the sandbox.")
@click.option("--timeout-s", type=click.FloatRange(min=1), default=180.0, show_default=True, help="For --follow.")
def check(crd: bool, redis: bool, sume: bool, follow: str | None, timeout_s: float) -> None:
    """Say whether all that a render needs is there: a line for each check, exit code 1 if one fails.

    Without options: CRD, Redis and Sume. A key that is not there fails only if --sume asks for it.
    """
    settings = _load()
    from sume_operator import logs
    from sume_operator.runtime import checks

    logs.configure(settings.sume_log_format, "error")
    every = not (crd or redis or sume or follow)
    findings = []
    if crd or every:
        findings.append(checks.check_crd(_cluster(settings, connections=1)))
    if redis or every:
        findings.append(checks.check_redis(_queue(settings, _redis(settings, connections=1), None)))
    if sume or every:
        findings.append(_check_sume(settings))
    if follow:
        findings.append(checks.check_following(_cluster(settings, connections=1), follow, timeout_s))
    for finding in findings:
        word = {True: "ok", False: "FAILED", None: "nothing"}[finding.passed]
        click.echo(f"{finding.name:7} {word:8} {finding.text}")
    wanted = (True,) if sume else (True, None)
    sys.exit(0 if all(finding.passed in wanted for finding in findings) else 1)


@main.command("redis-secret", hidden=True)
@click.option("--name", required=True, help="The Secret, which is there already.")
@click.option("--key", default="password", show_default=True)
def redis_secret(name: str, key: str) -> None:
    """Put a random password into a Secret of this namespace that has none. For the chart's own Redis."""
    settings = _load()
    from sume_operator.adapters.cluster import own_namespace
    from sume_operator.adapters.kubernetes_errors import ClusterError

    namespace = own_namespace()
    try:
        filled = _cluster(settings, connections=1).fill_secret(namespace, name, key, secrets.token_urlsafe(32))
    except ClusterError as error:
        _fail(f"Secret {namespace}/{name} could not be filled: {error}", 1)
    click.echo(f"Secret {namespace}/{name}: {'has a new password' if filled else 'keeps its password'}")


def _check_sume(settings: Settings) -> Any:
    from sume_operator.adapters.cluster import own_namespace
    from sume_operator.adapters.credentials import Credentials
    from sume_operator.adapters.sume_api import SumeAPI
    from sume_operator.runtime import checks

    key = settings.sume_api_key
    credentials = Credentials(
        lambda _namespace, _name, _timeout_s: {},
        api_url=settings.sume_api_url,
        default_key=key.get_secret_value() if key else None,
        default_key_file=settings.sume_api_key_file,
    )
    api = SumeAPI(settings.sume_api_url, connections=1, auth_mode=settings.sume_auth_mode)
    return checks.check_sume(api, credentials, own_namespace(), settings.sume_request_timeout_seconds)


def _load() -> Settings:
    try:
        return load_settings()
    except SettingsError as error:
        _fail(str(error), BAD_SETTINGS)


def _start(role: str) -> Settings:
    settings = _load()
    from sume_operator import logs

    logs.configure(settings.sume_log_format, settings.sume_log_level)
    log.info("sume-operator %s %s runs with %s", __version__, role, json.dumps(settings.shown(), sort_keys=True))
    return settings


def _cluster(settings: Settings, *, connections: int) -> Any:
    from sume_operator.adapters.cluster import Cluster, load_configuration

    try:
        configuration = load_configuration(connections)
    except ValueError as error:
        _fail(str(error), BAD_SETTINGS)
    return Cluster(configuration, timeout_s=settings.sume_kubernetes_timeout_seconds)


def _redis(settings: Settings, *, connections: int) -> Any:
    from sume_operator.adapters.redis_connection import connect

    try:
        return connect(
            settings.redis_url.get_secret_value(),
            connections=connections,
            password_file=settings.redis_password_file,
        )
    except ValueError:
        _fail("REDIS_URL: wants host, port and database number, such as redis://redis:6379/0", BAD_SETTINGS)


def _queue(settings: Settings, client: Any, metrics: Any) -> Any:
    from sume_operator.adapters.due_queue import DueQueue

    on_error = metrics.redis_errors.inc if metrics else lambda: None
    return DueQueue(client, settings.sume_queue_key, on_error)


def _instance() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


def _fail(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)
