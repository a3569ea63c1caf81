"""Many tests at once: levels by hand, and false alarms by simulation."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.binomial import mcnemar_p
from suite.stats.holm import Tested as One  # pytest would collect a class of that name
from suite.stats.holm import family_size, holm_levels
from suite.stats.signflip import least_p


def rejected(tests: list[One], alpha: float = 0.05) -> list[int]:
    return [i for i, (test, level) in enumerate(zip(tests, holm_levels(tests, alpha), strict=True)) if test.p <= level]


def mcnemar(lost: int, gained: int) -> One:
    return One(mcnemar_p(lost, gained), least_p([1.0] * (lost + gained)))


def test_the_levels_of_holm_by_hand() -> None:
    tests = [One(0.04), One(0.001), One(0.02), One(0.3)]
    assert holm_levels(tests, 0.05) == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert rejected(tests) == [1]


def test_each_rejection_makes_room_for_the_next() -> None:
    tests = [One(0.04), One(0.001), One(0.016), One(0.024)]
    assert rejected(tests) == [0, 1, 2, 3]
    assert rejected([One(0.04), One(0.013), One(0.016), One(0.024)]) == []


def test_a_single_test_has_all_of_the_level_and_none_has_none() -> None:
    assert holm_levels([One(0.05)], 0.05) == [0.05]
    assert holm_levels([], 0.05) == []


def test_tests_with_too_few_flips_to_reach_the_level_do_not_count() -> None:
    crowd = [mcnemar(1, 0), mcnemar(2, 1), mcnemar(0, 3), mcnemar(0, 0), mcnemar(2, 2)]
    assert family_size([mcnemar(5, 0), *crowd], 0.05) == 1
    assert holm_levels([mcnemar(5, 0), *crowd], 0.05) == [0.05, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert holm_levels([mcnemar(4, 1), *crowd], 0.05) == [0.05, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_as_many_tests_as_could_reach_their_share_count() -> None:
    assert family_size([mcnemar(5, 0)] * 9, 0.05) == 0  # 1/32 is more than half of 5 %
    assert rejected([mcnemar(5, 0)] * 9) == []
    assert family_size([mcnemar(8, 0)] * 9, 0.05) == 9
    assert rejected([mcnemar(8, 0)] * 9) == list(range(9))


def test_what_is_clearly_lost_does_not_stand_in_the_way_of_the_rest() -> None:
    tests = [mcnemar(20, 0), mcnemar(5, 0), mcnemar(1, 1)]
    assert family_size(tests, 0.05) == 2
    assert rejected(tests) == [0, 1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_continuous_tests_are_rejected_as_holm_says(values: list[float]) -> None:
    ordered = sorted(range(len(values)), key=lambda index: values[index])
    expected = set()
    for rank, index in enumerate(ordered):
        if values[index] > 0.05 / (len(values) - rank):
            break
        expected.add(index)
    assert set(rejected([One(value) for value in values])) == expected


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=6), st.integers(0, 5))
def test_a_smaller_p_never_saves_another_test(flips: list[tuple[int, int]], which: int) -> None:
    tests = [mcnemar(*flip) for flip in flips]
    which %= len(tests)
    stronger = [One(t.p_least, t.p_least) if index == which else t for index, t in enumerate(tests)]
    assert set(rejected(tests)) <= set(rejected(stronger))


def test_false_alarms_among_many_continuous_tests_stay_within_the_level() -> None:
    generator = numpy.random.default_rng(1)
    draws = generator.uniform(size=(4000, 10))
    wrong = sum(bool(rejected([One(p) for p in row])) for row in draws.tolist())
    assert 0.035 < wrong / 4000 < 0.06  # neither too many nor a procedure that never rejects


def test_false_alarms_stay_within_the_level_beside_true_losses() -> None:
    """Three tests of answers are truly lost; seven are not, with flips enough to be tested, or too few."""
    generator = numpy.random.default_rng(2)
    flips = [4, 5, 6, 7, 8, 9, 12]
    lost = generator.binomial(flips, 0.5, size=(4000, len(flips)))
    wrong = 0
    for row in lost.tolist():
        innocent = [mcnemar(k, m - k) for k, m in zip(row, flips, strict=True)]
        wrong += any(index >= 3 for index in rejected([mcnemar(15, 0)] * 3 + innocent))
    assert wrong / 4000 < 0.055
    assert wrong > 0
