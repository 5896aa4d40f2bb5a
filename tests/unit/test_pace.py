"""Delays: floor, ceiling, back-off, jitter."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import PACE, REF
from sume_operator.core.pace import JITTER_SHARE, Pace, jittered, share_of
from sume_operator.core.render import Ref

any_number = st.floats() | st.integers(-(10**300), 10**300).map(float)
paces = st.builds(
    lambda low, span, usual, error: Pace(min_s=low, max_s=low + span, poll_s=usual, error_s=error),
    st.floats(0.01, 1000),
    st.floats(0, 80_000),
    st.floats(0.01, 86_400),
    st.floats(0.01, 86_400),
)
refs = st.builds(Ref, st.just("n"), st.just("r"), st.text(min_size=1, max_size=12))


@pytest.mark.parametrize(
    ("delay_s", "clamped_s"),
    [
        (10, 10),
        (2, 2),
        (1.9, 2),
        (0, 2),
        (-5, 2),
        (300, 300),
        (301, 300),
        (math.inf, 300),
        (-math.inf, 2),
        (math.nan, 300),
    ],
)
def test_floor_and_ceiling(delay_s: float, clamped_s: float) -> None:
    assert PACE.clamped(delay_s) == clamped_s


@pytest.mark.parametrize(
    ("suggested_s", "delay_s"),
    [(None, 15), (8.0, 8), (0.0, 15), (-1.0, 15), (math.nan, 15), (math.inf, 15), (1.0, 2), (9999.0, 300)],
)
def test_the_usual_delay(suggested_s: float | None, delay_s: float) -> None:
    assert PACE.usual_s(suggested_s) == delay_s


@pytest.mark.parametrize(
    ("failures", "delay_s"),
    [(-1, 30), (0, 30), (1, 30), (2, 60), (3, 120), (4, 240), (5, 300), (6, 300), (10**9, 300)],
)
def test_the_delay_after_errors(failures: int, delay_s: float) -> None:
    assert PACE.error_delay_s(failures) == delay_s


@settings(max_examples=50)
@given(delay_s=any_number, pace=paces, ref=refs, turn=st.integers(0, 10**9))
def test_every_delay_is_within_floor_and_ceiling(delay_s: float, pace: Pace, ref: Ref, turn: int) -> None:
    for seconds in (
        pace.clamped(delay_s),
        pace.usual_s(delay_s),
        pace.error_delay_s(turn),
        jittered(delay_s, ref, turn, pace),
    ):
        assert pace.min_s <= seconds <= pace.max_s


@settings(max_examples=50)
@given(delay_s=st.floats(2, 300), ref=refs, turn=st.integers(0, 10**9))
def test_jitter_only_lengthens(delay_s: float, ref: Ref, turn: int) -> None:
    seconds = jittered(delay_s, ref, turn, PACE)
    assert delay_s <= seconds <= min(delay_s * (1 + JITTER_SHARE), PACE.max_s)
    assert seconds == jittered(delay_s, ref, turn, PACE)


def test_jitter_spreads_renders_and_turns() -> None:
    renders = {share_of(Ref("n", "r", str(number))) for number in range(1000)}
    turns = {share_of(REF, turn) for turn in range(1000)}
    for shares in (renders, turns):
        assert len(shares) > 990
        assert min(shares) >= 0
        assert max(shares) < 1
        assert 0.45 < sum(shares) / len(shares) < 0.55


@settings(max_examples=50)
@given(failures=st.integers(1, 60), pace=paces)
def test_back_off_never_shrinks(failures: int, pace: Pace) -> None:
    assert pace.error_delay_s(failures) <= pace.error_delay_s(failures + 1)
