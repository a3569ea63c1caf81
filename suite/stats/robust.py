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


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean. Raises ValueError for no values."""
    return statistics.fmean(values)


def harmonic_mean(values: Sequence[float]) -> float:
    """The mean of rates over equal amounts of work: all work / all time. Raises ValueError for no values."""
    return float(statistics.harmonic_mean(values))


def group_by(values: Sequence[float], groups: Sequence[int]) -> dict[int, list[float]]:
    """The values of each group, by group in ascending order. Raises ValueError when the two differ in length."""
    members: dict[int, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return {group: members[group] for group in sorted(members)}
