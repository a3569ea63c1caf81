"""Estimators that a single stall cannot move."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

MAD_TO_SD = 1.4826
"""MAD × this estimates the standard deviation of normally distributed data (1 / Φ⁻¹(3/4))."""


def median(values: Sequence[float]) -> float:
    """The middle value; the mean of the two middle ones for an even count. Raises ValueError for no values."""
    if not values:
        raise ValueError("the median of no values")
    return float(statistics.median(values))


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, unscaled (× `MAD_TO_SD` for a standard deviation)."""
    centre = median(values)
    return median([abs(value - centre) for value in values])


def group_medians(values: Sequence[float], groups: Sequence[int]) -> dict[int, float]:
    """Median of the values of each group, by group in ascending order: one number a launch, the sampling unit.

    Raises ValueError when the two sequences differ in length.
    """
    members: dict[int, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return {group: median(members[group]) for group in sorted(members)}


def median_of_groups(values: Sequence[float], groups: Sequence[int]) -> float:
    """Median over the groups of the median within each group; every launch counts once, however many samples it has."""
    return median(list(group_medians(values, groups).values()))
