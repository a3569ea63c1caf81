from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.intervals import (
    STORED_SD_FLOOR,
    launches_to_settle,
    mean_interval,
    t_quantile,
    welch_interval,
)

logs = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def test_t_quantile_agrees_with_the_tables() -> None:
    assert t_quantile(0.975, 2) == pytest.approx(4.3027, abs=1e-4)
    assert t_quantile(0.975, 4) == pytest.approx(2.7764, abs=1e-4)
    assert t_quantile(0.995, 9) == pytest.approx(3.2498, abs=1e-4)


def test_mean_interval_by_hand() -> None:
    interval = mean_interval([0.1, 0.2, 0.3], sd_floor=0.0)
    assert interval is not None
    assert interval.estimate == pytest.approx(0.2)
    assert interval.half_width == pytest.approx(4.3027 * 0.1 / math.sqrt(3), abs=1e-4)


def test_welch_agrees_with_scipy_when_no_floor_is_in_force() -> None:
    from scipy.stats import ttest_ind

    now, then = [0.3, 0.1, 0.5, 0.25], [0.0, 0.02, -0.1]
    expected = ttest_ind(now, then, equal_var=False).confidence_interval(0.95)
    interval = welch_interval(now, then, sd_floor=0.0)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_the_floor_keeps_a_lucky_spread_from_being_believed() -> None:
    tight = welch_interval([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert tight is not None
    assert tight.half_width == pytest.approx(t_quantile(0.975, 4) * STORED_SD_FLOOR * math.sqrt(2 / 3))


def test_without_a_floor_equal_constants_give_a_point() -> None:
    interval = welch_interval([0.5, 0.5], [0.2, 0.2], sd_floor=0.0)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.3, 0.3))


def test_one_launch_on_one_side_gives_a_wide_interval() -> None:
    single = welch_interval([0.0], [0.0, 0.01, -0.01])
    several = welch_interval([0.0, 0.01, -0.01], [0.0, 0.01, -0.01])
    assert single is not None
    assert several is not None
    assert single.half_width > 1.8 * several.half_width
    mirrored = welch_interval([0.0, 0.01, -0.01], [0.0])
    assert mirrored is not None
    assert mirrored.half_width == pytest.approx(single.half_width)


@pytest.mark.parametrize(("now", "then"), [([0.0], [0.0]), ([], [0.0, 0.1]), ([0.0, 0.1], [])])
def test_no_spread_to_learn_from_gives_no_interval(now: list[float], then: list[float]) -> None:
    assert welch_interval(now, then) is None


def test_one_ratio_gives_no_interval() -> None:
    assert mean_interval([0.1]) is None


@given(logs, logs, st.floats(-1, 1))
@settings(deadline=None)
def test_welch_laws(now: list[float], then: list[float], shift: float) -> None:
    interval, swapped = welch_interval(now, then), welch_interval(then, now)
    moved = welch_interval([value + shift for value in now], then)
    assert interval is not None
    assert swapped is not None
    assert moved is not None
    assert interval.low < interval.estimate < interval.high
    assert (swapped.low, swapped.high) == pytest.approx((-interval.high, -interval.low))
    assert moved.estimate == pytest.approx(interval.estimate + shift, abs=1e-9)
    assert moved.half_width == pytest.approx(interval.half_width)
    assert min(len(now), len(then)) - 1 <= interval.df * (1 + 1e-9)


@given(logs, st.floats(0, 0.1), st.floats(0, 0.1))
@settings(deadline=None)
def test_a_higher_floor_never_narrows(values: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    narrow, wide = mean_interval(values, sd_floor=low), mean_interval(values, sd_floor=high)
    assert narrow is not None
    assert wide is not None
    assert narrow.half_width <= wide.half_width


@pytest.mark.parametrize("launches", [3, 5, 8])
def test_a_95_percent_interval_covers_95_percent(launches: int) -> None:
    generator = numpy.random.default_rng(11)
    now = generator.normal(0.05, 0.03, (2000, launches))
    then = generator.normal(0.0, 0.03, (2000, launches))
    found = [welch_interval(list(a), list(b)) for a, b in zip(now, then, strict=True)]
    covered = sum(interval is not None and interval.low <= 0.05 <= interval.high for interval in found)
    assert 0.935 <= covered / 2000 <= 0.975


def test_false_alarms_of_the_stored_rule_are_rare_and_large_slowdowns_are_found() -> None:
    generator = numpy.random.default_rng(3)
    drawn = generator.normal(0.0, 0.022, (2000, 2, 3))
    false = sum((i := welch_interval(list(a), list(b))) is not None and i.low > 0.10 for a, b in drawn)
    found = sum((i := welch_interval(list(a + 0.30), list(b))) is not None and i.low > 0.10 for a, b in drawn)
    assert false == 0
    assert found / 2000 > 0.95


def test_launches_to_settle_is_the_smallest_number_that_does() -> None:
    needed = launches_to_settle(0.04, 0.03, 3, 10)
    assert needed is not None

    def half(n: int) -> float:
        return 0.04 * math.sqrt((1 / n + 1 / 10) / (1 / 3 + 1 / 10))

    assert half(needed) <= 0.03 < half(needed - 1)


def test_no_number_of_launches_repairs_a_thin_baseline() -> None:
    assert launches_to_settle(0.05, 0.01, 3, 3) is None
    assert launches_to_settle(0.05, 0.0, 3, 3) is None
