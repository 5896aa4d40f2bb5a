"""Entries -> SumeRenders, as text for `kubectl apply -f -`; and whether an object is what an entry would make."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_sumerender import API_VERSION, BATCH_LABEL, KIND, SOURCE
from kubectl_sumerender.entries import Entry

# Anything else is quoted: kubectl's parser reads some texts as numbers or booleans (1e3, y) that Python's writes plain.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9./_-]{3,}")


def manifest(entry: Entry, *, batch: str, namespace: str | None) -> dict[str, Any]:
    """The object of an entry."""
    metadata: dict[str, Any] = {"name": entry.name}
    if namespace:
        metadata["namespace"] = namespace
    if batch:
        metadata["labels"] = {BATCH_LABEL: batch}
    metadata["annotations"] = {SOURCE: entry.source}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": _spec(entry, batch)}


def difference(body: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """How an object that has the name already differs from the one that would be made; empty if it is the same."""
    there, ours = body.get("spec") or {}, wanted["spec"]
    if bool(there.get("jobID")) != bool(ours.get("jobID")):
        return "follows a job" if there.get("jobID") else "asks for a new job"
    if there.get("jobID") != ours.get("jobID"):
        return f"follows job {there.get('jobID')}"
    for name in ("model", "endpoint", "arguments", "idempotencyKey"):
        mine, other = (((spec.get("request") or {}).get(name) or None) for spec in (ours, there))
        if mine != other:
            return "has other arguments" if name == "arguments" else f"has {name} {other}"
    return ""


def to_yaml(bodies: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """One document after the other."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that is not plainly a word."""

    Dumper.add_representer(str, _text)
    for body in bodies:
        yield "---\n" + yaml.dump(body, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def to_json(bodies: Iterable[Mapping[str, Any]]) -> str:
    """One List."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)}, indent=2, ensure_ascii=False)


def _spec(entry: Entry, batch: str) -> dict[str, Any]:
    if entry.job:
        return {"jobID": entry.job}
    request: dict[str, Any] = {"model": entry.model}
    if entry.endpoint:
        request["endpoint"] = entry.endpoint
    if entry.arguments:
        request["arguments"] = dict(entry.arguments)
    request["idempotencyKey"] = f"{batch}/{entry.name}"
    return {"request": request}


def _text(dumper: Any, value: str) -> Any:
    style = None if _PLAIN.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
