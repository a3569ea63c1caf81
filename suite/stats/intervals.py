"""Student-t intervals on logarithms, so that a ratio and its inverse are treated alike.

The sampling unit is the launch (one fresh load), never the token: tokens of one launch share its luck with memory pages
and are autocorrelated, and bootstrapping them covers about 65 % where 95 % is claimed. A t interval on launch medians
covers what it says.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

STORED_SD_FLOOR = 0.015
"""Standard deviation of log(value) from session to session, below which the spread of a few launches is not believed
when a stored number is compared: launches within one session share that session's state of the machine."""

PAIRED_SD_FLOOR = 0.003
"""The same floor for ratios measured side by side in one session, where the session cancels."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean or a difference of means, on the scale of the logarithm."""

    estimate: float
    low: float
    high: float
    df: float

    @property
    def half_width(self) -> float:
        """Distance from the estimate to either end: the smallest estimate that would have excluded zero."""
        return (self.high - self.low) / 2


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t with `df` degrees of freedom (need not be whole)."""
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]  # slow

    return float(stdtrit(df, probability))


def mean_interval(
    logs: Sequence[float], *, sd_floor: float = PAIRED_SD_FLOOR, confidence: float = 0.95
) -> Interval | None:
    """Student-t interval of the mean of log ratios, one per launch; the sample SD counts as at least `sd_floor`.

    None for fewer than two values: one launch says nothing about how launches vary.
    """
    if len(logs) <= 1:
        return None
    sd = max(statistics.stdev(logs), sd_floor)
    df = len(logs) - 1
    return _interval(statistics.fmean(logs), sd / math.sqrt(len(logs)), df, confidence)


def welch_interval(
    now: Sequence[float], then: Sequence[float], *, sd_floor: float = STORED_SD_FLOOR, confidence: float = 0.95
) -> Interval | None:
    """Welch's interval of mean(now) - mean(then) for two independent sets of logs, one value per launch.

    Each side's SD counts as at least `sd_floor`; degrees of freedom by Welch-Satterthwaite from the floored SDs. A
    side with a single launch borrows the other's SD and degrees of freedom (the interval is then wide, as it should
    be); with a single launch on both sides, or none on either, there is no interval: None.

    Source: B. L. Welch, "The generalization of Student's problem", Biometrika 34 (1947).
    """
    if not now or not then or len(now) == len(then) == 1:
        return None
    estimate = statistics.fmean(now) - statistics.fmean(then)
    if min(len(now), len(then)) == 1:
        many = now if len(now) > 1 else then
        sd = max(statistics.stdev(many), sd_floor)
        return _interval(estimate, sd * math.sqrt(1 + 1 / len(many)), len(many) - 1, confidence)
    variances = [max(statistics.stdev(side), sd_floor) ** 2 / len(side) for side in (now, then)]
    total = sum(variances)
    if total == 0:
        return Interval(estimate, estimate, estimate, float(len(now) + len(then) - 2))
    df = total**2 / sum(v**2 / (len(side) - 1) for v, side in zip(variances, (now, then), strict=True))
    return _interval(estimate, math.sqrt(total), df, confidence)


def launches_to_settle(half_width: float, gap: float, n_now: int, n_then: int) -> int | None:
    """How many launches in all would shrink a Welch `half_width` to `gap`, if the spread stays as it is.

    The variance of the difference goes as 1/n_now + 1/n_then, and only n_now can still grow. None when no number of
    launches would do: the baseline has too few of its own, or the estimate lies on the limit.
    """
    if gap <= 0 or half_width <= 0 or n_now < 1 or n_then < 1:
        return None
    room = (1 / n_now + 1 / n_then) * (gap / half_width) ** 2 - 1 / n_then
    return max(math.ceil(1 / room), n_now + 1) if room > 0 else None


def _interval(estimate: float, standard_error: float, df: float, confidence: float) -> Interval:
    half = t_quantile(0.5 + confidence / 2, df) * standard_error
    return Interval(estimate, estimate - half, estimate + half, df)
