"""Dominance: claimed only where intervals lie apart, and an order that no data can turn into a circle."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.stats.dominance import Reading, Relation, beats, dominates, find_standings, reading, relate

NUMBERS = st.integers(-4, 4).map(float)


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return Reading(value, low, high)


@st.composite
def slack_readings(draw: st.DrawFn) -> Reading:
    return replace(draw(readings()), slack=1.0)


POINTS = st.lists(st.tuples(readings(), readings(), slack_readings()), min_size=1, max_size=7).map(
    lambda found: {f"v{number}": point for number, point in enumerate(found)}
)


@pytest.mark.parametrize(("one", "other", "relation"), [
    ((2.0, (1.5, 2.5)), (1.0, (0.5, 1.4)), Relation.BETTER),
    ((1.0, (0.5, 1.4)), (2.0, (1.5, 2.5)), Relation.WORSE),
    ((2.0, (1.4, 2.5)), (1.0, (0.5, 1.4)), Relation.UNTOLD),
    ((2.0, (2.0, 2.0)), (2.0, (2.0, 2.0)), Relation.EQUAL),
    ((2.0, (2.0, 2.0)), (2.0, (1.9, 2.1)), Relation.UNTOLD),
    ((9.0, None), (1.0, (0.5, 1.4)), Relation.UNTOLD),
])  # fmt: skip
def test_two_readings_are_told_apart_by_their_intervals(
    one: tuple[float, tuple[float, float] | None], other: tuple[float, tuple[float, float] | None], relation: Relation
) -> None:
    assert relate(reading(*one, more_is_better=True), reading(*other, more_is_better=True)) is relation


def test_less_is_better_where_it_is() -> None:
    small, large = (reading(v, (v - 0.1, v + 0.1), more_is_better=False) for v in (1.0, 2.0))
    assert relate(small, large) is Relation.BETTER
    assert small.low <= small.value <= small.high


def test_what_is_exact_needs_no_interval_and_what_has_none_is_anywhere() -> None:
    assert reading(1.0, None, more_is_better=True, exact=True) == Reading(1.0, 1.0, 1.0)
    assert reading(1.0, None, more_is_better=False) == Reading(-1.0, -math.inf, math.inf)


def test_dominating_takes_every_quantity() -> None:
    better, worse, equal = Reading(2, 1.8, 2.2), Reading(1, 0.8, 1.2), Reading(5, 5, 5)
    unsure = Reading(2, 0.9, 3)
    assert dominates((better, equal), (worse, equal))
    assert not dominates((better, unsure), (worse, Reading(1, 0, 2)))
    assert not dominates((equal, equal), (equal, equal))
    assert not dominates((better, worse), (worse, better))


def test_a_standing_names_who_is_better_by_estimates_and_who_for_sure() -> None:
    points = {
        "best": (Reading(3, 2.9, 3.1), Reading(3, 2.9, 3.1)),
        "close": (Reading(2.9, 2.8, 3.0), Reading(2.0, 1.9, 2.1)),
        "far": (Reading(1, 0.9, 1.1), Reading(1, 0.9, 1.1)),
        "other": (Reading(0, 0, 0), Reading(9, 8, 10)),
    }
    found = find_standings(points)
    assert [name for name, standing in found.items() if standing.on_front] == ["best", "other"]
    assert (found["close"].beaten_by, found["close"].dominated_by) == (("best",), ())
    assert found["far"].dominated_by == ("best", "close")


def test_a_difference_within_the_slack_counts_as_none() -> None:
    heavy, light, lightest = (
        reading(weight, (weight, weight), more_is_better=False, slack=1.0) for weight in (14, 13, 11)
    )
    good, fair, poor = (Reading(value, value, value) for value in (3, 2, 1))
    assert [relate(light, heavy), relate(lightest, heavy)] == [Relation.EQUAL, Relation.BETTER]
    found = find_standings({"good": (good, heavy), "fair": (fair, light), "poor": (poor, lightest)})
    assert found["fair"].beaten_by == found["fair"].dominated_by == ("good",)
    assert found["poor"].on_front  # only "fair" beats it, which is not on the front
    assert found["poor"].dominated_by == ()


def test_what_is_on_the_front_is_not_dominated_by_what_is_beaten_itself() -> None:
    heavy, light, lightest = (
        reading(weight, (weight, weight), more_is_better=False, slack=1.0) for weight in (14, 13, 11)
    )
    unsure, fair, poor = Reading(3, 1.5, 4), Reading(2, 2, 2), Reading(1, 1, 1)
    points = {"unsure": (unsure, heavy), "fair": (fair, light), "poor": (poor, lightest)}
    assert dominates(points["fair"], points["poor"])
    found = find_standings(points)
    assert (found["fair"].beaten_by, found["fair"].dominated_by) == (("unsure",), ())
    assert (found["poor"].on_front, found["poor"].dominated_by) == (True, ())


def test_an_interval_that_reaches_beyond_the_slack_is_not_told_apart() -> None:
    one, other = Reading(5, 4.9, 5.1, slack=0.5), Reading(5.2, 4.0, 5.3, slack=0.5)
    assert relate(one, other) is relate(other, one) is Relation.UNTOLD


@given(POINTS)
def test_nobody_on_the_front_is_dominated_and_whoever_is_not_on_it_is_beaten_by_somebody_who_is(
    points: dict[str, tuple[Reading, ...]],
) -> None:
    found = find_standings(points)
    front = {name for name, standing in found.items() if standing.on_front}
    assert front
    for name, standing in found.items():
        assert not (name in front and standing.dominated_by)
        assert set(standing.beaten_by) <= front
        assert all(beats(points[other], points[name]) for other in (*standing.beaten_by, *standing.dominated_by))
        assert all(dominates(points[other], points[name]) for other in standing.dominated_by)


@given(POINTS)
def test_without_slack_whoever_is_dominated_by_anybody_is_told_so(points: dict[str, tuple[Reading, ...]]) -> None:
    points = {name: tuple(replace(one, slack=0.0) for one in point) for name, point in points.items()}
    found = find_standings(points)
    for name, point in points.items():
        over = any(dominates(other, point) and beats(other, point) for other in points.values())
        assert bool(found[name].dominated_by) is over
        assert all(not found[other].dominated_by for other in found[name].dominated_by)


@given(st.lists(st.tuples(readings(), readings(), slack_readings()), min_size=3, max_size=3))
def test_dominating_is_a_strict_order_where_there_is_no_slack(points: list[tuple[Reading, ...]]) -> None:
    one, two, _ = points
    assert not dominates(one, one)
    assert not (dominates(one, two) and dominates(two, one))
    one, two, three = (tuple(replace(reading, slack=0.0) for reading in point) for point in points)
    if dominates(one, two) and dominates(two, three):
        assert dominates(one, three)
