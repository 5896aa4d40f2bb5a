"""`why`: gathers what Kubernetes knows of one render, and says it with an answer that can be acted on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_sumerender import API_VERSION, PLURAL, screen
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.errors import NOTHING_MATCHED, OK, ApiError, ForbiddenError, NotFoundError, WrongUseError, clean
from kubectl_sumerender.render import parse_time, read_render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api
    from kubectl_sumerender.why import Answer, Heartbeat, Situation

LEASE: Final = "sume-operator-controller"
_LEASES: Final = "/apis/coordination.k8s.io/v1"
LAST_EVENTS: Final = 8
NEIGHBOURS: Final = 200


@click.command()
@click.argument("name")
@click.option(
    "--operator-namespace", metavar="NAME", default="", help="Where the operator runs, if it cannot be found."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: for scripts.")
@connection_options
def why(connection: Connection, name: str, operator_namespace: str, output: str) -> int:
    """Say why a render waits, or how it ended; what that means, and what to do.

    \b
    Example:
      kubectl sumerender why intro
      kubectl sumerender why intro -n studio-a -o json
    """
    from kubectl_sumerender import renders
    from kubectl_sumerender.why import answer

    if connection.all_namespaces:
        raise WrongUseError("a name is in one namespace: give -n NAMESPACE instead of -A")
    api = connection.open()
    try:
        body = renders.get(api, api.namespace or "default", name)
    except NotFoundError as error:
        screen.tell(f"{error}. See what there is: kubectl sumerender list -A")
        return NOTHING_MATCHED
    situation = _gathered(api, body, operator_namespace)
    found = answer(situation)
    if output == "json":
        screen.say_json(_as_json(situation, found))
    else:
        for line in _lines(situation, found):
            screen.say(line)
    return OK


def _gathered(api: "Api", body: Mapping[str, Any], operator_namespace: str) -> "Situation":
    from kubectl_sumerender.why import Situation

    render = read_render(body)
    return Situation(
        body=body,
        now=_server_time(api),
        heartbeats=_heartbeats(api, operator_namespace),
        neighbours_touched=bool(render.reason) or _neighbours_touched(api, render.namespace),
        events=_events(api, render.namespace, render.uid),
        operator_namespace=operator_namespace,
    )


def _server_time(api: "Api") -> datetime:
    """The API server's clock, as it dates a review that it keeps nowhere; this machine's where it does not say."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        review = api.request("ask for the time", "POST", path, body=body)
    except ApiError:
        review = {}
    told = (review.get("metadata") or {}).get("creationTimestamp")
    return parse_time(str(told or "")) or datetime.now(UTC)


def _heartbeats(api: "Api", operator_namespace: str) -> "list[Heartbeat] | None":
    """The Leases of controllers, anywhere or where it was said; None where they may not be read."""
    from kubectl_sumerender.why import Heartbeat

    place = f"/namespaces/{operator_namespace}" if operator_namespace else ""
    query = {"fieldSelector": f"metadata.name={LEASE}"}
    try:
        items = api.request("list leases", "GET", f"{_LEASES}{place}/leases", query=query).get("items") or []
    except ForbiddenError:
        if not operator_namespace:
            return None
        try:
            items = [api.request("get lease", "GET", f"{_LEASES}{place}/leases/{LEASE}")]
        except ForbiddenError:
            return None
        except NotFoundError:
            items = []
    found = []
    for item in items:
        metadata, spec = item.get("metadata") or {}, item.get("spec") or {}
        found.append(
            Heartbeat(
                namespace=str(metadata.get("namespace") or ""),
                renewed=parse_time(str(spec.get("renewTime") or "")),
                duration_s=int(spec.get("leaseDurationSeconds") or 0),
            )
        )
    return found


def _neighbours_touched(api: "Api", namespace: str) -> bool:
    """Whether any other render of the namespace has a status: then somebody watches it."""
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"
    items = api.request("list renders", "GET", path, query={"limit": NEIGHBOURS}).get("items") or []
    return any((item.get("status") or {}).get("conditions") for item in items)


def _events(api: "Api", namespace: str, uid: str) -> Sequence[Mapping[str, Any]]:
    """The last events about this very object, oldest first; none where they may not be read."""
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    try:
        items = api.request("list events", "GET", path, query={"fieldSelector": f"regarding.uid={uid}"}).get("items")
    except ApiError:
        return ()
    return sorted(items or (), key=_time_of_event)[-LAST_EVENTS:]


def _time_of_event(event: Mapping[str, Any]) -> str:
    return str(event.get("eventTime") or (event.get("metadata") or {}).get("creationTimestamp") or "")


def _lines(situation: "Situation", found: "Answer") -> list[str]:
    render = read_render(situation.body)
    lines = [f"{render.ref}   {screen.paint(render.state)}   {found.reason}"]
    lines += [f"  {clean(found.message)}"] if found.message else []
    lines += ["", "What it means", f"  {found.meaning}", "", "What to do", f"  {found.do}"]
    lines += [f"    {command}" for command in found.commands]
    lines += ["", *(f"Note: {note}" for note in found.notes)]
    lines += screen.columns([["Job", render.job or "none yet"], *_looks(situation), ["Controller", found.controller]])
    conditions = (situation.body.get("status") or {}).get("conditions") or []
    if conditions:
        rows = [[f"  {each.get(k, '')}" for k in ("type", "status", "reason", "message")] for each in conditions]
        lines += ["", "Conditions", *(f"  {line}" for line in screen.columns(rows))]
    if situation.events:
        rows = [
            [_ago(situation, _time_of_event(e)), *(str(e.get(k) or "") for k in ("type", "reason", "note"))]
            for e in situation.events
        ]
        lines += ["", "Last events", *(f"  {line}" for line in screen.columns(rows))]
    return lines


def _looks(situation: "Situation") -> list[list[str]]:
    polling = (situation.body.get("status") or {}).get("polling") or {}
    last, following = str(polling.get("lastPollTime") or ""), str(polling.get("nextPollTime") or "")
    rows = [["Last look", f"{_ago(situation, last)} ({last})" if last else "Sume has not answered a look yet"]]
    instant = parse_time(following)
    if instant is not None:
        ahead_s = (instant - situation.now).total_seconds()
        rows.append(["Next look", f"in {screen.age(ahead_s)} ({following})" if ahead_s > 0 else f"due ({following})"])
    else:
        rows.append(["Next look", "none is planned"])
    return rows


def _ago(situation: "Situation", text: str) -> str:
    instant = parse_time(text)
    return f"{screen.age((situation.now - instant).total_seconds())} ago" if instant else ""


def _as_json(situation: "Situation", found: "Answer") -> dict[str, Any]:
    render, status = read_render(situation.body), situation.body.get("status") or {}
    polling = status.get("polling") or {}
    return {
        "namespace": render.namespace,
        "name": render.name,
        "state": render.state,
        "terminal": render.terminal,
        "reason": found.reason,
        "message": found.message,
        "meaning": found.meaning,
        "todo": found.do,
        "commands": list(found.commands),
        "notes": list(found.notes),
        "jobID": render.job,
        "lastPollTime": polling.get("lastPollTime"),
        "nextPollTime": polling.get("nextPollTime"),
        "controller": found.controller,
        "conditions": status.get("conditions") or [],
        "events": [
            {
                "time": _time_of_event(each),
                "type": each.get("type"),
                "reason": each.get("reason"),
                "note": each.get("note"),
            }
            for each in situation.events
        ],
    }
