"""Which findings of a run hold on when it is taken up again: nothing that was decided is decided once more."""

from __future__ import annotations

from suite.records import Aspect, Comparison, Finding, Tier, Tolerance, Verdict

DECIDED = frozenset({Verdict.PASS, Verdict.REGRESSED, Verdict.IMPROVED})


def still_holds(finding: Finding, now: Comparison, tolerance: Tolerance) -> bool:
    """Whether a finding of an earlier look stands, whatever launches came since: `now` is the same comparison on all data.

    It does not when it was undecided, when something else was accepted meanwhile or another tolerance is asked for, and,
    of answers, when these are not the same as then. A look that cannot compare anything takes no verdict away.
    """
    if finding.verdict not in DECIDED or finding.tolerance != tolerance:
        return False
    if now.unresolved is Verdict.NOT_MEASURED:
        return True
    return now.unresolved is None and _is_same_question(finding.comparison, now)


def _is_same_question(then: Comparison, now: Comparison) -> bool:
    if (then.tier, then.accepted) != (now.tier, now.accepted):
        return False
    if now.tier is not Tier.DUET and then.baseline != now.baseline:
        return False
    return now.aspect is not Aspect.QUALITY or _answers(then) == _answers(now)


def _answers(comparison: Comparison) -> tuple[object, ...]:
    """What tells whether the same answers were compared."""
    counted = comparison.n, comparison.observed, comparison.drift, comparison.p_value, comparison.identical
    return (*counted, comparison.flips, comparison.left_out)
