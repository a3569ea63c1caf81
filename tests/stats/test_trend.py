"""A slope that single stalls cannot move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.trend import theil_sen


def test_a_line_has_its_own_slope() -> None:
    assert theil_sen([0, 1, 2, 5], [1, 3, 5, 11]) == pytest.approx(2)


def test_the_median_of_all_pairs_by_hand() -> None:
    assert theil_sen([0, 1, 2], [0, 1, 5]) == pytest.approx(2.5)  # 1, 2.5, 4
    assert theil_sen([0, 1, 3], [0, 2, 3]) == pytest.approx(1.0)  # 2, 1, 0.5


def test_a_stall_does_not_move_it() -> None:
    calm = [10.0, 9.9, 9.8, 9.7, 9.6, 9.5, 9.4]
    stalled = [*calm[:3], 500.0, *calm[4:]]
    assert theil_sen(range(7), calm) == pytest.approx(-0.1)
    assert theil_sen(range(7), stalled) == pytest.approx(-0.1)


def test_two_values_at_the_same_place_have_no_slope_between_them() -> None:
    assert theil_sen([1, 1, 2], [0, 100, 100]) == pytest.approx(50)  # 100 and 0


@pytest.mark.parametrize(("xs", "ys"), [([], []), ([1], [5]), ([2, 2], [1, 9])])
def test_without_two_places_there_is_no_trend(xs: list[float], ys: list[float]) -> None:
    assert theil_sen(xs, ys) == 0.0


def test_both_sides_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="zip"):
        theil_sen([1, 2], [1])


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=9, unique=True), st.integers(-9, 9))
def test_adding_a_line_adds_its_slope(xs: list[int], slope: int) -> None:
    ys = [float(x % 7) for x in xs]
    tilted = [y + slope * x for x, y in zip(xs, ys, strict=True)]
    assert theil_sen(xs, tilted) == pytest.approx(theil_sen(xs, ys) + slope)
