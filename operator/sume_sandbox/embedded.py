"""A sandbox in a thread of the running process, for tests and demos that want one for a while."""

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sume_sandbox.config import SandboxConfig
from sume_sandbox.server import serve

START_TIMEOUT_S = 10.0


@contextmanager
def running(config: SandboxConfig) -> Iterator[str]:
    """Serve for as long as the context lasts; yields the base URL, `http://HOST:PORT/v1`."""
    started: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def work() -> None:
        try:
            loop.run_until_complete(serve(config, stop=stop, on_listening=started.put))
        except BaseException as error:  # noqa: BLE001  # it is raised again where the sandbox was asked for
            started.put(error)
        finally:
            loop.close()

    thread = threading.Thread(target=work, name="sume-sandbox", daemon=True)
    thread.start()
    address = started.get(timeout=START_TIMEOUT_S)
    if isinstance(address, BaseException):
        thread.join()
        raise address
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
