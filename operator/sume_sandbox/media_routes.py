"""The routes of the files that jobs made. No key is asked for: a signed address is the right to have the file."""

from aiohttp import web

from sume_sandbox.answer import Answer
from sume_sandbox.delivery import deliver
from sume_sandbox.sandbox import Sandbox


class MediaRoutes:
    """The handlers of everything under `/artifacts`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [web.get("/artifacts/{job_id}/{name}", self.fetch, allow_head=False)]

    async def fetch(self, request: web.Request) -> web.StreamResponse:
        """One file, or a part of it."""
        sandbox = self._sandbox
        job_id, name = request.match_info["job_id"], request.match_info["name"]
        log = sandbox.media_log.asked(f"{job_id}/{name}", request.headers)

        def work() -> Answer:
            try:
                wanted = request.http_range
            except ValueError:
                wanted = slice(None, None)  # a range that cannot be read is passed over
            return sandbox.contract.media(job_id, name, request.query, wanted, request.headers.get("If-Range"))

        fault = sandbox.faults.meet("media", job_id, None)
        answer = work() if fault is None else fault.apply(work)
        code = "dropped" if answer.drop else str(answer.http_status)
        log.answers[code] += 1
        sandbox.observations.answered("media", code)

        def count(sent_bytes: int) -> None:
            log.bytes_sent += sent_bytes

        return await deliver(request, answer, on_sent=count)
