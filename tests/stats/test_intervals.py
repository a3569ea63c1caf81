"""Student's t: quantiles, and intervals of the mean of log ratios."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.beta import t_quantile
from suite.stats.intervals import interval_of, paired_mean, session_mean

logs = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def test_t_quantile_agrees_with_the_tables() -> None:
    assert t_quantile(0.975, 2) == pytest.approx(4.3027, abs=1e-4)
    assert t_quantile(0.975, 4) == pytest.approx(2.7764, abs=1e-4)
    assert t_quantile(0.995, 9) == pytest.approx(3.2498, abs=1e-4)


def test_the_interval_of_a_mean_by_hand() -> None:
    estimate = paired_mean([0.1, 0.2, 0.3], sd_floor=0.0)
    assert estimate is not None
    half = 4.3027 * 0.1 / math.sqrt(3)
    assert interval_of(estimate) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-4)


def test_one_ratio_gives_no_interval() -> None:
    assert paired_mean([0.1]) is None


@given(logs, st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_a_higher_floor_never_narrows(values: list[float], one: float, other: float) -> None:
    narrow, wide = (paired_mean(values, sd_floor=floor) for floor in sorted((one, other)))
    assert narrow is not None
    assert wide is not None
    assert wide.se >= narrow.se


@pytest.mark.parametrize("launches", [3, 5, 8])
def test_a_95_percent_interval_covers_95_percent(launches: int) -> None:
    drawn = numpy.random.default_rng(launches).normal(0.0, 0.05, (4000, launches))
    found = [paired_mean(list(row)) for row in drawn]
    covered = sum(low <= 0 <= high for low, high in (interval_of(e) for e in found if e is not None))
    assert 0.94 <= covered / len(drawn) <= 0.96


def test_the_mean_of_sessions_by_hand() -> None:
    estimate = session_mean([0.1, 0.2, 0.3], sd_floor=0.0, session_sd=0.05)
    assert estimate is not None
    launch, session = 0.1**2 / 3, 0.05**2
    assert estimate.mean == pytest.approx(0.2)
    assert estimate.se == pytest.approx(math.sqrt(launch + session))
    assert estimate.df == pytest.approx((launch + session) ** 2 / (launch**2 / 2))
    known = session_mean([0.1, 0.2, 0.3], sd_floor=0.0, session_sd=0.05, session_df=4)
    assert known is not None
    assert known.df == pytest.approx((launch + session) ** 2 / (launch**2 / 2 + session**2 / 4))
    assert session_mean([0.1]) is None


def test_the_interval_of_one_session_covers_the_mean_of_all_in_95_percent() -> None:
    """Launches of one session alone would cover half of that."""
    generator = numpy.random.default_rng(1)
    sessions = generator.normal(0.0, 0.03, (2000, 1))
    drawn = sessions + generator.normal(0.0, 0.02, (2000, 5))
    found = [session_mean(row.tolist(), session_sd=0.03) for row in drawn]
    intervals = [interval_of(one) for one in found if one is not None]
    assert 0.94 <= sum(low <= 0 <= high for low, high in intervals) / len(intervals) <= 0.98
    alone = [interval_of(one) for row in drawn if (one := paired_mean(row.tolist())) is not None]
    assert sum(low <= 0 <= high for low, high in alone) / len(alone) < 0.75
