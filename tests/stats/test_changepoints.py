"""Change points: rarely where there is none, mostly where there is one, and at the right run."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.changepoints import FEWEST_RUNS, _p_value, fewest_to_see, find_shifts, normal_scores

SURELY = 1e-4
"""Chance that a test of a share fails although the share is as it should be."""


def noise(seed: int, n: int) -> list[float]:
    drawn: list[float] = numpy.random.default_rng(seed).normal(size=n).tolist()
    return drawn


def stepped(seed: int, n: int, at: int, size: float, until: int | None = None) -> list[float]:
    end = n if until is None else until
    return [value + size * (at <= place < end) for place, value in enumerate(noise(seed, n))]


def places(values: Sequence[float], level: float = 0.01) -> list[int]:
    return [shift.index for shift in find_shifts(values, level=level)]


def most_alarms(count: int, level: float) -> int:
    """More than these of `count` tests at `level` are as good as impossible."""
    from scipy.stats import binom

    return int(binom.isf(SURELY, count, level))


@pytest.mark.parametrize(
    ("n", "level", "count"), [(12, 0.05, 1200), (30, 0.05, 1200), (60, 0.05, 400), (30, 0.01, 400)]
)
def test_false_alarms_are_as_rare_as_the_level_says(n: int, level: float, count: int) -> None:
    alarms = sum(bool(find_shifts(noise(seed, n), level=level, seed=seed)) for seed in range(count))
    assert alarms <= most_alarms(count, level)


def test_the_bound_on_false_alarms_would_catch_a_test_twice_too_eager() -> None:
    from scipy.stats import binom

    assert binom.cdf(most_alarms(1200, 0.05), 1200, 0.10) < 0.01


@pytest.mark.parametrize("kind", ["heavy tails", "few values"])
def test_false_alarms_are_rare_in_other_noise_too(kind: str) -> None:
    generator = numpy.random.default_rng(3)
    count = 400
    alarms = 0
    for seed in range(count):
        draw = generator.standard_t(1.5, size=25) if kind == "heavy tails" else generator.integers(0, 3, size=25)
        alarms += bool(find_shifts(draw.tolist(), level=0.05, seed=seed))
    assert alarms <= most_alarms(count, 0.05)


@pytest.mark.parametrize(("n", "level", "share"), [(30, 0.01, 0.75), (60, 0.001, 0.9)])
def test_a_shift_of_two_standard_deviations_is_found_where_it_is(n: int, level: float, share: float) -> None:
    count = 40
    found = [find_shifts(stepped(seed, n, n // 2, 2.0), level=level, seed=seed) for seed in range(count)]
    errors = [min(abs(shift.index - n // 2) for shift in shifts) for shifts in found if shifts]
    assert len(errors) >= share * count
    assert statistics.median(errors) <= 1
    assert sum(error <= 3 for error in errors) >= 0.9 * len(errors)
    assert statistics.fmean(len(shifts) for shifts in found if shifts) <= 1.1


def test_a_large_shift_is_found_at_its_very_run() -> None:
    (shift,) = find_shifts(stepped(1, 50, 31, 8.0))
    assert shift.index == 31
    assert shift.before == pytest.approx(0, abs=0.5)
    assert shift.after == pytest.approx(8, abs=0.5)
    assert shift.p_value <= 0.01


def test_a_night_between_two_levels_belongs_to_the_nearer_one() -> None:
    """Ranks alone would give it to the new level: it is the highest of the old one, and the new one is short."""
    values = [value / 10 + 10 * (place >= 30) for place, value in enumerate(noise(9, 40))]
    values[29] = 4.0
    (shift,) = find_shifts(values)
    assert shift.index == 30
    values[29] = 6.0
    (shift,) = find_shifts(values)
    assert shift.index == 29


def test_a_level_that_came_back_is_two_shifts() -> None:
    assert places(stepped(2, 60, 20, 6.0, until=32)) == [20, 32]


def test_several_levels_are_told_apart_and_their_medians_given() -> None:
    values = [5 * math.floor(place / 20) + value / 2 for place, value in enumerate(noise(4, 80))]
    shifts = find_shifts(values)
    assert [shift.index for shift in shifts] == [20, 40, 60]
    assert [shift.after for shift in shifts[:-1]] == [shift.before for shift in shifts[1:]]


def test_one_weak_shift_is_seldom_told_as_several() -> None:
    """An arc may end a little before the series does: without the bounds' being held against their neighbours, 30 % were."""
    told = [len(places(stepped(seed, 60, 30, 1.0), level=0.05)) for seed in range(60)]
    assert sum(count >= 1 for count in told) > 30
    assert sum(count > 1 for count in told) <= 10


def test_no_shift_is_certain() -> None:
    """A share of random orders is never taken as 0, though none of those that were drawn was as sharp."""
    (shift,) = find_shifts(stepped(1, 40, 20, 50.0), level=0.01)
    assert 0 < shift.p_value < 0.01


