"""Renders at the API server: list page by page, get, create, patch, delete."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_sumerender import API_VERSION, PLURAL
from kubectl_sumerender.api import ANSWER_S, MERGE, Api, Body, pairs
from kubectl_sumerender.errors import ExpiredError, UnavailableError
from kubectl_sumerender.render import Render, read_render

PAGE: Final = 500
_BASE: Final = f"/apis/{API_VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list. `fresh`: it begins a list (again), so whatever was seen before it is void."""

    bodies: list[Body]
    resource_version: str
    fresh: bool


def pages(api: Api, *, selector: str = "", field_selector: str = "", answer_s: float = ANSWER_S) -> Iterator[Page]:
    """All renders of the Api's namespace, as the server sent them; page by page, to stay lean.

    A list that takes too long to be continued is begun again, at most three times, with `fresh` on its first page.
    """
    expired = 0
    token, fresh = "", True
    while True:
        try:
            page, token = _page(api, selector, field_selector, token, answer_s)
        except ExpiredError as error:
            expired += 1
            if expired > 3:
                raise UnavailableError(f"{error}: the list takes too long; try again, or choose fewer") from None
            token, fresh = "", True
            continue
        yield Page(bodies=page["items"], resource_version=_version(page), fresh=fresh)
        fresh = False
        if not token:
            return


def list_bodies(api: Api, *, selector: str = "", field_selector: str = "") -> list[Body]:
    """All of them at once, whole: for few."""
    found: list[Body] = []
    for page in pages(api, selector=selector, field_selector=field_selector):
        found = [*([] if page.fresh else found), *page.bodies]
    return found


def list_renders(
    api: Api, *, selector: str = "", field_selector: str = "", answer_s: float = ANSWER_S
) -> tuple[list[Render], str]:
    """All of them as small values, and the resourceVersion from which a watch goes on."""
    found: list[Render] = []
    version = ""
    for page in pages(api, selector=selector, field_selector=field_selector, answer_s=answer_s):
        if page.fresh:
            found = []
        found += map(read_render, page.bodies)
        version = page.resource_version
    return found, version


def get(api: Api, namespace: str, name: str) -> Body:
    """One, whole. NotFoundError if it is not there."""
    return api.request(f"get render {namespace}/{name}", "GET", _path(namespace, name))


def create(api: Api, namespace: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Body:
    """Make it; ExistsError if there is one of that name. `dry_run`: all checks of the server, and nothing made."""
    query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
    what = f"create render {namespace}/{body['metadata']['name']}"
    return api.request(what, "POST", _path(namespace), query=query, body=dict(body))


def patch(api: Api, render: Render, change: Mapping[str, Any]) -> Body:
    """A merge patch of this very object: one made anew under its name is refused."""
    metadata = {**change.get("metadata", {}), "uid": render.uid}
    body = {**change, "metadata": metadata}
    what = f"change render {render.ref}"
    return api.request(what, "PATCH", _path(render.namespace, render.name), body=body, content_type=MERGE)


def delete(api: Api, render: Render) -> Body:
    """Delete this very object."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": render.uid}}
    return api.request(f"delete render {render.ref}", "DELETE", _path(render.namespace, render.name), body=body)


def _page(api: Api, selector: str, field_selector: str, token: str, answer_s: float) -> tuple[Body, str]:
    query = pairs(
        [("limit", PAGE), ("labelSelector", selector), ("fieldSelector", field_selector), ("continue", token)]
    )
    what = f"list renders in {api.where}"
    body = api.request(what, "GET", _path(api.namespace), query=query, answer_s=answer_s)
    if not isinstance(body.get("items"), list):
        raise UnavailableError(f"{what}: the answer is no list")  # unknown is not empty
    return body, str((body.get("metadata") or {}).get("continue") or "")


def _version(page: Body) -> str:
    return str((page.get("metadata") or {}).get("resourceVersion") or "")


def _path(namespace: str | None, name: str = "") -> str:
    parts: Iterable[str] = (_BASE, f"namespaces/{namespace}" if namespace else "", PLURAL, name)
    return "/".join(part for part in parts if part)
