"""Names: whatever an id or a title holds, Kubernetes takes the name, and two stay two."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_sumerender.naming import (
    LONGEST_NAME,
    LONGEST_SOURCE,
    is_object_name,
    object_name,
    retry_name,
    row_name,
    what_is_wrong_with_batch,
    what_is_wrong_with_job_id,
    what_is_wrong_with_name,
)

_DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_JOB_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", fullmatch=True)
_TITLES = st.text(min_size=1, max_size=LONGEST_SOURCE).filter(lambda text: not what_is_wrong_with_name(text))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("intro", "intro"),
        ("shot-01.final", "shot-01.final"),
        ("job_0b6F", "job-0b6f-61e392"),
        ("Über Shot", "uber-shot-"),
        ("-x", "x-"),
        ("a..b", "a-b-"),
        ("Морской", "render-"),
    ],
)
def test_name(source: str, name: str) -> None:
    made = object_name(source)
    assert made.startswith(name)
    assert len(made) == len(name) + (6 if name.endswith("-") else 0)


@given(_TITLES | _JOB_IDS)
def test_every_name_is_one_that_kubernetes_takes(source: str) -> None:
    name = object_name(source)
    assert _DNS.fullmatch(name)
    assert len(name) <= LONGEST_NAME
    assert name == object_name(source)
    assert is_object_name(name)
    assert is_object_name(retry_name(name))


@given(st.sets(_JOB_IDS | _TITLES, min_size=2, max_size=20))
def test_distinct_ids_get_distinct_names(sources: set[str]) -> None:
    assert len({object_name(source) for source in sources}) == len(sources)


@given(_JOB_IDS)
def test_ids_that_differ_only_in_case_stay_two(job: str) -> None:
    spellings = {job, job.upper(), job.lower(), job.swapcase()}
    assert len({object_name(each) for each in spellings}) == len(spellings)


@given(_JOB_IDS)
def test_a_job_id_never_needs_cutting(job: str) -> None:
    assert not what_is_wrong_with_name(job)
    assert len(object_name(job)) <= len(job) + len("render-") + 6


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("../etc/passwd", "slash"),
        ("a\\b", "slash"),
        ("a\nb", "control character"),
        ("\x1b[31m", "control character"),
        ("...", "no letter"),
        ("x" * 300, "300 characters"),
        ("shot 1", ""),
        ("夜の港", ""),
    ],
)
def test_what_cannot_be_a_name(source: str, says: str) -> None:
    fault = what_is_wrong_with_name(source)
    assert says in fault
    assert bool(fault) == bool(says)


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("job_0b6f7c1e-5d0a-4a53-9d0e-0f1f5ad5c0de", ""),
        ("x" * 128, ""),
        ("x" * 129, "129 characters"),
        ("x" * 300, "300 characters"),
        ("../etc/passwd", "no job id"),
        ("-x", "no job id"),
        ("job 1", "no job id"),
        ("jöb", "no job id"),
        ("", "no job id"),
        ("job\n", "no job id"),
    ],
)
def test_what_cannot_be_a_job_id(job: str, says: str) -> None:
    fault = what_is_wrong_with_job_id(job)
    assert says in fault
    assert bool(fault) == bool(says)


@pytest.mark.parametrize(("batch", "good"), [("july", True), ("July_2.a", True), ("x" * 63, True), ("x" * 64, False)])
@pytest.mark.parametrize("worse", ["", "-", " ", "/", "é"])
def test_batches(batch: str, good: bool, worse: str) -> None:
    assert (what_is_wrong_with_batch(batch + worse) == "") == (good and not worse)


@pytest.mark.parametrize(
    ("name", "following"),
    [("intro", "intro-r2"), ("intro-r2", "intro-r3"), ("intro-r9", "intro-r10"), ("a-r", "a-r-r2"), ("r2", "r2-r2")],
)
def test_retry_names(name: str, following: str) -> None:
    assert retry_name(name) == following


def test_a_longer_file_does_not_rename_its_rows() -> None:
    assert row_name("july", 7) == "july-0007"
    assert row_name("july", 12345) == "july-12345"
    assert row_name("July", 7).startswith("july-0007-")
