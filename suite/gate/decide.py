"""From numbers to a verdict. Three ways: beyond the tolerance, within it, or cannot tell."""

from __future__ import annotations

from suite.gate.answers import CREDIT_GRAIN
from suite.records import Aspect, Comparison, Tolerance, Verdict
from suite.stats.binomial import ALPHA

_ROUNDING = 1e-9
"""Shares such as 0.52 - 0.44 miss their decimal value by this much at most; not a loss beyond a tolerance of 0.08."""


def decide(comparison: Comparison, tolerance: Tolerance) -> Verdict:
    """The verdict on one comparison.

    Speed: by the 95 % interval of the drift. REGRESSED when all of it is beyond the tolerance, IMPROVED when all of it
    is beyond it on the good side, PASS when its upper end is within, else INCONCLUSIVE. No interval, or contended
    samples: INCONCLUSIVE. Score: see `_decide_paired`. Memory and rates: by the values alone.
    """
    if (settled := _decide_without_numbers(comparison)) is not None:
        return settled
    limit = limit_of(comparison, tolerance)
    if comparison.p_value is not None:
        return _decide_paired(comparison, limit)
    if comparison.aspect is Aspect.SPEED:
        return (
            Verdict.INCONCLUSIVE if blames_machine(comparison, limit) else _decide_interval(comparison.interval, limit)
        )
    return _decide_values(comparison, limit)


def limit_of(comparison: Comparison, tolerance: Tolerance) -> float:
    """The tolerance as one number on the scale of the drift.

    Beyond the tolerance means beyond both of its parts, so the larger one counts: as a share of the baseline's value
    for speed and memory, in the metric's own unit for quality.
    """
    base = abs(comparison.baseline or 0.0)
    if comparison.aspect is Aspect.QUALITY:
        return max(tolerance.relative * base, tolerance.absolute) + _ROUNDING
    return max(tolerance.relative, tolerance.absolute / base if base else 0.0) + _ROUNDING


def blames_machine(comparison: Comparison, limit: float) -> bool:
    """Whether the machine's own drift could be the whole of it.

    A yardstick is a witness, not a correction: the verdict stands only if it would be the same had the machine been as
    fast as when the baseline was accepted, by every yardstick. So a slow hour is no regression, and a fast one hides
    none; neither is ever a PASS.
    """
    if comparison.interval is None or _decide_interval(comparison.interval, limit) is Verdict.INCONCLUSIVE:
        return False
    low, high = comparison.interval
    as_before = {_decide_interval((low - drift, high - drift), limit) for drift in comparison.machine_drift}
    return not as_before <= {_decide_interval(comparison.interval, limit)}


def flip_counts(comparison: Comparison) -> tuple[int, int]:
    """How many cases were lost (right → wrong) and gained (wrong → right)."""
    lost = sum(flip.was_correct for flip in comparison.flips)
    return lost, len(comparison.flips) - lost


def _decide_without_numbers(comparison: Comparison) -> Verdict | None:
    """The verdict when no tolerance is needed for it, else None."""
    if comparison.unresolved is not None:
        return comparison.unresolved
    if comparison.contended:
        return Verdict.INCONCLUSIVE
    if comparison.observed is None or comparison.baseline is None:
        return Verdict.NOT_MEASURED
    return Verdict.PASS if comparison.identical else None


def _decide_interval(interval: tuple[float, float] | None, limit: float) -> Verdict:
    if interval is None:
        return Verdict.INCONCLUSIVE
    low, high = interval
    if low > limit:
        return Verdict.REGRESSED
    if high < -limit:
        return Verdict.IMPROVED
    return Verdict.PASS if high <= limit else Verdict.INCONCLUSIVE


def _decide_paired(comparison: Comparison, limit: float) -> Verdict:
    """Score, paired by case. Needs both: a loss beyond the tolerance, and one that luck does not explain.

    REGRESSED: net loss beyond the tolerance and exact one-sided p ≤ 5 % (McNemar's, for right and wrong); IMPROVED
    likewise for a gain. PASS: no net loss on these cases, or the upper end of its exact interval is within the
    tolerance. Otherwise, with a loss that a few cases cannot tell from luck, INCONCLUSIVE.
    """
    loss = comparison.drift or 0.0
    if loss > limit and comparison.p_value is not None and comparison.p_value <= ALPHA:
        return Verdict.REGRESSED
    if -loss > limit and comparison.p_gain is not None and comparison.p_gain <= ALPHA:
        return Verdict.IMPROVED
    within = comparison.interval is not None and comparison.interval[1] <= limit
    return Verdict.PASS if loss <= CREDIT_GRAIN or within else Verdict.INCONCLUSIVE


def _decide_values(comparison: Comparison, limit: float) -> Verdict:
    drift = comparison.drift
    if drift is None:
        return Verdict.REGRESSED  # from nothing to something, in a quantity of which less is better
    if drift > limit:
        return Verdict.REGRESSED
    return Verdict.IMPROVED if drift < -limit else Verdict.PASS
