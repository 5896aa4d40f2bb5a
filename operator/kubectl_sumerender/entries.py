"""Records -> entries that are known to be right: every rule that needs no cluster, for the whole file."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_sumerender.naming import object_name, row_name, what_is_wrong_with_job_id, what_is_wrong_with_name
from kubectl_sumerender.reading import Problem, Record

ENDPOINTS: Final = ("VideoRouter", "ImageRouter", "ModelRuns")
# The operator's own; the CRD refuses them among the arguments.
RESERVED: Final = ("mode", "webhook_url", "wait_timeout_seconds")
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_OWN: Final = ("name", "model", "endpoint", "jobID")
_PREFIX: Final = "arguments."


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One render to be made. Either `job` (follow it) or `model` (ask for a new one) is set."""

    line: int
    name: str
    source: str
    job: str = ""
    model: str = ""
    endpoint: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


class _WrongError(ValueError):
    """What is wrong with a record."""


def build_entries(records: Iterable[Record], *, batch: str, model: str) -> tuple[list[Entry], list[Problem]]:
    """All entries, and all problems. `model`: for rows that name none. Use no entry if there is a problem."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    first_line: dict[str, int] = {}
    for record in records:
        try:
            entry = _entry(record, batch, model)
        except _WrongError as error:
            problems.append(Problem(line=record.line, text=str(error)))
            continue
        if entry.name in first_line:
            text = (
                f"{entry.source!r} gives the name {entry.name}, as line {first_line[entry.name]} does; names are unique"
            )
            problems.append(Problem(line=record.line, text=text))
        first_line.setdefault(entry.name, record.line)
        entries.append(entry)
    return entries, problems


def what_is_wrong_with_model(model: str) -> str:
    """Why it cannot be a model id; empty if it can."""
    if len(model) <= 128 and _MODEL.fullmatch(model):
        return ""
    return f"{model[:60]!r} is no model id; they look like sume/avatar-video/v1.0"


def _entry(record: Record, batch: str, default_model: str) -> Entry:
    own = {name: _own_text(record.fields, name) for name in _OWN}
    arguments = _arguments(record.fields)
    if own["jobID"]:
        return _following(record, own, arguments)
    model = own["model"] or default_model
    if not model:
        raise _WrongError("no model; fill the column model, or give --model for rows without one")
    _check(what_is_wrong_with_model(model))
    if own["endpoint"] and own["endpoint"] not in ENDPOINTS:
        raise _WrongError(f"there is no endpoint {own['endpoint'][:60]!r}; there are {', '.join(ENDPOINTS)}")
    if not batch:
        raise _WrongError("this asks for a new job; give --batch NAME, so that importing it twice pays once")
    if own["name"]:
        _check(what_is_wrong_with_name(own["name"]))
    return Entry(
        line=record.line,
        name=object_name(own["name"]) if own["name"] else row_name(batch, record.row),
        source=own["name"] or f"{batch} row {record.row}",
        model=model,
        endpoint=own["endpoint"],
        arguments=arguments,
    )


def _following(record: Record, own: Mapping[str, str], arguments: Mapping[str, Any]) -> Entry:
    _check(what_is_wrong_with_job_id(own["jobID"]))
    surplus = [name for name in ("model", "endpoint") if own[name]] + list(arguments)
    if surplus:
        raise _WrongError(f"jobID follows a job that exists; leave {', '.join(surplus)[:100]} empty, or jobID")
    if own["name"]:
        _check(what_is_wrong_with_name(own["name"]))
    source = own["name"] or own["jobID"]
    return Entry(line=record.line, name=object_name(source), source=source, job=own["jobID"])


def _own_text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _WrongError(f"{name} must be a text, and is {value!r:.60}")
    return value.strip()


def _arguments(fields: Mapping[str, Any]) -> dict[str, Any]:
    """All that is no column of our own; `arguments.x` is x, and an object `arguments` (JSON) is all of them."""
    whole = fields.get("arguments", {})
    if not isinstance(whole, dict):
        raise _WrongError("arguments must be a JSON object; in a CSV give each a column, or call it arguments:json")
    rest = {
        name.removeprefix(_PREFIX): value for name, value in fields.items() if name not in _OWN and name != "arguments"
    }
    twice = sorted(whole.keys() & rest.keys())
    if twice:
        raise _WrongError(f"{twice[0]} is given twice: by itself and in arguments")
    arguments = {name: value for name, value in {**whole, **rest}.items() if value is not None}
    misspelt = next((name for name in arguments if name.lower() in ("jobid", "job_id", "model", "endpoint")), None)
    if misspelt is not None:
        raise _WrongError(f"{misspelt!r} cannot be an argument; the columns are called {', '.join(_OWN)}")
    reserved = next((name for name in RESERVED if name in arguments), None)
    if reserved is not None:
        raise _WrongError(f"{reserved} is the operator's own; leave it out")
    return arguments


def _check(fault: str) -> None:
    if fault:
        raise _WrongError(fault)
