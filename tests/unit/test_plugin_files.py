"""What is read out of a file: ids, CSV and JSON lines, with the line of everything that is wrong."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_sumerender.entries import Entry, build_entries
from kubectl_sumerender.reading import Format, guess, read_records

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=80)


def _entries(text: str | bytes, *, name: str = "x.csv", batch: str = "july", model: str = "m") -> list[Entry]:
    data = text if isinstance(text, bytes) else text.encode()
    records, problems = read_records(data, name, None)
    entries, more = build_entries(records, batch=batch, model=model)
    assert not [*problems, *more]
    return entries


def _problems(
    text: str | bytes, *, name: str = "x.csv", batch: str = "july", model: str = "m"
) -> list[tuple[int, str]]:
    data = text if isinstance(text, bytes) else text.encode()
    records, problems = read_records(data, name, None)
    _, more = build_entries(records, batch=batch, model=model)
    return sorted((problem.line, problem.text) for problem in [*problems, *more])


def test_a_csv_with_all_that_a_csv_can_hold() -> None:
    text = (
        "\ufeffname,prompt,duration:json,model\r\n"
        '"shot 1","a ""dog"", running\r\nin the rain",5,\r\n'
        "\r\n"
        ",夜の港,,sume/other\r\n"
    )
    first, second = _entries(text)
    assert (first.line, first.source, first.model) == (2, "shot 1", "m")
    assert first.arguments == {"prompt": 'a "dog", running\r\nin the rain', "duration": 5}
    assert (second.line, second.name, second.source, second.model) == (5, "july-0002", "july row 2", "sume/other")
    assert second.arguments == {"prompt": "夜の港"}


@given(st.lists(_TEXTS.filter(str.strip), min_size=1, max_size=8))
def test_every_prompt_comes_through_a_csv_as_it_was(prompts: list[str]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["prompt", "n:json"], *([prompt, str(n)] for n, prompt in enumerate(prompts))])
    entries = _entries(file.getvalue())
    assert [entry.arguments for entry in entries] == [{"prompt": p, "n": n} for n, p in enumerate(prompts)]


@given(st.lists(_TEXTS, min_size=1, max_size=8))
def test_every_prompt_comes_through_json_lines_as_it_was(prompts: list[str]) -> None:
    text = "\n".join(json.dumps({"prompt": prompt}, ensure_ascii=False) for prompt in prompts)
    assert [entry.arguments["prompt"] for entry in _entries(text, name="x.jsonl")] == prompts


def test_ids_with_comments_and_blank_lines() -> None:
    entries = _entries("# ours\n\n  job_A  \r\njob_a\n", name="stdin", batch="")
    assert [(entry.line, entry.job, entry.source) for entry in entries] == [
        (3, "job_A", "job_A"),
        (4, "job_a", "job_a"),
    ]
    assert len({entry.name for entry in entries}) == 2


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.csv", "prompt\nx", "csv"),
        ("a.jsonl", "", "jsonl"),
        ("a.txt", "job_1\njob_2", "ids"),
        ("a.txt", "# comment\nname,prompt", "csv"),
        ("stdin", '{"prompt": "x"}', "jsonl"),
        ("stdin", "prompt\nx", "csv"),
        ("stdin", "jobID\njob_1", "csv"),
        ("stdin", "job_1", "ids"),
    ],
)
def test_the_format_is_seen(name: str, text: str, form: str) -> None:
    assert guess(text, name) == Format(form)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_what_spreadsheets_write_instead_of_commas(mark: str) -> None:
    (entry,) = _entries(f"name{mark}prompt\nx{mark}a, b\n")
    assert entry.arguments == {"prompt": "a, b"}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name,prompt\nok,x\n../etc/passwd,x\n", 3, "slash"),
        ("name,prompt\na,x\nb,y\na,z\n", 4, "as line 2 does"),
        ('name,prompt\na,"two\nlines"\na,z\n', 4, "as line 2 does"),
        ("name,prompt\na\n", 2, "1 cells, but the first line names 2 columns"),
        ("name,prompt\na,b,c\n", 2, "3 cells"),
        ("prompt,n:json\nx,{a\n", 2, "column n:json: no JSON: "),
        ("prompt,n:json\nx,NaN\n", 2, "NaN is no JSON number"),
        ('prompt,n:json\nx,"{""a"":1,""a"":2}"\n', 2, "a key is there twice"),
        ('prompt\n"x"y\n', 2, "no CSV"),
        ('prompt\na\n"never closed\n', 3, "no CSV"),
        ("prompt,\nx,y\n", 1, "column 2 has no name"),
        ("prompt,prompt\nx,y\n", 1, "column prompt is there twice"),
        ("", 1, "the file is empty"),
        ("jobID\n" + "x" * 300 + "\n", 2, "300 characters"),
        ("jobID,prompt\njob_1,x\n", 2, "leave prompt empty"),
        ("jobID,model\njob_1,m\n", 2, "leave model empty"),
        ("prompt,endpoint\nx,Nope\n", 2, "there is no endpoint 'Nope'"),
        ("prompt,model\nx,../m\n", 2, "no model id"),
        ("prompt,webhook_url\nx,http://y\n", 2, "webhook_url is the operator's own"),
        ("prompt,Model\nx,y\n", 2, "'Model' cannot be an argument"),
        (b"prompt\nok\n\xff\n", 3, "not UTF-8"),
    ],
)
def test_what_is_refused_in_a_csv(text: str | bytes, line: int, says: str) -> None:
    (found,) = _problems(text)
    assert found[0] == line
    assert says in found[1]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('{"prompt": "x"}\n\n{oops\n', 3, "no JSON"),
        ("[1]\n", 1, "one JSON object"),
        ('{"name": 7}\n', 1, "name must be a text"),
        ('{"arguments": 7}\n', 1, "arguments must be a JSON object"),
        ('{"arguments": {"a": 1}, "a": 2}\n', 1, "a is given twice"),
    ],
)
def test_what_is_refused_in_json_lines(text: str, line: int, says: str) -> None:
    (found,) = _problems(text, name="x.jsonl")
    assert found[0] == line
    assert says in found[1]


def test_all_problems_of_a_file_are_told_at_once() -> None:
    assert [line for line, _ in _problems("name,prompt\n/,x\nok,y\n/,z\nok,a\n")] == [2, 4, 5]


def test_a_new_job_wants_a_model_and_a_batch() -> None:
    assert "no model" in _problems("prompt\nx\n", model="")[0][1]
    assert "--batch" in _problems("prompt\nx\n", batch="")[0][1]
    assert not _problems("jobID\njob_1\n", batch="", model="")


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ({"prompt": "x", "seed": 7, "loop": True}, {"prompt": "x", "seed": 7, "loop": True}),
        ({"arguments": {"prompt": "x"}, "seed": 7}, {"prompt": "x", "seed": 7}),
        ({"arguments.prompt": "x"}, {"prompt": "x"}),
        ({"prompt": "x", "seed": None}, {"prompt": "x"}),
        ({"shots": [{"t": 1.5}]}, {"shots": [{"t": 1.5}]}),
    ],
)
def test_arguments(line: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert _entries(json.dumps(line), name="x.jsonl")[0].arguments == arguments
