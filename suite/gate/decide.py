"""From numbers to a verdict. Three ways: beyond the tolerance, within it, or cannot tell.

`suite.gate.family` gives each test its level: what it may spend of the 5 % of the whole run.
"""

from __future__ import annotations

import math

from suite.gate.sessions import doubt
from suite.metrics.catalog import SPECS
from suite.records import Aspect, Comparison, Direction, Tier, Tolerance, Verdict
from suite.stats.intervals import Estimate, p_above, p_below, spend, spend_late

PASS_ALPHA = 0.05
"""Chance that a check says PASS although the drift is beyond its tolerance. Not divided among the checks: that all of them
hold is a claim that each of them must earn by itself."""
GAIN_ALPHA = 0.05
"""The same for IMPROVED, which fails nothing."""

RATIOS = frozenset({"mean_kld", "decode_kld", "path_distance"})
"""Metrics of quality of which the drift is a share of the old value."""

_ROUNDING = 1e-9
"""Shares such as 0.52 - 0.44 miss their decimal value by this much at most; not a loss beyond a tolerance of 0.08."""


def limit_of(comparison: Comparison, tolerance: Tolerance) -> float:
    """The tolerance as one number on the scale of the drift.

    Beyond the tolerance means beyond both of its parts, so the larger one counts: as a share of the baseline's value
    for speed and memory, in the metric's own unit for quality. Side by side the tolerance may be tighter. What grew from
    nothing has no share, so that its limit is the absolute part, in the metric's own unit.
    """
    if grew_from_nothing(comparison):
        return tolerance.absolute + _ROUNDING
    base = abs(comparison.baseline or 0.0) + comparison.numeric_floor
    side_by_side = comparison.tier is Tier.DUET and tolerance.duet is not None
    relative = tolerance.duet if side_by_side and tolerance.duet is not None else tolerance.relative
    if not is_ratio(comparison):
        return max(relative * base, tolerance.absolute) + _ROUNDING
    return max(relative, tolerance.absolute / base if base else 0.0) + _ROUNDING


def grew_from_nothing(comparison: Comparison) -> bool:
    """Whether memory was needed where the baseline has none."""
    return comparison.aspect is Aspect.MEMORY and comparison.baseline == 0 and bool(comparison.observed)


def log_limit(comparison: Comparison, share: float) -> float:
    """From a share of the old value that was lost to the log ratio (positive is worse), on which intervals are symmetric.

    Log-probabilities are on that scale already.
    """
    if not is_ratio(comparison):
        return share
    if SPECS[comparison.metric].direction is Direction.LOWER:
        return math.log1p(share)
    return -math.log1p(-share) if share < 1 else math.inf


def is_ratio(comparison: Comparison) -> bool:
    """Whether a drift is a share of the old value: of all but answers, which lose credit, and log-probabilities."""
    return comparison.aspect is not Aspect.QUALITY or comparison.metric in RATIOS


def is_estimated(comparison: Comparison) -> bool:
    """Whether a t interval decides: speeds, and log-probabilities."""
    return comparison.aspect is Aspect.SPEED or SPECS[comparison.metric].unit == "nats"


def looks_factor(comparison: Comparison) -> float:
    """By which the level of an accusation is divided, since speed may be judged again with more launches. Answers are judged
    once: a rerun gives the same ones.
    """
    return 1 / spend_late(1.0, comparison.looks) if comparison.aspect is Aspect.SPEED else 1.0


def find_settled(comparison: Comparison) -> Verdict | None:
    """The verdict when no tolerance is needed for it, else None."""
    if comparison.unresolved is not None:
        return comparison.unresolved
    if comparison.contended:
        return Verdict.INCONCLUSIVE
    if comparison.observed is None or comparison.baseline is None:
        return Verdict.NOT_MEASURED
    return Verdict.PASS if comparison.identical else None


def verdict_of_speed(comparison: Comparison, limit: float, level: float) -> Verdict:
    """By the t test of "no worse than the tolerance" at `level`, and of "no better than the tolerance".

    No interval, a machine that was not as it should be, or one whose own change could be the whole of it: INCONCLUSIVE.
    """
    estimate = estimate_of(comparison)
    if estimate is None or comparison.flags:
        return Verdict.INCONCLUSIVE
    verdict = _weigh(estimate, comparison, limit, level)
    if verdict is not Verdict.INCONCLUSIVE and blames_machine(comparison, limit, level):
        return Verdict.INCONCLUSIVE
    return verdict


