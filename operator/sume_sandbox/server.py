"""The sandbox as an HTTP server: start, announce, stop."""

import asyncio
import logging
import signal
import ssl
import sys
from collections.abc import Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from sume_sandbox.admin import AdminRoutes, refuse_bad_input
from sume_sandbox.config import SandboxConfig
from sume_sandbox.media_routes import MediaRoutes
from sume_sandbox.routes import ContractRoutes
from sume_sandbox.sandbox import Sandbox

SHUTDOWN_TIMEOUT_S = 0.5  # for answers under way; aiohttp waits that long twice, and we have two seconds in all
MAX_BODY_BYTES = 16 * 1024**2  # a script for thousands of jobs in one request

log = logging.getLogger("sume_sandbox.http")


def run(config: SandboxConfig) -> None:
    """Serve until SIGTERM or SIGINT."""
    asyncio.run(_until_signal(config))


async def serve(
    config: SandboxConfig, *, stop: asyncio.Event, on_listening: Callable[[str], None] | None = None
) -> None:
    """Serve until `stop` is set. `on_listening` gets the base URL once connections are accepted; else it is printed."""
    # Handlers are canceled with their client: whoever gave up does not overlap with the read that follows.
    runner = web.AppRunner(
        application(Sandbox(config)),
        access_log=None,
        handler_cancellation=True,
        logger=log,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, config.host, config.port, backlog=1024)
        await site.start()
        if config.tls_cert:
            secured = web.TCPSite(runner, config.host, config.tls_port, backlog=1024, ssl_context=_tls(config))
            await secured.start()
        (on_listening or _announce)(_base_url(config.host, runner.addresses[0][1]))
        await stop.wait()
    finally:
        await runner.cleanup()


def application(sandbox: Sandbox) -> web.Application:
    """All routes around one sandbox."""
    app = web.Application(middlewares=[refuse_bad_input], client_max_size=MAX_BODY_BYTES)
    app.add_routes([web.get("/healthz", _healthy), web.get("/readyz", _healthy)])
    app.add_routes(ContractRoutes(sandbox).table())
    app.add_routes(MediaRoutes(sandbox).table())
    app.add_routes(AdminRoutes(sandbox).table())
    return app


async def _until_signal(config: SandboxConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(config, stop=stop)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _base_url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def _tls(config: SandboxConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key or None)
    except OSError as error:
        raise OSError(
            f"no TLS with certificate {config.tls_cert} and key {config.tls_key or 'in it'}: {error}"
        ) from error
    return context


def _announce(base_url: str) -> None:
    sys.stdout.write(f"sandbox listening on {base_url}\n")
    sys.stdout.flush()


def _drop_offending_bytes(record: logging.LogRecord) -> bool:
    """aiohttp quotes what it cannot parse, and a malformed header may be a key."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
    return True


log.addFilter(_drop_offending_bytes)
