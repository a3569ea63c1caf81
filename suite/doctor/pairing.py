"""Two variants of one run, side by side: the launch is the sampling unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from suite.doctor.reading import first_scenario, measured
from suite.metrics.speed import launch_values
from suite.records import Run, VariantResult
from suite.stats.intervals import interval_of, paired_mean


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of speeds with its 95 % interval over launches."""

    value: float
    low: float
    high: float

    @property
    def is_below_one(self) -> bool:
        """Whether it is slower, and no accident of the launches."""
        return self.high < 1

    def __str__(self) -> str:
        return f"{self.value:.2f}× (95 %: {self.low:.2f} … {self.high:.2f})"


def compare_gaps(run: Run, mine: VariantResult, other: VariantResult) -> Ratio | None:
    """Decode speed of `mine` over that of `other`, by the median gap between tokens in the first scenario.

    Launches of the same index met the same machine. None with fewer than two of them, or where either was disturbed.
    """
    scenario = first_scenario(run)
    gaps = [measured(result, "itl_s", scenario) if scenario else None for result in (mine, other)]
    if gaps[0] is None or gaps[1] is None:
        return None
    ours, theirs = launch_values(gaps[0]), launch_values(gaps[1])
    shared = sorted(index for index in ours.keys() & theirs.keys() if ours[index] > 0 and theirs[index] > 0)
    estimate = paired_mean([math.log(theirs[index] / ours[index]) for index in shared])
    if estimate is None:
        return None
    low, high = interval_of(estimate)
    return Ratio(math.exp(estimate.mean), math.exp(low), math.exp(high))