def estimate_of(comparison: Comparison) -> Estimate | None:
    """The drift on the scale of logs; None when there is no spread to go by."""
    if comparison.log_drift is None or comparison.log_se is None or comparison.log_df is None:
        return None
    return Estimate(comparison.log_drift, comparison.log_se, comparison.log_df)


def blames_machine(comparison: Comparison, limit: float, level: float) -> bool:
    """Whether the machine's own drift could be the whole of it.

    A yardstick is a witness, not a correction: the verdict stands only if it would be the same had the machine been as
    fast as when the baseline was accepted, by every yardstick. So a slow hour is no regression, and a fast one hides
    none; neither is ever a PASS.
    """
    estimate = estimate_of(comparison)
    if estimate is None or not comparison.machine_drift:
        return False
    now = _weigh(estimate, comparison, limit, level)
    shifted = [
        Estimate(estimate.mean + math.log1p(-drift), estimate.se, estimate.df)
        for drift in comparison.machine_drift
        if drift < 1
    ]
    return any(_weigh(other, comparison, limit, level) is not now for other in shifted)


def _weigh(estimate: Estimate, comparison: Comparison, limit: float, level: float) -> Verdict:
    margin = log_limit(comparison, limit)
    accusing = doubt(estimate) if comparison.assumed else estimate
    if p_above(accusing, margin) <= level:
        return Verdict.REGRESSED
    gain = _spend(GAIN_ALPHA, comparison)
    if p_below(estimate, -margin) <= gain:
        surely = p_below(accusing, -margin) <= gain
        return Verdict.IMPROVED if surely else Verdict.INCONCLUSIVE
    return Verdict.PASS if p_below(estimate, margin) <= _spend(PASS_ALPHA, comparison) else Verdict.INCONCLUSIVE


def _spend(alpha: float, comparison: Comparison) -> float:
    """The part of `alpha` for a verdict that accuses nobody: all of it for answers, which are judged once."""
    return spend(alpha, comparison.looks) if comparison.aspect is Aspect.SPEED else alpha


def verdict_of_paired(comparison: Comparison, limit: float, level: float) -> Verdict:
    """Answers, paired by case.

    REGRESSED needs both: a net loss beyond the tolerance, and one that luck does not explain (exact one-sided p within
    `level`). IMPROVED likewise for a gain. PASS: the exact upper bound of the net loss on cases like these is within the
    tolerance. Otherwise these cases cannot tell.
    """
    loss = comparison.drift or 0.0
    if loss > limit and comparison.p_value is not None and comparison.p_value <= level:
        return Verdict.REGRESSED
    if -loss > limit and comparison.p_gain is not None and comparison.p_gain <= GAIN_ALPHA:
        return Verdict.IMPROVED
    within = comparison.interval is not None and comparison.interval[1] <= limit
    return Verdict.PASS if within else Verdict.INCONCLUSIVE


def verdict_of_values(comparison: Comparison, limit: float) -> Verdict:
    """Memory and lengths: by the values, which hardly vary.

    Where launches do differ, memory has grown only if every one now needs more than the tolerance above every one then:
    with n launches on either side luck does that once in C(2n, n), 252 for n = 5.
    """
    drift = comparison.observed if grew_from_nothing(comparison) else comparison.drift
    if drift is None:
        return Verdict.REGRESSED  # from nothing to something, in a quantity of which less is better
    least, largest = comparison.interval or (drift, drift)
    if drift > limit:
        return Verdict.REGRESSED if least > limit else Verdict.INCONCLUSIVE
    return Verdict.IMPROVED if max(drift, largest) < -limit else Verdict.PASS


def flip_counts(comparison: Comparison) -> tuple[int, int]:
    """How many cases were lost (right → wrong) and gained (wrong → right)."""
    lost = sum(flip.was_correct for flip in comparison.flips)
    return lost, len(comparison.flips) - lost
