from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.robust import MAD_TO_SD, group_medians, mad, median, median_of_groups

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


def test_each_launch_counts_once_however_many_samples_it_has() -> None:
    values, launches = [1.0, 1.0, 1.0, 1.0, 5.0, 6.0], [0, 0, 0, 0, 1, 2]
    assert group_medians(values, launches) == {0: 1.0, 1: 5.0, 2: 6.0}
    assert median_of_groups(values, launches) == 5.0


def test_groups_must_match_the_values() -> None:
    with pytest.raises(ValueError, match="zip"):
        group_medians([1.0, 2.0], [0])


@given(st.lists(finite, min_size=1))
def test_median_lies_within_the_values_whatever_their_order(values: list[float]) -> None:
    assert min(values) <= median(values) <= max(values)
    assert median(values) == median(values[::-1])