@pytest.mark.parametrize(("every", "p"), [(1, 1.0), (2, 0.5), (10, 0.1), (25, 0.04)])
def test_a_test_that_stops_early_counts_the_draw_that_stopped_it(every: int, p: float) -> None:
    """Besag and Clifford's p: the tenth order that is as sharp is the 10 / p-th that was drawn, and never before the tenth."""
    drawn = itertools.count(1)

    def as_sharp(orders: numpy.ndarray) -> numpy.ndarray:
        return numpy.array([float(next(drawn) % every == 0) for _ in orders])

    assert _p_value([0.0, 1.0], 1.0, as_sharp, 0.01, numpy.random.default_rng(0)) == pytest.approx(p)


def test_a_test_that_does_not_stop_counts_the_observed_order() -> None:
    def never(orders: numpy.ndarray) -> numpy.ndarray:
        return numpy.zeros(len(orders))

    assert _p_value([0.0, 1.0], 1.0, never, 0.01, numpy.random.default_rng(0)) == pytest.approx(1 / 501)


def test_a_wild_night_is_no_level() -> None:
    values = noise(5, 40)
    values[17] += 50.0
    assert places(values) == []
    values[17 + 11] -= 50.0
    assert places(values) == []


def test_a_wild_night_hides_no_shift() -> None:
    values = stepped(6, 50, 25, 4.0)
    values[8] += 40.0
    assert places(values) == [25]


def test_what_is_exact_shifts_as_soon_as_it_is_a_level() -> None:
    steady = [0.52] * 40
    assert places([*steady, *[0.5] * (FEWEST_RUNS - 1)]) == []
    (shift,) = find_shifts([*steady, *[0.5] * FEWEST_RUNS])
    assert (shift.index, shift.before, shift.after) == (40, 0.52, 0.5)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 50, [1.0, 2.0] * 3, [1, 1, 1, 1, 9, 9, 9]])
def test_what_never_moved_or_is_too_short_has_no_shift(values: list[float]) -> None:
    assert find_shifts(values, level=0.4) == ()


def test_the_same_seed_gives_the_same_shifts() -> None:
    values = stepped(7, 40, 15, 1.5)
    assert find_shifts(values, level=0.1, seed=3) == find_shifts(values, level=0.1, seed=3)


@given(st.integers(0, 50), st.floats(0.01, 1000), st.floats(-1000, 1000))
@settings(max_examples=20, deadline=None)
def test_the_unit_does_not_matter(seed: int, scale: float, origin: float) -> None:
    values = stepped(seed, 30, 14, 3.0)
    assert places([scale * value + origin for value in values]) == places(values)


def test_whether_it_rose_or_fell_does_not_matter() -> None:
    values = stepped(8, 40, 22, 3.0)
    assert places([-value for value in values]) == places(values) != []


@given(st.lists(st.integers(0, 6), min_size=8, max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_level_is_shorter_than_it_may_be(values: list[int]) -> None:
    edges = [0, *places(values, level=0.3), len(values)]
    assert all(later - earlier >= FEWEST_RUNS for earlier, later in itertools.pairwise(edges))


@pytest.mark.parametrize("level", [0.2, 0.05, 0.01, 0.001])
def test_fewer_runs_than_are_said_to_be_needed_show_nothing_and_those_do(level: float) -> None:
    needed = fewest_to_see(level)
    for n, seen in ((needed - 1, False), (needed + 2, True)):
        values = [float(place + 100 * (place >= n // 2)) for place in range(n // 2)]
        values += [1000.0 + place for place in range(n - n // 2)]
        assert bool(places(values, level)) is (seen and n >= 2 * FEWEST_RUNS)


def test_the_shortest_series_is_counted_right() -> None:
    """By brute force: in 8 values, of all orders, those in which four and four lie as far apart."""
    halves = list(itertools.combinations(range(8), 4))
    as_sharp = sum(set(half) in ({0, 1, 2, 3}, {4, 5, 6, 7}) for half in halves)
    assert as_sharp / len(halves) == pytest.approx(2 / 70)
    assert fewest_to_see(2 / 70) == 8
    assert fewest_to_see(2 / 70 - 1e-9) > 8


def test_normal_scores_are_those_of_van_der_waerden() -> None:
    from scipy.stats import norm

    assert normal_scores([30.0, 10.0, 20.0]) == pytest.approx(norm.ppf([0.75, 0.25, 0.5]))


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_normal_scores_sum_to_nothing_and_equal_values_share_theirs(values: list[float]) -> None:
    scores = normal_scores(values)
    assert math.fsum(scores) == pytest.approx(0, abs=1e-9)
    by_value = sorted(zip(values, scores, strict=True))
    assert all(later[1] >= earlier[1] for earlier, later in itertools.pairwise(by_value))
    assert len(set(by_value)) == len(set(values))


@pytest.mark.parametrize("values", [[1.0, math.nan], [math.inf]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="not finite"):
        find_shifts(values)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_what_is_no_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        find_shifts([1.0] * 20, level=level)
