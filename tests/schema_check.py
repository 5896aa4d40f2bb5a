"""A small reader of the part of OpenAPI that the CRD uses: says where a value does not fit its schema."""

import re
from collections.abc import Iterator
from typing import Any, Final

_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
}
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def misfits(value: Any, schema: Any, path: str = "status") -> list[str]:
    """Every place where `value` breaks `schema`; a field that the schema does not know is one, too."""
    expected = schema["type"]
    if not isinstance(value, _TYPES[expected]) or (expected == "integer" and isinstance(value, bool)):
        return [f"{path}: not of type {expected}"]
    return [f"{path}: {text}" if not text.startswith(path) else text for text in _broken_rules(value, schema, path)]


def _broken_rules(value: Any, schema: Any, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{value!r} is none of {schema['enum']}"
    match value:
        case str():
            yield from _string(value, schema)
        case bool():
            return
        case int():
            limit = _RANGES[schema.get("format", "int64")]
            if not -limit <= value < limit or value < schema.get("minimum", value):
                yield f"{value} is out of range"
        case list():
            yield from _list(value, schema, path)
        case dict():
            properties = schema.get("properties", {})
            yield from (f"{name} is missing" for name in schema.get("required", ()) if name not in value)
            for name, child in value.items():
                if name not in properties:
                    yield f"{name} is not in the schema"
                else:
                    yield from misfits(child, properties[name], f"{path}.{name}")


def _string(value: str, schema: Any) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{len(value)} characters are more than {schema['maxLength']}"
    if len(value) < schema.get("minLength", 0):
        yield "is too short"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{value!r} does not match {schema['pattern']}"
    if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
        yield f"{value!r} is no time"


def _list(value: list[Any], schema: Any, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{len(value)} items are more than {schema['maxItems']}"
    keys = (
        [tuple(item.get(key) for key in schema["x-kubernetes-list-map-keys"]) for item in value]
        if _is_map(schema)
        else []
    )
    if len(set(keys)) < len(keys):
        yield "two items have the same key"
    for index, item in enumerate(value):
        yield from misfits(item, schema["items"], f"{path}[{index}]")


def _is_map(schema: Any) -> bool:
    return bool(schema.get("x-kubernetes-list-type") == "map")
