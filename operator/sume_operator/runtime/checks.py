"""Is everything there that a render needs? Asks each part once, and spends nothing. What `sume-operator check` runs.

A finding is a text, whichever way it went; none of them holds a key.
"""

import secrets
import time
from dataclasses import dataclass
from typing import Final

from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.credentials import Credentials
from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.kubernetes_errors import ClusterError
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.adapters.sume_api import SumeAPI
from sume_operator.core.job import (
    Check,
    Forbidden,
    JobStatus,
    JobUnknown,
    Malformed,
    NoCredentials,
    RateLimited,
    Refusal,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.render import Ref, Render
from sume_operator.runtime.crd_check import CRDCheck

# No job has this id. The sandbox takes every id for a job, but for those with this word.
NO_JOB: Final = "job_missing-sume-operator-check"
LOOK_EVERY_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found. `passed` None: there was nothing to check."""

    name: str
    passed: bool | None
    text: str


def check_crd(cluster: Cluster) -> Finding:
    """Is the CRD served, with every field that this version writes?"""
    problem = CRDCheck(cluster).look()
    return Finding(name="crd", passed=problem is None, text=problem or "served, with every field of this version")


def check_redis(queue: DueQueue) -> Finding:
    """Does Redis answer, and take the password?"""
    try:
        queue.ping()
    except RedisUnavailableError as error:
        return Finding(name="redis", passed=False, text=f"does not answer (REDIS_URL): {error}")
    return Finding(name="redis", passed=True, text="answers")


def check_sume(api: SumeAPI, credentials: Credentials, namespace: str, timeout_s: float) -> Finding:
    """Does Sume take the operator's own key? Asks for a job that does not exist: that costs nothing."""
    credential = credentials.resolve(Render(ref=Ref(namespace, "check", "check")))
    if isinstance(credential, NoCredentials):
        passed = None if credential.reason == "CredentialsNotFound" else False
        return Finding(name="sume", passed=passed, text=credential.message)
    match api.perform(Check(job_id=NO_JOB), credential.key, timeout_s):
        case JobUnknown() | JobStatus():
            return Finding(name="sume", passed=True, text="takes the key")
        case Refusal(http_status=http_status):  # in its own words, and it would have refused the key first
            return Finding(name="sume", passed=True, text=f"takes the key (it answered HTTP {http_status})")
        case Unauthorized():
            problem = "refuses the key (401): it is wrong or revoked, or SUME_AUTH_MODE is"
        case Forbidden():
            problem = "knows the key, but lets it see no jobs (403)"
        case RateLimited():
            problem = "does not say, for the key is used too often just now (429): check again in a minute"
        case Unavailable(detail=detail):
            problem = f"does not answer (SUME_API_URL): {detail}"
        case Malformed(detail=detail):
            problem = f"gives an answer that is not Sume's (SUME_API_URL): {detail}"
        case reply:
            problem = f"gives an answer that makes no sense: {type(reply).__name__}"
    return Finding(name="sume", passed=False, text=problem)


def check_following(cluster: Cluster, namespace: str, timeout_s: float) -> Finding:
    """Does a render that follows a job come to its end? The job is made up, so this is for the sandbox."""
    name = f"check-{secrets.token_hex(4)}"
    try:
        render = cluster.create(namespace, name, {"jobID": f"job_{name}"})
        try:
            return _followed(cluster, render, timeout_s)
        finally:
            cluster.delete(cluster.fetch(render.ref, timeout_s), timeout_s)
    except ClusterError as error:
        return Finding(name="render", passed=False, text=f"{namespace}/{name}: {error}")


def _followed(cluster: Cluster, render: Render, timeout_s: float) -> Finding:
    began_s = time.monotonic()
    while True:
        status = render.status
        spent_s = time.monotonic() - began_s
        if status.terminal:
            return Finding(name="render", passed=True, text=f"ended as {status.state} after {spent_s:.0f} s")
        if spent_s > timeout_s:
            where = f"{status.state or 'not looked at yet'}: {status.message or 'no message'}"
            return Finding(name="render", passed=False, text=f"{render.ref} did not end in {timeout_s:.0f} s ({where})")
        time.sleep(LOOK_EVERY_S)
        render = cluster.fetch(render.ref, timeout_s)
