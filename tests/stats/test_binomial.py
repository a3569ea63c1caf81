from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.binomial import (
    mcnemar_p,
    net_loss_bounds,
    net_loss_interval,
    share_interval,
    smallest_significant_loss,
    upper_tail,
)

counts = st.integers(0, 40)


@given(counts, counts)
@settings(deadline=None, max_examples=60)
def test_mcnemar_is_the_exact_binomial_test(lost: int, gained: int) -> None:
    from scipy.stats import binomtest

    if lost + gained == 0:
        assert mcnemar_p(lost, gained) == 1.0
        return
    expected = binomtest(lost, lost + gained, 0.5, alternative="greater").pvalue
    assert mcnemar_p(lost, gained) == pytest.approx(expected)


@given(counts, counts)
def test_more_losses_are_stronger_evidence_and_more_gains_weaker(lost: int, gained: int) -> None:
    assert mcnemar_p(lost + 1, gained) < mcnemar_p(lost, gained) or lost + gained == 0
    assert mcnemar_p(lost, gained + 1) >= mcnemar_p(lost, gained)


def test_tails_add_up() -> None:
    assert upper_tail(0, 5) == 1.0
    assert upper_tail(6, 5) == 0.0
    assert upper_tail(3, 5) == 0.5


def test_smallest_significant_losses_of_the_literature() -> None:
    assert smallest_significant_loss(50) == 5
    assert smallest_significant_loss(50, alpha=0.01) == 7
    assert smallest_significant_loss(50, alpha=0.0025) == 9


def test_a_test_that_could_never_reject_says_so() -> None:
    assert smallest_significant_loss(4) is None
    assert smallest_significant_loss(5) == 5


@given(st.integers(0, 60), st.integers(0, 20))
def test_the_smallest_significant_loss_is_where_the_test_turns(n: int, gained: int) -> None:
    net = smallest_significant_loss(n, gained=gained)
    if net is None:
        assert 2 * gained > n or mcnemar_p(n - gained, gained) > 0.05
        return
    assert mcnemar_p(net + gained, gained) <= 0.05
    assert net == 0 or mcnemar_p(net + gained - 1, gained) > 0.05


@given(st.integers(0, 30), st.integers(1, 30))
@settings(deadline=None, max_examples=60)
def test_share_interval_is_clopper_pearson(successes: int, trials: int) -> None:
    from scipy.stats import binomtest

    successes = min(successes, trials)
    expected = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert share_interval(successes, trials) == pytest.approx((expected.low, expected.high))


def test_nothing_tried_means_anything_is_possible() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)


def test_no_flips_is_no_loss_at_all() -> None:
    assert net_loss_interval(0, 0, 24) == (0.0, 0.0)


def test_one_loss_costs_at_most_one_case() -> None:
    assert net_loss_interval(1, 0, 24)[1] == pytest.approx(1 / 24)


@given(st.integers(0, 15), st.integers(0, 15), st.integers(30, 100))
@settings(deadline=None)
def test_net_loss_interval_holds_the_net_loss_and_mirrors(lost: int, gained: int, n: int) -> None:
    low, high = net_loss_interval(lost, gained, n)
    assert low <= (lost - gained) / n <= high
    assert net_loss_interval(gained, lost, n) == pytest.approx((-high, -low))
    assert -1 <= low <= high <= 1


@pytest.mark.parametrize(("n", "points"), [(30, 9.5), (50, 5.8), (60, 4.9), (100, 3.0), (200, 1.5), (300, 1.0)])
def test_no_flips_certify_what_the_literature_says(n: int, points: float) -> None:
    low, high = net_loss_bounds(0, 0, n, confidence=0.9)
    assert high == pytest.approx(1 - 0.05 ** (1 / n))
    assert 100 * high == pytest.approx(points, abs=0.05)
    assert low == -high


def test_losses_without_gains_have_the_bounds_of_a_share() -> None:
    from scipy.stats import binomtest

    interval = binomtest(4, 50).proportion_ci(0.9, method="exact")
    assert net_loss_bounds(4, 0, 50, confidence=0.9)[1] == pytest.approx(interval.high)
    assert net_loss_bounds(0, 4, 50, confidence=0.9)[0] == pytest.approx(-interval.high)


@given(st.integers(0, 15), st.integers(0, 15), st.integers(30, 100))
@settings(deadline=None)
def test_bounds_hold_the_net_loss_mirror_and_widen_with_confidence(lost: int, gained: int, n: int) -> None:
    low, high = net_loss_bounds(lost, gained, n, confidence=0.9)
    assert -1 <= low <= (lost - gained) / n <= high <= 1
    assert net_loss_bounds(gained, lost, n, confidence=0.9) == pytest.approx((-high, -low))
    wide = net_loss_bounds(lost, gained, n)
    assert wide[0] <= low <= high <= wide[1]


@given(st.integers(0, 15), st.integers(0, 15), st.integers(31, 100))
@settings(deadline=None)
def test_one_more_loss_never_certifies_more(lost: int, gained: int, n: int) -> None:
    bound = net_loss_bounds(lost, gained, n, confidence=0.9)[1]
    assert net_loss_bounds(lost + 1, gained, n, confidence=0.9)[1] >= bound


@pytest.mark.parametrize("n", [6, 12])
def test_the_upper_bound_misses_at_most_as_often_as_it_says_whatever_the_truth(n: int) -> None:
    """By enumeration over all outcomes; rare gains are the hard case, for their bound changes when there is one."""
    bounds = {(a, b): net_loss_bounds(a, b, n, confidence=0.9)[1] for a in range(n + 1) for b in range(n + 1 - a)}
    worst = 0.0
    for loss in (k / 40 for k in range(41)):
        for gain in (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
            same = 1 - loss - gain
            if same < 0:
                continue
            missed = math.fsum(
                math.comb(n, a) * math.comb(n - a, b) * loss**a * gain**b * same ** (n - a - b)
                for (a, b), bound in bounds.items()
                if bound < loss - gain - 1e-12
            )
            worst = max(worst, missed)
    assert 0.03 < worst <= 0.05


@pytest.mark.parametrize(
    "call", [lambda: net_loss_interval(3, 3, 5), lambda: net_loss_bounds(3, 3, 5), lambda: mcnemar_p(-1, 0)]
)
def test_impossible_counts_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match=r"flips among|negative"):
        call()  # type: ignore[operator]
