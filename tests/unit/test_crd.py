"""The CRD says of every field what it is, and takes every field that the operator writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sume_operator.core import render
from sume_operator.core.status import missing_fields, written_fields

CRD: Any = yaml.safe_load(Path(__file__).parents[2].joinpath("crds/sumerenders.yaml").read_text(encoding="utf-8"))
VERSION: Any = CRD["spec"]["versions"][0]
SCHEMA: Any = VERSION["schema"]["openAPIV3Schema"]


def _walk(path: str, schema: Any) -> Iterator[tuple[str, Any]]:
    yield path, schema
    for name, child in (schema.get("properties") or {}).items():
        yield from _walk(f"{path}.{name}", child)
    if "items" in schema:
        yield from _walk(f"{path}[]", schema["items"])


FIELDS = dict(_walk("", SCHEMA))


def _at(json_path: str) -> Any:
    path = json_path.split("[?(", maxsplit=1)[0].replace("[0]", "[]").removesuffix("()")
    return FIELDS.get(path) or (path.startswith(".metadata.") and {})


@pytest.mark.parametrize("path", list(FIELDS))
def test_every_field_is_described(path: str) -> None:
    description = FIELDS[path].get("description", "")
    assert len(description) > 8, f"{path} has no description"
    assert description[-1] in ".:", f"the description of {path} is no sentence"


@pytest.mark.parametrize("path", [path for path, schema in FIELDS.items() if path.startswith(".status.")])
def test_the_status_is_bounded(path: str) -> None:
    schema = FIELDS[path]
    if schema.get("type") == "string" and "enum" not in schema and schema.get("format") != "date-time":
        assert schema.get("maxLength"), f"{path} has no maxLength"
    if schema.get("type") == "array":
        assert schema.get("maxItems"), f"{path} has no maxItems"


@pytest.mark.parametrize("column", VERSION["additionalPrinterColumns"], ids=lambda column: str(column["name"]))
def test_columns_show_fields_that_exist(column: Any) -> None:
    assert column["description"]
    assert _at(column["jsonPath"]) is not False
    assert _at(column["jsonPath"]) is not None


def test_selectable_fields_exist() -> None:
    types = {field["jsonPath"]: _at(field["jsonPath"])["type"] for field in VERSION["selectableFields"]}
    assert types == {".status.terminal": "boolean", ".status.state": "string", ".status.jobID": "string"}


@pytest.mark.parametrize("path", list(FIELDS))
def test_no_description_fell_apart(path: str) -> None:
    """A comma in an unquoted text of a flow mapping makes a key of what follows it."""
    assert None not in FIELDS[path].values()


def test_it_takes_every_field_that_is_written() -> None:
    assert missing_fields(SCHEMA["properties"]["status"]) == frozenset()
    assert len(written_fields()) > 20


def test_an_older_one_is_found_out() -> None:
    older: Any = {"properties": {name: {} for name in SCHEMA["properties"]["status"]["properties"] if name != "apiURL"}}
    assert "apiURL" in missing_fields(older)


def test_it_is_the_resource_that_the_operator_asks_for() -> None:
    names = CRD["spec"]["names"]
    assert (CRD["spec"]["group"], VERSION["name"]) == (render.GROUP, render.VERSION)
    assert (names["plural"], names["kind"]) == (render.PLURAL, render.KIND)
