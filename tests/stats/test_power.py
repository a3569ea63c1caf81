"""Power: against the non-central t distribution, enumeration, tables, and simulation."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.binomial import mcnemar_p
from suite.stats.intervals import p_above, paired_mean
from suite.stats.power import detectable, detectable_loss, launches_for, mcnemar_power, power


@pytest.mark.parametrize(("effect", "sd", "n", "alpha"), [(0.05, 0.01, 5, 0.01), (0.04, 0.02, 10, 0.05)])
def test_power_is_the_tail_of_the_noncentral_t(effect: float, sd: float, n: int, alpha: float) -> None:
    from scipy.stats import nct, t

    expected = nct.sf(t.isf(alpha, n - 1), n - 1, (effect - 0.03) * math.sqrt(n) / sd)
    assert power(effect, 0.03, sd, n, alpha) == pytest.approx(expected, abs=1e-9)


def test_power_is_how_often_the_test_of_the_gate_rejects() -> None:
    generator = numpy.random.default_rng(4)
    drawn = generator.normal(0.05, 0.015, (3000, 5)).tolist()
    found = sum((e := paired_mean(row)) is not None and p_above(e, 0.03) <= 0.05 for row in drawn)
    expected = power(0.05, 0.03, 0.015, 5, 0.05)
    assert 0.5 < expected < 0.9
    assert found / 3000 == pytest.approx(expected, abs=0.025)


def test_at_the_margin_the_power_is_the_level() -> None:
    assert power(0.03, 0.03, 0.01, 6, 0.05) == pytest.approx(0.05)


def test_one_launch_finds_nothing() -> None:
    assert power(1.0, 0.03, 0.01, 1, 0.05) == 0.0
    assert detectable(0.03, 0.01, 1, 0.05, 0.8) == math.inf
    assert launches_for(0.03, 0.03, 0.01, 0.05, most=20) is None


def test_the_detectable_effect_is_where_the_power_is_reached() -> None:
    effect = detectable(0.03, 0.01, 5, 0.0025, 0.95)
    assert power(effect, 0.03, 0.01, 5, 0.0025) == pytest.approx(0.95, abs=1e-6)
    assert detectable(0.03, 0.01, 10, 0.0025, 0.95) < effect


@pytest.mark.parametrize(
    ("sd", "slower", "launches"),
    [(0.006, 0.05, 6), (0.006, 0.10, 4), (0.010, 0.05, 10), (0.010, 0.10, 4), (0.020, 0.10, 6), (0.030, 0.10, 9)],
)
def test_launches_for_95_percent_power_as_tabulated(sd: float, slower: float, launches: int) -> None:
    """Tolerance 3 %, 5 % shared by 20 checks; the table was made without logarithms, hence the one to spare."""
    needed = launches_for(math.log1p(slower), math.log1p(0.03), sd, 0.05 / 20)
    assert needed is not None
    assert abs(needed - launches) <= 1
    assert power(math.log1p(slower), math.log1p(0.03), sd, needed - 1, 0.05 / 20) < 0.95


@pytest.mark.parametrize("n", [1, 3, 6, 8])
@pytest.mark.parametrize(("loss", "gain"), [(0.3, 0.0), (0.5, 0.1), (0.2, 0.2), (1.0, 0.0), (0.0, 0.0)])
def test_power_of_mcnemar_by_writing_down_every_outcome(n: int, loss: float, gain: float) -> None:
    chances = {-1: gain, 0: 1 - loss - gain, 1: loss}
    expected = sum(
        math.prod(chances[step] for step in outcome)
        for outcome in itertools.product(chances, repeat=n)
        if mcnemar_p(outcome.count(1), outcome.count(-1)) <= 0.2
    )
    assert mcnemar_power(n, loss, gain, 0.2) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "gain", "alpha", "likely", "nearly_sure"),
    [
        (30, 0.0, 0.05, 21.5, 28), (50, 0.0, 0.05, 13.5, 17.5), (100, 0.0, 0.05, 7, 9),
        (200, 0.0, 0.05, 3.5, 5), (500, 0.0, 0.05, 1.5, 2), (50, 0.0, 0.01, 18, 22.5), (100, 0.0, 0.01, 9, 11.5),
        (50, 0.02, 0.05, 19, 25), (100, 0.02, 0.05, 11.5, 15.5),
    ],
)  # fmt: skip
def test_detectable_losses_as_tabulated(n: int, gain: float, alpha: float, likely: float, nearly_sure: float) -> None:
    for wanted, points in ((0.80, likely), (0.95, nearly_sure)):
        found = detectable_loss(n, alpha, wanted, gain)
        assert found is not None
        assert abs(100 * found - points) <= 0.5
        assert mcnemar_power(n, found, gain, alpha) >= wanted > mcnemar_power(n, found - 0.001, gain, alpha)


def test_fifty_cases_hardly_see_a_loss_of_four_points() -> None:
    assert mcnemar_power(50, 0.04, 0.0, 0.05) == pytest.approx(0.049, abs=0.001)


def test_four_cases_never_see_anything() -> None:
    assert mcnemar_power(4, 1.0, 0.0, 0.05) == 0.0
    assert detectable_loss(4, 0.05, 0.8) is None


def test_more_cases_than_a_float_can_count_the_ways_of() -> None:
    from scipy.stats import binom

    assert mcnemar_power(3000, 0.002, 0.0, 0.05) == pytest.approx(binom.sf(4, 3000, 0.002))
    assert mcnemar_power(1200, 0.5, 0.0, 0.05) == pytest.approx(1.0)


@given(st.integers(5, 60), st.floats(0.01, 0.9), st.floats(0, 0.1))
@settings(deadline=None, max_examples=40)
def test_a_larger_loss_is_never_harder_to_find(n: int, loss: float, gain: float) -> None:
    larger = min(loss + 0.05, 1 - gain)
    assert mcnemar_power(n, larger, gain, 0.05) >= mcnemar_power(n, min(loss, larger), gain, 0.05) - 1e-12


@pytest.mark.parametrize(("loss", "gain"), [(-0.1, 0.0), (0.6, 0.6), (0.0, 1.1)])
def test_impossible_rates_are_refused(loss: float, gain: float) -> None:
    with pytest.raises(ValueError, match="shares"):
        mcnemar_power(10, loss, gain, 0.05)
