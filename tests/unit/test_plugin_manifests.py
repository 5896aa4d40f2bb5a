"""Manifests: kubectl must read the very texts that stood in the file, and a second import must know its own objects."""

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_sumerender.entries import Entry
from kubectl_sumerender.manifests import difference, manifest, to_yaml

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz_", max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def _entry(**more: Any) -> Entry:
    fields: dict[str, Any] = {"line": 2, "name": "intro", "source": "Intro", "model": "sume/clip"}
    return Entry(**(fields | more))


def test_a_request() -> None:
    made = manifest(_entry(arguments={"prompt": "x"}, endpoint="VideoRouter"), batch="july", namespace="studio-a")
    assert made == {
        "apiVersion": "render.sume.com/v1alpha1",
        "kind": "SumeRender",
        "metadata": {
            "name": "intro",
            "namespace": "studio-a",
            "labels": {"render.sume.com/batch": "july"},
            "annotations": {"render.sume.com/source": "Intro"},
        },
        "spec": {
            "request": {
                "model": "sume/clip",
                "endpoint": "VideoRouter",
                "arguments": {"prompt": "x"},
                "idempotencyKey": "july/intro",
            }
        },
    }


def test_a_job_that_is_followed() -> None:
    made = manifest(_entry(job="job_1", model=""), batch="", namespace=None)
    assert made["spec"] == {"jobID": "job_1"}
    assert made["metadata"] == {"name": "intro", "annotations": {"render.sume.com/source": "Intro"}}


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10), _JSON, max_size=4))
def test_yaml_holds_what_was_put_in(arguments: dict[str, Any]) -> None:
    made = manifest(_entry(arguments=arguments), batch="july", namespace=None)
    assert list(yaml.safe_load_all("".join(to_yaml([made, made])))) == [made, made]


@pytest.mark.parametrize(
    "text", ["1e3", "y", "n", "012", "0o14", "1_000", "123e4", "~", ".inf", "2026-01-01", "a: b", ""]
)
def test_texts_that_other_parsers_take_for_something_else_are_quoted(text: str) -> None:
    (document,) = to_yaml([manifest(_entry(arguments={"prompt": text}), batch="july", namespace=None)])
    assert f'prompt: "{text}"\n' in document


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ({}, ""),
        ({"arguments": {"n": 1.0, "s": "x"}}, ""),
        ({"arguments": {"n": 2, "s": "x"}}, "other arguments"),
        ({"arguments": None}, "other arguments"),
        ({"model": "other"}, "has model other"),
        ({"idempotencyKey": "june/intro"}, "has idempotencyKey june/intro"),
        ({"endpoint": "ImageRouter"}, "has endpoint ImageRouter"),
    ],
)
def test_whether_it_is_the_same_request(there: dict[str, Any], says: str) -> None:
    wanted = manifest(_entry(arguments={"n": 1, "s": "x"}), batch="july", namespace=None)
    request = {**wanted["spec"]["request"], **there}
    found = difference({"spec": {"request": request, "suspend": True}}, wanted)
    assert says in found
    assert bool(says) == bool(found)


@pytest.mark.parametrize(
    ("spec", "says"),
    [({"jobID": "job_1"}, ""), ({"jobID": "job_2"}, "follows job job_2"), ({"request": {"model": "m"}}, "a new job")],
)
def test_whether_it_follows_the_same_job(spec: dict[str, Any], says: str) -> None:
    wanted = manifest(_entry(job="job_1", model=""), batch="", namespace=None)
    found = difference({"spec": spec}, wanted)
    assert says in found
    assert bool(says) == bool(found)


def test_json_numbers_survive() -> None:
    made = manifest(_entry(arguments={"a": 0.1, "b": 10**15, "c": -0.0}), batch="b", namespace=None)
    (text,) = to_yaml([made])
    read = yaml.safe_load(text)["spec"]["request"]["arguments"]
    assert read["a"] == pytest.approx(0.1, abs=0)
    assert read["b"] == 10**15
    assert math.copysign(1, read["c"]) == -1
