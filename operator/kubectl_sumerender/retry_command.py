"""`retry`: what did not succeed is asked for again, as a new object with a new key. The old one stays as it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_sumerender import API_VERSION, KIND, RETRY_OF
from kubectl_sumerender.change_commands import YES
from kubectl_sumerender.changing import Verb, change_all
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.errors import ExistsError
from kubectl_sumerender.naming import is_object_name, retry_name
from kubectl_sumerender.render import Render

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api

OWN_PREFIX: Final = "render.sume.com/"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
LONGEST_KEY: Final = 253
# Decisions about the old object, not part of what is to be rendered.
_NOT_COPIED: Final = ("suspend", "cancel")


@click.command("retry")
@choice_options()
@YES
@connection_options
def retry(connection: Connection, choice: Choice, yes: bool) -> int:
    """Ask Sume again for NAME..., -l SELECTOR or --state that ended without success; each costs what a new one costs.

    NAME becomes a new render NAME-r2 (NAME-r2 becomes NAME-r3) with a new idempotency key and the same labels, so
    `wait -l` goes on with it. Retrying twice makes one.

    \b
    Examples:
      kubectl sumerender retry intro
      kubectl sumerender retry -l render.sume.com/batch=july --state Failed
    """
    verb = Verb(name="retry", skip=_skip, act=_retry, warning="Each may cost credits.")
    return change_all(connection, choice, verb, yes=yes)


def _skip(render: Render) -> str:
    if not render.terminal:
        return "it has not ended; cancel it first"
    if render.is_success:
        return "it has succeeded"
    if render.follows:
        return "it follows a job that somebody else asked for, so there is no request to repeat"
    if not is_object_name(retry_name(render.name)):
        return f"{retry_name(render.name)} is too long for a name; make a new render by hand"
    return ""


def _retry(api: "Api", render: Render) -> str:
    from kubectl_sumerender import renders

    wanted = successor(renders.get(api, render.namespace, render.name))
    name = wanted["metadata"]["name"]
    try:
        renders.create(api, render.namespace, wanted)
    except ExistsError:
        there = renders.get(api, render.namespace, name)
        if ((there.get("metadata") or {}).get("annotations") or {}).get(RETRY_OF) == render.name:
            return f"was retried already, as {name}"
        raise ExistsError(
            f"retry {render.ref}: there is another render {name} already, which does not repeat it; delete it, or make "
            "the new render by hand"
        ) from None
    return f"is asked for again as {name}"


def successor(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object that repeats another one. The same for the same object, so that doing it twice makes one."""
    metadata, spec = body["metadata"], body["spec"]
    name = retry_name(metadata["name"])
    key = _next_key(spec["request"].get("idempotencyKey"), metadata["name"], name, metadata["uid"])
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        # The operator's notes about the old job would make the new object follow it; kubectl's would undo the new name.
        if key == f"{OWN_PREFIX}source" or not (key.startswith(OWN_PREFIX) or key == LAST_APPLIED)
    }
    made: dict[str, Any] = {"name": name, "namespace": metadata["namespace"]}
    if metadata.get("labels"):
        made["labels"] = dict(metadata["labels"])
    made["annotations"] = {**annotations, RETRY_OF: metadata["name"]}
    kept = {field: value for field, value in spec.items() if field not in _NOT_COPIED}
    kept["request"] = {**spec["request"], "idempotencyKey": key}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": made, "spec": kept}


def _next_key(old: str | None, name: str, next_name: str, uid: str) -> str:
    """july/intro -> july/intro-r2. Without one that ends like this the uid makes it new, and the same at every try."""
    if old and old.endswith(f"/{name}"):
        following = f"{old.removesuffix(name)}{next_name}"
        if len(following) <= LONGEST_KEY:
            return following
    return f"{uid}/{next_name}"[:LONGEST_KEY]
