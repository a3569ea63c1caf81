from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.robust import MAD_TO_SD, group_by, harmonic_mean, mad, mean, median

finite = st.floats(-1e6, 1e6)


def test_median_of_odd_and_even_counts() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


def test_median_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_one_stall_moves_neither_median_nor_mad() -> None:
    calm = [10.0, 10.1, 9.9, 10.0, 10.2]
    stalled = [10.0, 10.1, 9.9, 10.0, 5000.0]
    assert median(stalled) == median(calm)
    assert mad(stalled) == pytest.approx(mad(calm))


def test_mad_scaled_estimates_the_standard_deviation_of_normal_data() -> None:
    import numpy

    sample = numpy.random.default_rng(7).normal(5.0, 2.0, 20_000)
    assert MAD_TO_SD * mad(list(sample)) == pytest.approx(2.0, rel=0.03)


def test_values_are_grouped_by_launch_in_order() -> None:
    assert group_by([6.0, 1.0, 2.0, 5.0], [2, 0, 0, 1]) == {0: [1.0, 2.0], 1: [5.0], 2: [6.0]}


def test_groups_must_match_the_values() -> None:
    with pytest.raises(ValueError, match="zip"):
        group_by([1.0, 2.0], [0])


def test_rates_over_equal_work_are_all_work_by_all_time() -> None:
    rates = [10.0, 40.0]  # a token each: 0.1 s and 0.025 s
    assert harmonic_mean(rates) == pytest.approx(2 / (0.1 + 0.025))
    assert mean([1 / rate for rate in rates]) == pytest.approx(1 / harmonic_mean(rates))


@given(st.lists(finite, min_size=1))
def test_median_lies_within_the_values_whatever_their_order(values: list[float]) -> None:
    assert min(values) <= median(values) <= max(values)
    assert median(values) == median(values[::-1])
