"""A file of job ids, a CSV or JSON lines -> records, with the line each begins on. Their content: see entries.py."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Final

JSON_SUFFIX: Final = ":json"
_HEADERS: Final = frozenset({"name", "model", "endpoint", "jobid", "prompt"})
_BY_ENDING: Final = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


class Format(StrEnum):
    """What a file holds."""

    IDS = "ids"
    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One render to be: `row` counts records from 1, `line` is where it begins in the file."""

    row: int
    line: int
    fields: dict[str, Any]


def read_records(data: bytes, name: str, form: Format | None) -> tuple[list[Record], list[Problem]]:
    """The records of a file, or what keeps it from being read. `name` tells the format where `form` does not."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return [], [Problem(line=line, text="not UTF-8; save the file as UTF-8")]
    records: list[Record] = []
    problems: list[Problem] = []
    for line, found in _READERS[form or guess(text, name)](text):
        if isinstance(found, str):
            problems.append(Problem(line=line, text=found))
        else:
            # A record that cannot be read still counts as a row: the others must not change their names with it.
            records.append(Record(row=len(records) + len(problems) + 1, line=line, fields=found))
    return records, problems


def guess(text: str, name: str) -> Format:
    """By the ending of the name; else by the first line."""
    ending = _BY_ENDING.get(PurePath(name).suffix.lower())
    if ending:
        return Format(ending)
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    if first.startswith("{"):
        return Format.JSONL
    if any(mark in first for mark in ",;\t") or first.strip('"').lower() in _HEADERS:
        return Format.CSV
    return Format.IDS


_Found = Iterator[tuple[int, dict[str, Any] | str]]


def _ids(text: str) -> _Found:
    for line, content in enumerate(io.StringIO(text, newline=None), start=1):
        job = content.strip()
        if job and not job.startswith("#"):
            yield line, {"jobID": job}


def _jsonl(text: str) -> _Found:
    for line, content in enumerate(text.split("\n"), start=1):  # not splitlines: U+2028 may stand in a JSON text
        if not content.strip():
            continue
        try:
            value = _parse_json(content)
        except ValueError as error:
            yield line, f"no JSON: {_reason(error)}"
            continue
        if isinstance(value, dict):
            yield line, value
        else:
            yield line, 'each line holds one JSON object, such as {"prompt": "a lighthouse"}'


def _csv(text: str) -> _Found:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] | None = None
    begins = 1
    try:
        for row in reader:
            line, begins = begins, reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = [cell.strip() for cell in row]
                fault = _fault_of_header(header)
                if fault:
                    yield line, fault
                    return
                continue
            yield line, _cells(header, row)
    except csv.Error as error:
        yield begins, f"no CSV: {error}. A text with commas, quotes or line breaks stands in quotes, its quotes doubled"
    if header is None:
        yield 1, "the file is empty; its first line names the columns, such as name,prompt"


def _cells(header: list[str], row: list[str]) -> dict[str, Any] | str:
    """One row as fields, without its empty cells; or what is wrong with it."""
    if len(row) != len(header):
        return f"{len(row)} cells, but the first line names {len(header)} columns; a text with commas stands in quotes"
    fields: dict[str, Any] = {}
    for column, cell in zip(header, row, strict=True):
        if not cell.strip():
            continue
        if not column.endswith(JSON_SUFFIX):
            fields[column] = cell
            continue
        try:
            fields[column.removesuffix(JSON_SUFFIX)] = _parse_json(cell)
        except ValueError as error:
            return f"column {column}: no JSON: {_reason(error)}; a text needs its own quotes there"
    return fields


def _fault_of_header(header: list[str]) -> str:
    plain = [column.removesuffix(JSON_SUFFIX) for column in header]
    if "" in plain:
        return f"column {plain.index('') + 1} has no name; the first line names each"
    twice = next((column for place, column in enumerate(plain) if column in plain[:place]), None)
    return f"column {twice} is there twice" if twice else ""


def _delimiter(text: str) -> str:
    """A comma; where the first line has none, what spreadsheets write instead of it."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return next((mark for mark in ",;\t" if mark in first), ",")


def _parse_json(text: str) -> Any:
    """Strictly: no NaN, which Kubernetes does not take, and no key twice, of which one would be lost."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(items)
    if len(made) != len(items):
        raise ValueError("a key is there twice")
    return made


def _reason(error: ValueError) -> str:
    return f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


_READERS: Final = {Format.IDS: _ids, Format.CSV: _csv, Format.JSONL: _jsonl}
