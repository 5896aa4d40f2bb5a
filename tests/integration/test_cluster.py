"""The Kubernetes adapter against a real API server: what it reads, what it writes, and how it fails."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from controlplane import ControlPlane
from controlplane.cluster import as_user
from kube import Kube, eventually
from listener import Connection, Listener
from sume_operator.adapters import cluster as cluster_module
from sume_operator.adapters.cluster import Cluster, Page, event_body, load_configuration
from sume_operator.adapters.kubernetes_errors import (
    ClusterError,
    ClusterUnavailableError,
    ConflictError,
    ExpiredListError,
    GoneError,
    NotPermittedError,
    RefusedError,
)
from sume_operator.core.job import JobError
from sume_operator.core.render import FINALIZER, MalformedObjectError, Ref, Render, ref_of
from sume_operator.core.status import Condition, Output, Polling, Status, Streak, missing_fields, to_body

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMESPACE = "adapters"
TIMEOUT_S = 5.0


@pytest.fixture(scope="module")
def kube(cluster: ControlPlane) -> Kube:
    kube = Kube(cluster)
    kube.make_namespace(NAMESPACE)
    return kube


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> Cluster:
    return connected(cluster.kubeconfig)


def connected(kubeconfig: Path, timeout_s: float = TIMEOUT_S, connections: int = 16) -> Cluster:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubeconfig))
        return Cluster(load_configuration(connections), timeout_s=timeout_s)


@pytest.fixture
def render(kube: Kube, api: Cluster, request: pytest.FixtureRequest) -> Iterator[Render]:
    """A render that nobody has looked at yet."""
    name = request.node.name.partition("[")[0].replace("_", "-")[:60].strip("-")
    ref = ref_of(kube.create(NAMESPACE, name, {"jobID": "job_1"}))
    yield api.fetch(ref, TIMEOUT_S)
    kube.patch(NAMESPACE, name, {"metadata": {"finalizers": None}})
    kube.request("DELETE", f"/apis/render.sume.com/v1alpha1/namespaces/{NAMESPACE}/sumerenders/{name}")


def _condition(status: str = "False", generation: int = 1) -> Condition:
    return Condition(
        type="Finished",
        status=status,
        reason="Active",
        message="It runs.",
        last_transition_time=NOW,
        observed_generation=generation,
    )


FULL = Status(
    observed_generation=1,
    state="Processing",
    job_id="job_1",
    api_url="https://api.sume.com/v1",
    sume_status="running",
    message="It runs.",
    error=JobError(code="c", message="m", public_reason="p", request_id="r", source="Job"),
    outputs=(Output(name="video", url="https://media.sume.com/1.mp4", expiration_time=NOW),),
    polling=Polling(
        count=3,
        failures=1,
        last_poll_time=NOW,
        next_poll_time=NOW,
        collecting_since=NOW,
        streak=Streak(kind="Contradiction", count=1, since=NOW),
    ),
    start_time=NOW,
    conditions=(_condition(),),
)
ENDED = replace(FULL, state="Completed", terminal=True, completion_time=NOW)


# --- renders --------------------------------------------------------------------------------------


def test_fetch(api: Cluster, render: Render) -> None:
    assert (render.followed_job_id, render.generation, render.status) == ("job_1", 1, Status())
    assert render.resource_version
    assert api.fetch(render.ref, TIMEOUT_S) == render


def test_fetch_of_what_is_not_there(api: Cluster, render: Render) -> None:
    with pytest.raises(GoneError, match="404"):
        api.fetch(replace(render.ref, name="absent"), TIMEOUT_S)
    with pytest.raises(GoneError, match="404"):
        api.fetch(replace(render.ref, namespace="absent"), TIMEOUT_S)


def test_a_new_object_of_the_same_name_is_another_one(api: Cluster, kube: Kube, render: Render) -> None:
    old = render.ref
    kube.delete(old.namespace, old.name)
    new = ref_of(kube.create(old.namespace, old.name, {"jobID": "job_2"}))
    with pytest.raises(GoneError, match="another object"):
        api.fetch(old, TIMEOUT_S)
    assert api.fetch(new, TIMEOUT_S).followed_job_id == "job_2"
    with pytest.raises((ConflictError, GoneError)):
        api.write_status(render, FULL, TIMEOUT_S)
    with pytest.raises((ConflictError, GoneError)):
        api.set_finalizer(render, present=True, timeout_s=TIMEOUT_S)
    with pytest.raises((ConflictError, GoneError)):
        api.delete(render, TIMEOUT_S)
    assert api.fetch(new, TIMEOUT_S).status == Status()


def test_a_status_comes_back_as_it_was_written(api: Cluster, render: Render) -> None:
    written = api.write_status(render, FULL, TIMEOUT_S)
    assert written.status == FULL
    assert written.resource_version != render.resource_version
    assert written.generation == 1
    assert api.fetch(render.ref, TIMEOUT_S) == written


def test_a_write_is_conditional_on_what_was_read(api: Cluster, kube: Kube, render: Render) -> None:
    second = api.write_status(render, FULL, TIMEOUT_S)
    with pytest.raises(ConflictError):
        api.write_status(render, replace(FULL, message="late"), TIMEOUT_S)
    kube.annotate(NAMESPACE, render.ref.name, "now")
    with pytest.raises(ConflictError):
        api.write_status(second, replace(FULL, message="late"), TIMEOUT_S)
    assert api.fetch(render.ref, TIMEOUT_S).status == FULL


def test_what_is_no_longer_true_is_removed(api: Cluster, kube: Kube, render: Render) -> None:
    written = api.write_status(render, FULL, TIMEOUT_S)
    plain = Status(observed_generation=1, state="Queued", conditions=(_condition(),))
    written = api.write_status(written, plain, TIMEOUT_S)
    assert written.status == plain
    body = kube.get(NAMESPACE, render.ref.name)["status"]
    assert set(body) == {"observedGeneration", "state", "terminal", "polling", "conditions"}
    assert body["polling"] == {"count": 0, "failures": 0}


def test_the_end_cannot_be_taken_back(api: Cluster, render: Render) -> None:
    ended = api.write_status(render, ENDED, TIMEOUT_S)
    for status in (FULL, replace(ENDED, state="Failed")):
        with pytest.raises(RefusedError, match="a render that has ended stays as it ended") as raised:
            api.write_status(ended, status, TIMEOUT_S)
        assert _is_plain(raised.value)
    again = api.write_status(ended, replace(ENDED, message="Outputs are fresh."), TIMEOUT_S)
    assert again.status.message == "Outputs are fresh."


def test_a_status_that_the_schema_does_not_take(api: Cluster, render: Render) -> None:
    with pytest.raises(RefusedError, match="422") as raised:
        api.write_status(render, replace(FULL, message="x" * 100_000), TIMEOUT_S)
    assert _is_plain(raised.value)
    assert api.fetch(render.ref, TIMEOUT_S) == render


def test_the_finalizer_is_set_and_removed_conditionally(api: Cluster, kube: Kube, render: Render) -> None:
    kube.patch(NAMESPACE, render.ref.name, {"metadata": {"finalizers": ["example.com/theirs"]}})
    with pytest.raises(ConflictError):
        api.set_finalizer(render, present=True, timeout_s=TIMEOUT_S)
    fresh = api.fetch(render.ref, TIMEOUT_S)
    held = api.set_finalizer(fresh, present=True, timeout_s=TIMEOUT_S)
    assert held.finalizers == ("example.com/theirs", FINALIZER)
    again = api.set_finalizer(held, present=True, timeout_s=TIMEOUT_S)
    assert again == held
    with pytest.raises(ConflictError):
        api.set_finalizer(fresh, present=False, timeout_s=TIMEOUT_S)
    freed = api.set_finalizer(held, present=False, timeout_s=TIMEOUT_S)
    assert freed.finalizers == ("example.com/theirs",)
    kube.patch(NAMESPACE, render.ref.name, {"metadata": {"finalizers": None}})
    none = api.set_finalizer(api.fetch(render.ref, TIMEOUT_S), present=False, timeout_s=TIMEOUT_S)
    assert none.finalizers == ()


def test_a_deleted_object_goes_with_its_last_finalizer(api: Cluster, kube: Kube, render: Render) -> None:
    api.set_finalizer(render, present=True, timeout_s=TIMEOUT_S)
    kube.delete(NAMESPACE, render.ref.name)
    going = api.fetch(render.ref, TIMEOUT_S)
    assert going.deletion_time is not None
    assert going.generation == 2
    assert api.set_finalizer(going, present=False, timeout_s=TIMEOUT_S).finalizers == ()
    with pytest.raises(GoneError):
        api.fetch(render.ref, TIMEOUT_S)


def test_only_the_object_that_was_read_is_deleted(api: Cluster, kube: Kube, render: Render) -> None:
    kube.annotate(NAMESPACE, render.ref.name, "now")
    with pytest.raises(ConflictError):
        api.delete(render, TIMEOUT_S)
    fresh = api.fetch(render.ref, TIMEOUT_S)
    with pytest.raises(ConflictError):
        api.delete(replace(fresh, ref=replace(fresh.ref, uid="another")), TIMEOUT_S)
    api.delete(fresh, TIMEOUT_S)
    with pytest.raises(GoneError):
        api.delete(fresh, TIMEOUT_S)


# --- lists ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(cluster: ControlPlane, api: Cluster) -> str:
    """A namespace of 620 renders, of which 40 have ended."""
    namespace = "adapters-many"
    makers = [Kube(cluster) for _ in range(6)]
    makers[0].make_namespace(namespace)

    def make(number: int) -> None:
        for each in range(number, 620, len(makers)):
            body = makers[number].create(namespace, f"r-{each:03}", {"jobID": f"job_{each}"})
            if each < 40:
                api.write_status(api.fetch(ref_of(body), TIMEOUT_S), ENDED, TIMEOUT_S)

    with ThreadPoolExecutor(len(makers)) as pool:
        list(pool.map(make, range(len(makers))))
    return namespace


def pages_of(api: Cluster, namespace: str | None, *, live_only: bool) -> list[Page]:
    pages = [api.list_page(namespace, live_only=live_only)]
    while pages[-1].next_page:
        pages.append(api.list_page(namespace, live_only=live_only, page=pages[-1].next_page))
    return pages


def names_in(pages: list[Page]) -> list[str]:
    return [body["metadata"]["name"] for page in pages for body in page.bodies]


def test_a_list_is_complete_over_its_pages(api: Cluster, many: str, render: Render) -> None:
    pages = pages_of(api, many, live_only=False)
    assert [len(page.bodies) for page in pages] == [500, 120]
    assert names_in(pages) == [f"r-{n:03}" for n in range(620)]
    assert len({page.resource_version for page in pages}) == 1
    assert pages[0].resource_version
    everywhere = names_in(pages_of(api, None, live_only=False))
    assert {*everywhere} >= {*names_in(pages), render.ref.name}
    assert pages_of(api, "no-such-namespace", live_only=False)[0].bodies == ()


def test_a_list_of_live_ones_leaves_out_what_has_ended(api: Cluster, many: str) -> None:
    pages = pages_of(api, many, live_only=True)
    assert names_in(pages) == [f"r-{n:03}" for n in range(40, 620)]
    assert len(pages) == 2


def test_a_list_that_took_too_long_says_start_over(
    cluster: ControlPlane, api: Cluster, many: str, render: Render
) -> None:
    """Etcd forgets the revision that the page stands on; the token is turned to one that no cache can answer."""
    page = api.list_page(many, live_only=False)
    assert page.next_page is not None
    token = json.loads(base64.b64decode(page.next_page + "=="))
    _compact(cluster, int(api.list_page(many, live_only=False).resource_version))
    token["rv"] = 1
    old = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    with pytest.raises(ExpiredListError):
        api.list_page(many, live_only=False, page=old)
    with pytest.raises(RefusedError):
        api.list_page(many, live_only=False, page="nonsense")


def _compact(cluster: ControlPlane, revision: int) -> None:
    url = f"http://127.0.0.1:{cluster._etcd_http_port}/v3/kv/compaction"
    answer = requests.post(url, json={"revision": str(revision)}, timeout=5)
    assert answer.ok, answer.text


# --- events, secrets, schema, lease ---------------------------------------------------------------


def test_an_event_is_made_once_and_seen_by_kubectl(api: Cluster, cluster: ControlPlane, render: Render) -> None:
    fields = {"type": "Warning", "reason": "RenderFailed", "note": "It failed."}
    event = event_body(render.ref, f"{render.ref.name}.1", fields, "sumerender-poller", "pod-1", NOW)
    api.create_event(NAMESPACE, event)
    with pytest.raises(ConflictError):
        api.create_event(NAMESPACE, event)
    shown = cluster.kubectl("get", "events", "-n", NAMESPACE, f"--field-selector=involvedObject.uid={render.ref.uid}")
    (line,) = shown.stdout.splitlines()[1:]
    for word in ("Warning", "RenderFailed", f"sumerender/{render.ref.name}", "It failed."):
        assert word in line
    described = cluster.kubectl("describe", "sumerender", render.ref.name, "-n", NAMESPACE).stdout
    assert "It failed." in described


def test_a_secret_is_read_decoded(api: Cluster, kube: Kube) -> None:
    kube.make_secret(NAMESPACE, "read-me", {"apiKey": "kéy\n", "other": ""})
    assert api.read_secret(NAMESPACE, "read-me") == {"apiKey": "kéy\n".encode(), "other": b""}
    kube.make_secret(NAMESPACE, "hollow", {})
    assert api.read_secret(NAMESPACE, "hollow") == {}
    with pytest.raises(GoneError):
        api.read_secret(NAMESPACE, "absent")


def test_the_crd_has_every_field_that_is_written(api: Cluster) -> None:
    schema = api.status_schema()
    assert schema is not None
    assert missing_fields(schema) == frozenset()
    older = deepcopy(dict(schema))
    del older["properties"]["polling"]["properties"]["streak"]
    assert missing_fields(older) >= {f"polling.streak.{name}" for name in ("kind", "count", "since")}
    assert set(to_body(FULL)) <= set(schema["properties"])


def test_a_crd_that_is_not_served_has_no_schema(api: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "GROUP", "absent.sume.com")
    assert api.status_schema() is None


def test_a_lease_is_made_and_renewed(api: Cluster, kube: Kube) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/controller"
    for holder, now in (("pod-1", NOW), ("pod-1", NOW + timedelta(seconds=10)), ("pod-2", NOW + timedelta(seconds=20))):
        api.renew_lease(NAMESPACE, "controller", holder, now, 30)
        spec = kube.request("GET", path).json()["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == (holder, 30)
        assert spec["renewTime"] == now.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    with pytest.raises(GoneError):
        api.renew_lease("absent", "controller", "pod-1", NOW, 30)


def test_ping(api: Cluster) -> None:
    api.ping()


# --- trouble --------------------------------------------------------------------------------------


def calls_on(api: Cluster, render: Render, timeout_s: float) -> dict[str, Callable[[], Any]]:
    """Every kind of call that is ever made."""
    fields = {"type": "Normal", "reason": "RenderQueued", "note": "It waits."}
    event = event_body(render.ref, f"{render.ref.name}.calls", fields, "sumerender-poller", "pod-1", NOW)
    return {
        "fetch": lambda: api.fetch(render.ref, timeout_s),
        "status write": lambda: api.write_status(render, FULL, timeout_s),
        "finalizer": lambda: api.set_finalizer(render, present=True, timeout_s=timeout_s),
        "delete": lambda: api.delete(render, timeout_s),
        "list": lambda: api.list_page(None, live_only=True),
        "event": lambda: api.create_event(NAMESPACE, event),
        "secret": lambda: api.read_secret(NAMESPACE, "read-me"),
        "openapi": api.status_schema,
        "lease": lambda: api.renew_lease(NAMESPACE, "other", "pod-1", NOW, 30),
        "version": api.ping,
    }


def _failure_of(call: Callable[[], Any]) -> tuple[float, ClusterError | None]:
    began_s = time.monotonic()
    try:
        call()
    except ClusterError as error:
        return time.monotonic() - began_s, error
    return time.monotonic() - began_s, None


def _all_at_once(calls: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, ClusterError | None]]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return dict(zip(calls, pool.map(_failure_of, calls.values()), strict=True))


def _is_plain(error: Exception) -> bool:
    return "0x" not in str(error) and len(str(error)) < 600 and "\n" not in str(error)


@pytest.mark.parametrize("bound", ["of the call", "of the settings"])
def test_a_hung_api_server_costs_one_time_out(
    cluster: ControlPlane, render: Render, bound: str, figures: Callable[[str], None]
) -> None:
    api = connected(cluster.kubeconfig, timeout_s=0.5)
    calls = calls_on(api, render, timeout_s=0.5 if bound == "of the call" else 60)
    with ThreadPoolExecutor(10) as pool:  # half of them will go over connections that are open
        list(pool.map(lambda _: api.ping(), range(20)))
    cluster.apiserver.pause()
    try:
        for _ in range(2):
            failures = _all_at_once(calls)
            for name, (seconds, error) in failures.items():
                assert isinstance(error, ClusterUnavailableError), name
                assert str(error) in (f"{name}: ReadTimeoutError", f"{name}: ConnectTimeoutError")
                assert seconds < 2.5, failures  # on a busy machine, too; nothing else ends these calls
            longest_s = max(seconds for seconds, _ in failures.values())
            figures(f"Kubernetes, hung API server, time-out 0.5 s: every call fails within {longest_s:.2f} s")
    finally:
        cluster.apiserver.resume()
    eventually(lambda: _failure_of(api.ping)[1] is None, within_s=10)


def test_no_api_server_at_all(cluster: ControlPlane, render: Render, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    port = cluster.url.rpartition(":")[2]
    kubeconfig.write_text(cluster.kubeconfig.read_text(encoding="utf-8").replace(f":{port}", ":1"), encoding="utf-8")
    for name, (seconds, error) in _all_at_once(calls_on(connected(kubeconfig), render, 5)).items():
        assert isinstance(error, ClusterUnavailableError), name
        assert str(error) == f"{name}: NewConnectionError"
        assert seconds < 2


def test_an_api_server_that_talks_nonsense(render: Render, tmp_path: Path) -> None:
    """A load balancer that answers in its own words is no API server, and a list of nothing is not what it said."""
    nonsense = (b"<html>", b"", b"[]", b"null", b'"text"', b"{", b"\xff")
    said = [b""]

    def answer(connection: Connection) -> None:
        while connection.read_request():
            connection.answer(said[0], "200 OK", "Content-Type: application/json")

    with Listener(answer) as listener:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": listener.url}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            ),
            encoding="utf-8",
        )
        api = connected(kubeconfig)
        calls = calls_on(api, render, 5)
        for said[0] in nonsense:
            for name in ("list", "openapi", "secret"):
                _seconds, error = _failure_of(calls[name])
                assert isinstance(error, ClusterUnavailableError), (name, said)
                assert _is_plain(error)
            with pytest.raises((ClusterUnavailableError, MalformedObjectError)):
                calls["fetch"]()
        for said[0] in (b"{}", b'{"items": null}', b'{"items": {}}'):
            with pytest.raises(ClusterUnavailableError, match="no list"):
                calls["list"]()


def test_an_account_without_rights(cluster: ControlPlane, render: Render, tmp_path: Path) -> None:
    cluster.kubectl("create", "serviceaccount", "nobody", "-n", NAMESPACE)
    token = cluster.kubectl("create", "token", "nobody", "-n", NAMESPACE).stdout.strip()
    api = connected(as_user(cluster.kubeconfig, tmp_path / "kubeconfig", token))
    allowed = {"version"}  # everybody who is known may ask for it
    failures = _all_at_once({k: v for k, v in calls_on(api, render, 5).items() if k not in allowed | {"openapi"}})
    for name, (_, error) in failures.items():
        assert isinstance(error, NotPermittedError), (name, error)
        assert str(error) == f"{name}: HTTP 403"
    api.ping()


def test_a_token_that_is_not_known(cluster: ControlPlane, render: Render, tmp_path: Path) -> None:
    api = connected(as_user(cluster.kubeconfig, tmp_path / "kubeconfig", "not-a-token"))
    for name, (_, error) in _all_at_once(calls_on(api, render, 5)).items():
        assert isinstance(error, NotPermittedError), (name, error)
        assert str(error) == f"{name}: HTTP 401"


def test_proxy_variables_are_for_sume_only(cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    with Listener(lambda connection: connection.hang()) as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        connected(cluster.kubeconfig).ping()
        assert proxy.connections == 0


@pytest.mark.parametrize("content", [None, "", "{", "[]", "apiVersion: v1\nkind: Config\n"])
def test_a_kubeconfig_that_is_none(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="KUBECONFIG"):
        connected(path)


def test_a_server_that_came_back_needs_no_new_client(cluster: ControlPlane, api: Cluster, render: Render) -> None:
    api.ping()
    cluster.restart_apiserver()
    eventually(lambda: _failure_of(api.ping)[1] is None, within_s=20)
    assert api.fetch(render.ref, TIMEOUT_S) == render


def test_calls_per_second(api: Cluster, render: Render, figures: Callable[[str], None]) -> None:
    began_s = time.perf_counter()
    for number in range(30):
        render = api.write_status(render, replace(FULL, message=f"{number}"), TIMEOUT_S)
    figures(f"Kubernetes, one thread: {30 / (time.perf_counter() - began_s):.0f} status writes/s")
    assert api.fetch(render.ref, TIMEOUT_S).status.message == "29"


def test_refs_with_odd_names_reach_no_other_path(api: Cluster) -> None:
    for name in ("../../../api/v1/secrets", "a?b", "a#b", "%2e%2e", "a b", "é"):
        with pytest.raises((GoneError, RefusedError)):
            api.fetch(Ref(NAMESPACE, name, "uid"), TIMEOUT_S)
