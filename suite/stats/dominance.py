"""Which of several things is better than which in everything that counts (Pareto), by estimates and as far as intervals tell.

A claim that one thing dominates another needs more than estimates in order: of each quantity the intervals must lie apart, or
both values must be exact and equal. Where a quantity has a slack, values and intervals must lie further apart than it says to
count as different, and what lies nowhere further apart counts as equal. Two 95 % intervals that lie apart are a stricter demand
than an interval of the difference that leaves out 0 (N. Schenker and J. F. Gentleman, The American Statistician 55 (2001)),
which leaves some room for the many pairs that are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Reading:
    """One quantity of one thing, turned so that more is better."""

    value: float
    low: float
    """At most `high`."""
    high: float
    slack: float = 0.0
    """Half of a difference that counts as none."""


Point = Sequence[Reading]
"""The quantities of one thing; those of two things are in the same order."""


class Relation(StrEnum):
    """How one reading stands to another one."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"
    """In fact: both are exact, or the slack makes them so."""
    UNTOLD = "not told apart"


@dataclass(frozen=True, slots=True)
class Standing:
    """Who is better than one thing in everything, in the order of the points."""

    beaten_by: tuple[str, ...] = ()
    """By estimates: at least as good in all, better in one. Only things that are on the front."""
    dominated_by: tuple[str, ...] = ()
    """For sure, of what is not on the front. Only things that nothing dominates; all of them beat it by estimates too."""

    @property
    def on_front(self) -> bool:
        """Whether nothing that is on it beats this."""
        return not self.beaten_by


def reading(
    value: float,
    interval: tuple[float, float] | None,
    *,
    more_is_better: bool,
    exact: bool = False,
    slack: float = 0.0,
) -> Reading:
    """A reading of a quantity; one that is not `exact` and has no interval is told apart from nothing."""
    low, high = interval or ((value, value) if exact else (-math.inf, math.inf))
    return Reading(value, low, high, slack) if more_is_better else Reading(-value, -high, -low, slack)


def relate(one: Reading, other: Reading) -> Relation:
    """`one` as seen from `other`: equal where both are exact and equal, or nowhere further apart than the slack."""
    slack = one.slack + other.slack
    if one.low > other.high + slack:
        return Relation.BETTER
    if one.high + slack < other.low:
        return Relation.WORSE
    apart = max(one.high, other.high) - min(one.low, other.low)
    return Relation.EQUAL if apart <= slack else Relation.UNTOLD


def beats(one: Point, other: Point) -> bool:
    """By estimates: at least as good in all, better in one."""
    pairs = list(zip(one, other, strict=True))
    return not any(_is_ahead(theirs, mine) for mine, theirs in pairs) and any(
        _is_ahead(mine, theirs) for mine, theirs in pairs
    )


def _is_ahead(one: Reading, other: Reading) -> bool:
    return one.value > other.value + one.slack + other.slack


def dominates(one: Point, other: Point) -> bool:
    """For sure: better or equal in all, better in one. Without slack a strict order; slacks add up, so that what dominates
    one thing need not dominate what that one does.
    """
    relations = {relate(mine, theirs) for mine, theirs in zip(one, other, strict=True)}
    return Relation.BETTER in relations and relations <= {Relation.BETTER, Relation.EQUAL}


def find_standings(points: Mapping[str, Point]) -> dict[str, Standing]:
    """How each thing stands among the others, by name; all points have the same quantities, one of them at most with slack."""
    front, sure = _find_front(points, beats), _find_front(points, _is_over)
    return {
        name: Standing(
            beaten_by=tuple(other for other in points if other in front and beats(points[other], point)),
            dominated_by=tuple(
                other for other in points if name not in front and other in sure and _is_over(points[other], point)
            ),
        )
        for name, point in points.items()
    }


def _find_front(points: Mapping[str, Point], is_over: Callable[[Point, Point], bool]) -> set[str]:
    """The things over which none of them is, and one of which is over each that is not among them.

    Nothing goes round in a circle as long as one quantity alone has slack.
    """
    front: set[str] = set()
    left = dict(points)
    while left:
        free = {name for name in left if not any(is_over(other, left[name]) for other in left.values())}
        front |= free
        left = {
            name: point
            for name, point in left.items()
            if name not in free and not any(is_over(points[other], point) for other in free)
        }
    return front


def _is_over(one: Point, other: Point) -> bool:
    """Whether estimates and intervals say the same."""
    return beats(one, other) and dominates(one, other)
