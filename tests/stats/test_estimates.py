"""Estimates of a drift and their one-sided tests: what speed is decided by."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.intervals import (
    PAIRED_SD_FLOOR,
    SESSION_SD,
    STORED_SD_FLOOR,
    Estimate,
    interval_of,
    p_above,
    p_below,
    paired_mean,
    spend,
    spend_late,
    stored_difference,
)


def test_a_paired_mean_by_hand() -> None:
    found = paired_mean([0.1, 0.2, 0.3])
    assert found == Estimate(pytest.approx(0.2), pytest.approx(0.1 / math.sqrt(3)), 2)  # type: ignore[arg-type]
    lucky = paired_mean([0.02, 0.02, 0.02, 0.02])
    assert lucky == Estimate(pytest.approx(0.02), pytest.approx(PAIRED_SD_FLOOR / 2), 3)  # type: ignore[arg-type]
    assert paired_mean([0.1]) is None


def test_tests_and_interval_are_those_of_student() -> None:
    from scipy.stats import ttest_1samp

    logs = [0.05, 0.02, 0.06, 0.04, 0.01]
    found = paired_mean(logs)
    assert found is not None
    assert p_above(found, 0.03) == pytest.approx(ttest_1samp(logs, 0.03, alternative="greater").pvalue)
    assert p_below(found, 0.03) == pytest.approx(ttest_1samp(logs, 0.03, alternative="less").pvalue)
    expected = ttest_1samp(logs, 0.0).confidence_interval(0.95)
    assert interval_of(found) == pytest.approx((expected.low, expected.high))


def test_a_stored_difference_by_hand() -> None:
    """Pooled variance (0.02 + 0.08) / 4 with 4 df, × 2/3 for the launches; twice 0.1² for the sessions, with 3 df."""
    found = stored_difference([0.1, 0.2, 0.3], [0.8, 1.0, 1.2], session_sd=0.1, session_df=3)
    launch, session = 0.025 * 2 / 3, 0.02
    assert found is not None
    assert found.mean == pytest.approx(-0.8)
    assert found.se == pytest.approx(math.sqrt(launch + session))
    assert found.df == pytest.approx((launch + session) ** 2 / (launch**2 / 4 + session**2 / 3))


def test_without_calibration_sessions_are_taken_to_differ_and_a_lucky_spread_is_not_believed() -> None:
    found = stored_difference([0.0] * 5, [0.0] * 5)
    assert found is not None
    assert found.se == pytest.approx(math.sqrt(STORED_SD_FLOOR**2 * 2 / 5 + 2 * SESSION_SD**2))


def test_no_number_of_launches_makes_sessions_alike() -> None:
    found = stored_difference([0.0, 0.01] * 200, [0.0, 0.01] * 200)
    assert found is not None
    assert found.se > math.sqrt(2) * SESSION_SD


def test_single_launches_borrow_the_spread_of_the_other_side_and_two_single_ones_have_none() -> None:
    assert stored_difference([0.0], [0.0, 0.01, 0.02]) is not None
    assert stored_difference([0.0], [0.0]) is None
    assert stored_difference([], [0.0, 0.1]) is None
    assert stored_difference([0.0, 0.1], []) is None


@pytest.mark.parametrize(("launch_sd", "session_sd"), [(0.03, 0.03), (0.04, 0.01), (0.02, 0.05)])
def test_a_95_percent_interval_of_two_sessions_covers_95_percent(launch_sd: float, session_sd: float) -> None:
    generator = numpy.random.default_rng(9)
    trials = 1000
    now, then = (
        0.0 + generator.normal(0, session_sd, (trials, 1)) + generator.normal(0, launch_sd, (trials, 5))
        for _ in range(2)
    )
    covered = 0
    for a, b in zip(now.tolist(), then.tolist(), strict=True):
        found = stored_difference(a, b, session_sd=session_sd)
        assert found is not None
        low, high = interval_of(found)
        covered += low <= 0.0 <= high
    assert 0.93 <= covered / trials <= 0.98


def test_ignoring_the_sessions_would_cry_wolf() -> None:
    generator = numpy.random.default_rng(10)
    now, then = (generator.normal(0, 0.03, (500, 1)) + generator.normal(0, 0.01, (500, 5)) for _ in range(2))
    covered = 0
    for a, b in zip(now.tolist(), then.tolist(), strict=True):
        low, high = interval_of(stored_difference(a, b, session_sd=0.0))  # type: ignore[arg-type]
        covered += low <= 0.0 <= high
    assert covered / 500 < 0.6


@given(st.floats(-1, 1), st.floats(0.001, 1), st.floats(1, 100), st.floats(-1, 1))
def test_the_two_tests_mirror_each_other(mean: float, se: float, df: float, margin: float) -> None:
    found, mirrored = Estimate(mean, se, df), Estimate(-mean, se, df)
    assert p_above(found, margin) + p_below(found, margin) == pytest.approx(1)
    assert p_above(found, margin) == pytest.approx(p_below(mirrored, -margin))


def test_a_drift_that_can_never_be_too_large_is_always_within() -> None:
    assert p_below(Estimate(0.5, 0.1, 4), math.inf) == 0.0
    assert p_above(Estimate(0.5, 0.1, 4), math.inf) == 1.0


def test_all_looks_together_spend_less_than_the_level() -> None:
    spent = [spend(0.05, look) for look in range(1, 60)]
    assert spent[:2] == [0.025, 0.0125]
    assert sum(spent[:30]) < 0.05
    assert sum(spent) == pytest.approx(0.05)
    with pytest.raises(ValueError, match="counted from 1"):
        spend(0.05, 0)


def test_most_of_an_accusation_is_kept_for_the_second_look_and_all_looks_together_spend_less_than_the_level() -> None:
    spent = [spend_late(0.04, look) for look in range(1, 60)]
    assert spent[:4] == [0.01, 0.02, 0.005, 0.0025]
    assert sum(spent[:30]) < 0.04
    assert sum(spent) == pytest.approx(0.04)
    with pytest.raises(ValueError, match="counted from 1"):
        spend_late(0.05, 0)


@pytest.mark.parametrize("spending", [spend, spend_late])
def test_looking_again_and_again_at_growing_data_keeps_false_alarms_within_the_level(spending: Any) -> None:
    generator = numpy.random.default_rng(12)
    wrong = 0
    for row in generator.normal(0, 0.01, (1000, 30)).tolist():
        looks = enumerate((5, 10, 15, 20, 25, 30), start=1)
        wrong += any(
            (e := paired_mean(row[:n])) is not None and p_above(e, 0.0) <= spending(0.05, look) for look, n in looks
        )
    assert 0.01 < wrong / 1000 < 0.06
