"""What a comparison could have seen: the smallest worsening that it would have called REGRESSED at the level in force."""

from __future__ import annotations

import math

from suite.gate.decide import PASS_ALPHA, estimate_of, flip_counts, is_ratio, limit_of, log_limit
from suite.metrics.catalog import SPECS
from suite.records import Aspect, Comparison, Direction, Tolerance
from suite.stats.beta import t_quantile
from suite.stats.binomial import net_loss_bounds, smallest_significant_loss
from suite.stats.intervals import spend

_MOST_LOG = math.log(1000.0)
"""A test that sees no less than a thousandfold change sees nothing."""


def find_smallest(comparison: Comparison, tolerance: Tolerance, level: float) -> float | None:
    """The smallest worsening that a test at `level` tells from noise, on the scale of the drift; None when it tells none.

    Speeds and log-probabilities: the smallest estimate that is REGRESSED, beyond the tolerance by the quantile of t times
    its standard error. Answers: the smallest net loss, as a share of the independent cases, that McNemar's test calls one
    beside the gains that there were.
    """
    if comparison.unresolved is not None or level <= 0:
        return None
    estimate = estimate_of(comparison)
    if estimate is not None:
        margin = log_limit(comparison, limit_of(comparison, tolerance))
        return _to_drift(comparison, margin - t_quantile(level, estimate.df) * estimate.se)
    draws, gained = count_draws(comparison)
    if comparison.p_value is None or not draws:
        return None
    net = smallest_significant_loss(draws, gained=gained, alpha=level)
    return None if net is None else net / draws


def can_pass(comparison: Comparison, limit: float) -> bool:
    """Whether these data could have passed had nothing changed: with an estimate of 0, or not one answer flipped."""
    estimate = estimate_of(comparison)
    if estimate is not None:
        level = spend(PASS_ALPHA, comparison.looks) if comparison.aspect is Aspect.SPEED else PASS_ALPHA
        noise = -t_quantile(level, estimate.df) * estimate.se
        return noise <= log_limit(comparison, limit)
    draws, _ = count_draws(comparison)
    if comparison.p_value is None or not draws:
        return True
    return net_loss_bounds(0, 0, draws, confidence=1 - 2 * PASS_ALPHA)[1] <= limit


def count_draws(comparison: Comparison) -> tuple[int, int]:
    """Independent cases behind an exact test (a family counts once), and how many of them gained."""
    if comparison.draws:
        return comparison.draws, comparison.draws_gained
    return comparison.n, flip_counts(comparison)[1]


def _to_drift(comparison: Comparison, log: float) -> float | None:
    """From a log ratio to the share of the old value; log-probabilities are on their scale already."""
    if not is_ratio(comparison):
        return log
    if SPECS[comparison.metric].direction is Direction.HIGHER:
        return -math.expm1(-log)
    return math.expm1(log) if log < _MOST_LOG else None
