"""The ratio of two sums over the same clusters, and how far it may be trusted."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.intervals import Estimate, interval_of, p_above
from suite.stats.ratios import SE_FLOOR, log_ratio, share_of_sums

POSITIVE = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=20)


def test_a_ratio_by_hand() -> None:
    """Sums 6 and 4. Without the first: 4/3, without the second: 2/1; as logarithms ln 2/3 apart, so SE = |ln 2/3| / 2. Shares
    1/3 and 2/3, 1/4 and 3/4, on average 7/24 and 17/24: (24² / (7² + 17²)) − 1 < 1 degree of freedom.
    """
    assert log_ratio([2.0, 4.0], [1.0, 3.0]) == Estimate(
        pytest.approx(math.log(1.5)),  # type: ignore[arg-type]
        pytest.approx(math.log(1.5) / 2),  # type: ignore[arg-type]
        1.0,
    )


def test_a_share_by_hand() -> None:
    """Sums 9 and 12. Without each: 7/10, 5/8, 6/6, of mean 0.775; weights 1/6, 1/3, 1/2: 36/14 effective clusters."""
    found = share_of_sums([2.0, 4.0, 3.0], [2.0, 4.0, 6.0])
    assert found is not None
    squares = (0.7 - 0.775) ** 2 + (0.625 - 0.775) ** 2 + (1.0 - 0.775) ** 2
    assert (found.mean, found.se) == pytest.approx((0.75, math.sqrt(2 / 3 * squares)))
    assert found.df == pytest.approx(36 / 14 - 1)


def test_of_equal_clusters_it_is_the_usual_standard_error_of_the_mean() -> None:
    values = [0.2, 0.5, 0.1, 0.9, 0.4]
    found = share_of_sums(values, [1.0] * 5)
    assert found is not None
    assert (found.mean, found.se) == pytest.approx((fmean(values), stdev(values) / math.sqrt(5)))
    assert found.df == pytest.approx(4)


def test_one_large_cluster_leaves_few_degrees_of_freedom() -> None:
    then = [1.0] * 20 + [100.0]
    found = log_ratio([1.1 * value for value in then], then)
    assert found is not None
    assert found.df == pytest.approx(120**2 / (20 + 100**2) - 1, abs=1.0)


@given(POSITIVE, st.floats(0.5, 2.0))
def test_a_change_of_all_clusters_alike_leaves_no_spread_whatever_their_sizes(then: list[float], factor: float) -> None:
    found = log_ratio([factor * value for value in then], then)
    assert found is not None
    assert found.mean == pytest.approx(math.log(factor), abs=1e-9)
    assert found.se == SE_FLOOR
    assert 1 <= found.df <= len(then) - 1 + 1e-9


@given(POSITIVE, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(then: list[float], unit: float) -> None:
    now = [value * (1 + index % 3) for index, value in enumerate(then)]
    one, other = log_ratio(now, then), log_ratio([unit * value for value in now], [unit * value for value in then])
    assert one is not None
    assert other is not None
    assert (other.mean, other.se) == pytest.approx((one.mean, one.se), rel=1e-6, abs=1e-6)


@given(POSITIVE)
def test_forth_and_back_are_the_same_distance(then: list[float]) -> None:
    now = [value * (1 + index % 2) for index, value in enumerate(then)]
    forth, back = log_ratio(now, then, se_floor=0.0), log_ratio(then, now, se_floor=0.0)
    assert forth is not None
    assert back is not None
    assert (back.mean, back.se) == pytest.approx((-forth.mean, forth.se), rel=1e-6, abs=1e-6)


def test_the_floor_is_what_stored_digits_leave() -> None:
    tight = log_ratio([1.0, 2.0], [1.0, 2.0], se_floor=0.0)
    floored = log_ratio([1.0, 2.0], [1.0, 2.0], se_floor=0.1)
    assert tight is not None
    assert floored is not None
    assert (tight.se, floored.se) == (0.0, 0.1)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ([], []),
        ([1.0], [1.0]),
        ([0.0, 0.0], [1.0, 1.0]),
        ([1.0, 1.0], [0.0, 0.0]),
        ([1.0, 1e-300], [1.0, 1.0]),
        ([1.0, 1.0], [0.0, 3.0]),
    ],
    ids=["none", "one cluster", "nothing now", "nothing then", "all in one now", "all in one then"],
)
def test_without_two_clusters_and_something_on_either_side_there_is_no_ratio(
    now: list[float], then: list[float]
) -> None:
    assert log_ratio(now, then) is None


@pytest.mark.parametrize(
    ("values", "sizes"), [([], []), ([1.0], [2.0]), ([1.0, 1.0], [0.0, 0.0]), ([1.0, 0.0], [5.0, 0.0])]
)
def test_without_two_clusters_of_a_size_there_is_no_share(values: list[float], sizes: list[float]) -> None:
    assert share_of_sums(values, sizes) is None


def test_a_share_of_nothing_is_nothing_with_no_spread() -> None:
    assert share_of_sums([0.0, 0.0], [3.0, 4.0]) == Estimate(0.0, 0.0, 1.0)


def test_clusters_are_paired() -> None:
    with pytest.raises(ValueError, match="zip"):
        log_ratio([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="zip"):
        share_of_sums([1.0, 2.0], [1.0, 2.0, 3.0])


# ------------------------------------------------------------------------------------------ coverage

MATRICES = 2000
SKEWS = [(50, 0.0), (50, 0.6), (50, 1.0), (50, 1.3), (16, 0.6), (16, 1.3)]
"""Clusters, and the standard deviation of the logarithm of how much each of them weighs: 1 is what answers are like."""


@pytest.mark.parametrize(("clusters", "skew"), SKEWS)
@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_a_95_percent_interval_of_a_ratio_covers_about_95_percent(clusters: int, skew: float, spread: float) -> None:
    """Clusters whose divergence is log-normal, and whose change is; and no more false alarms at 0.6 % than twice that."""
    generator = numpy.random.default_rng(11)
    truth = math.log(1.2)
    covered = accused = 0
    for _ in range(MATRICES):
        then = generator.lognormal(0.0, skew, clusters)
        now = then * generator.lognormal(truth - spread**2 / 2, spread, clusters)
        found = log_ratio(now.tolist(), then.tolist())
        assert found is not None
        low, high = interval_of(found)
        covered += low <= truth <= high
        accused += p_above(found, truth) <= 0.006
    assert 0.92 <= covered / MATRICES <= 0.98
    assert accused / MATRICES <= 0.012


@pytest.mark.parametrize(("clusters", "skew"), SKEWS[:4])
def test_a_95_percent_interval_of_a_share_covers_about_95_percent(clusters: int, skew: float) -> None:
    generator = numpy.random.default_rng(12)
    covered = 0
    for _ in range(MATRICES):
        sizes = generator.lognormal(0.0, skew, clusters)
        values = sizes * generator.lognormal(-(0.4**2) / 2, 0.4, clusters)
        found = share_of_sums(values.tolist(), sizes.tolist())
        assert found is not None
        low, high = interval_of(found)
        covered += low <= 1.0 <= high
    assert 0.92 <= covered / MATRICES <= 0.98
