"""Sume's routes: from an HTTP request through fault, key and contract to the answer."""

import json
import logging
from collections.abc import Callable

from aiohttp import web

from sume_sandbox import digest, errors
from sume_sandbox.admin_input import Operation
from sume_sandbox.answer import Answer
from sume_sandbox.contract import SubmitCall
from sume_sandbox.delivery import deliver
from sume_sandbox.keys import Caller, presented_key
from sume_sandbox.sandbox import Sandbox

log = logging.getLogger("sume_sandbox")

Work = Callable[[Caller], Answer]


class ContractRoutes:
    """The handlers of everything under `/v1`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/v1/jobs/{job_id}/status", self.status),
            web.get("/v1/jobs/{job_id}/result", self.result),
            web.post("/v1/jobs/{job_id}/cancel", self.cancel),
            web.post("/v1/{router:video-router|image-router}/generate", self.submit),
            web.post("/v1/models/{model:.+}/runs", self.submit),
        ]

    async def status(self, request: web.Request) -> web.StreamResponse:
        """One look at a job."""
        job_id = request.match_info["job_id"]
        return await self._answer(request, "status", lambda who: self._sandbox.contract.status(who, job_id))

    async def result(self, request: web.Request) -> web.StreamResponse:
        """The outputs of a job."""
        job_id = request.match_info["job_id"]
        return await self._answer(request, "result", lambda who: self._sandbox.contract.result(who, job_id))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """The end of a job, if it is not too late."""
        job_id = request.match_info["job_id"]
        await request.read()
        return await self._answer(request, "cancel", lambda _: self._sandbox.contract.cancel(job_id))

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """A new job."""
        model = request.match_info.get("model")
        call = SubmitCall(
            model=model,
            kind=_kind(request.match_info.get("router"), model or ""),
            idempotency_key=request.headers.get("Idempotency-Key", "").strip() or None,
            body=await request.read(),
        )
        return await self._answer(request, "submit", lambda who: self._sandbox.contract.submit(who, call))

    async def _answer(self, request: web.Request, operation: Operation, work: Work) -> web.StreamResponse:
        sandbox = self._sandbox
        key = presented_key(request.headers)
        shown = None if key is None else digest.fingerprint(key)
        job_id = request.match_info.get("job_id")
        observations = sandbox.observations  # a reset in the meantime must not unbalance its counts
        with observations.request(operation, job_id, shown):
            fault = sandbox.faults.meet(operation, job_id, shown)

            def authorized() -> Answer:
                caller = sandbox.keys.caller(key)
                if caller is None:
                    return errors.unauthorized()
                answer = work(caller)
                if answer.job_id is not None:
                    observations.submitted(answer.job_id, caller.fingerprint)
                return answer

            answer = authorized() if fault is None else fault.apply(authorized)
            code = "dropped" if answer.drop else str(answer.http_status)
            observations.answered(operation, code)
            if sandbox.config.log_requests:  # never the query nor the headers: both may hold secrets
                log.info(json.dumps({"operation": operation, "path": request.path, "answer": code, "key": shown}))
            return await deliver(request, answer)


def _kind(router: str | None, model: str) -> str:
    """What a submission makes: as its router says, else as its model is called (`image-to-video` makes videos)."""
    by_name = router is None and "image" in model.lower() and "video" not in model.lower()
    return "image" if router == "image-router" or by_name else "video"
