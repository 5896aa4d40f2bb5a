"""The routes under `/_sandbox`: scripts, faults, keys and counts, for demos and tests. They ask for no key."""

from collections import Counter, defaultdict
from typing import Any, TypeVar

from aiohttp import web
from pydantic import ValidationError

from sume_sandbox.admin_input import AdminInput, FaultInput, JobInput, JobsInput, KeysInput, LinksInput, complaint
from sume_sandbox.sandbox import Sandbox
from sume_sandbox.shape_table import SHAPES
from sume_sandbox.store import legal_job_id

Input = TypeVar("Input", bound=AdminInput)


class BadInputError(ValueError):
    """Answered with 400; the text says what is wrong."""


@web.middleware
async def refuse_bad_input(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer 400 wherever an admin route meets bad input."""
    try:
        response: web.StreamResponse = await handler(request)
    except BadInputError as error:
        return web.json_response({"error": str(error)}, status=400)
    return response


class AdminRoutes:
    """The handlers of everything under `/_sandbox`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/_sandbox/jobs", self.list_jobs),
            web.put("/_sandbox/jobs", self.script_jobs),
            web.get("/_sandbox/jobs/{job_id}", self.show_job),
            web.put("/_sandbox/jobs/{job_id}", self.script_job),
            web.get("/_sandbox/stats", self.stats),
            web.get("/_sandbox/faults", self.list_faults),
            web.post("/_sandbox/faults", self.add_fault),
            web.delete("/_sandbox/faults", self.clear_faults),
            web.delete("/_sandbox/faults/{fault_id}", self.remove_fault),
            web.put("/_sandbox/keys", self.replace_keys),
            web.get("/_sandbox/media", self.list_media),
            web.put("/_sandbox/links", self.change_links),
            web.post("/_sandbox/reset", self.reset),
        ]

    async def list_jobs(self, _: web.Request) -> web.Response:
        """All jobs that exist or were asked for."""
        known = {job.job_id for job in self._sandbox.store.all(self._sandbox.clock.now_s())}
        names = sorted(known | self._sandbox.observations.jobs.keys())
        return web.json_response({"jobs": {name: self._describe(name) for name in names}})

    async def show_job(self, request: web.Request) -> web.Response:
        """One job; a job that nobody asked for and nobody made is 404."""
        job_id = request.match_info["job_id"]
        known = self._sandbox.store.find(job_id, self._sandbox.clock.now_s()) is not None
        if not known and job_id not in self._sandbox.observations.jobs:
            return web.json_response({"error": f"no job {job_id}"}, status=404)
        return web.json_response(self._describe(job_id))

    async def script_job(self, request: web.Request) -> web.Response:
        """Give one job a script."""
        job_id = request.match_info["job_id"]
        self._script({job_id: await _read(request, JobInput)})
        return web.json_response(self._describe(job_id))

    async def script_jobs(self, request: web.Request) -> web.Response:
        """Give many jobs their scripts: all, or none if one is wrong."""
        scripts = (await _read(request, JobsInput)).jobs
        self._script(scripts)
        return web.json_response({"jobs": sorted(scripts)})

    async def stats(self, _: web.Request) -> web.Response:
        """Totals since the start or the last reset."""
        sandbox = self._sandbox
        now_s = sandbox.clock.now_s()
        states = Counter(str(job.state_at(now_s) or "unknown") for job in sandbox.store.all(now_s))
        requests: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for (operation, code), count in sorted(sandbox.observations.answers.items()):
            requests[operation][code] = count
        max_active = sandbox.store.max_active
        return web.json_response(
            {
                "jobs": {"submitted": sandbox.store.submitted, "known": states.total(), "by_state": dict(states)},
                "requests": requests,
                "rate_limited": sum(codes.get("429", 0) for codes in requests.values()),
                "max_active": max(max_active.values(), default=0),
                "max_active_by_workspace": max_active,
                "max_concurrent_requests": sandbox.observations.max_concurrent_requests,
            }
        )

    async def list_faults(self, _: web.Request) -> web.Response:
        """All faults with their counts."""
        return web.json_response({"faults": self._sandbox.faults.describe()})

    async def add_fault(self, request: web.Request) -> web.Response:
        """One more fault."""
        fault = self._sandbox.faults.add(await _read(request, FaultInput))
        return web.json_response({"id": fault.fault_id}, status=201)

    async def clear_faults(self, _: web.Request) -> web.Response:
        """No faults any more."""
        self._sandbox.faults.clear()
        return web.Response(status=204)

    async def remove_fault(self, request: web.Request) -> web.Response:
        """One fault less."""
        fault_id = request.match_info["fault_id"]
        if not self._sandbox.faults.remove(fault_id):
            return web.json_response({"error": f"no fault {fault_id}"}, status=404)
        return web.Response(status=204)

    async def replace_keys(self, request: web.Request) -> web.Response:
        """Other accepted keys from now on."""
        keys = (await _read(request, KeysInput)).keys
        if any(not key.strip() for key in keys):
            raise BadInputError("keys: a key must not be empty")
        self._sandbox.keys.replace(keys if isinstance(keys, dict) else dict.fromkeys(keys))
        return web.json_response({"any_key_accepted": not keys, "keys": self._sandbox.keys.fingerprints})

    async def list_media(self, _: web.Request) -> web.Response:
        """Who fetched which files, and how."""
        return web.json_response(self._sandbox.media_log.describe())

    async def change_links(self, request: web.Request) -> web.Response:
        """How long addresses of files work."""
        wanted, links = await _read(request, LinksInput), self._sandbox.links
        if wanted.life_s is not None:
            links.life_s = wanted.life_s
        if wanted.expire_all:
            links.expire_all()
        return web.json_response({"life_s": links.life_s, "round": links.round})

    async def reset(self, _: web.Request) -> web.Response:
        """Back to the start."""
        self._sandbox.reset()
        return web.Response(status=204)

    def _script(self, scripts: dict[str, JobInput]) -> None:
        for job_id, script in scripts.items():
            if not legal_job_id(job_id):
                raise BadInputError(f"{job_id}: a job id has 1 to 128 letters, digits, `-` or `_`")
            if script.shape is not None and not 0 <= script.shape < len(SHAPES):
                raise BadInputError(f"{job_id}: shape must be from 0 to {len(SHAPES) - 1}")
        now_s = self._sandbox.clock.now_s()
        for job_id, script in scripts.items():
            self._sandbox.store.script(job_id, script, now_s)

    def _describe(self, job_id: str) -> dict[str, Any]:
        now_s = self._sandbox.clock.now_s()
        job = self._sandbox.store.find(job_id, now_s)
        life = {
            "id": job_id,
            "state": None if job is None else job.state_at(now_s),
            "ended": None if job is None else job.ended_at(now_s),
            "origin": None if job is None else job.origin,
            "idempotency_key": None if job is None else job.idempotency_key,
        }
        return {**life, **self._sandbox.observations.of(job_id).describe()}


async def _read(request: web.Request, model: type[Input]) -> Input:
    try:
        return model.model_validate_json(await request.read())
    except ValidationError as error:
        raise BadInputError(complaint(error)) from error
