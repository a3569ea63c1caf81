"""Comparisons → findings: the verdict, the sentence that a person reads, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from suite.gate.decide import blames_machine, decide, limit_of
from suite.gate.policy import tolerance_for
from suite.gate.wording import sentence
from suite.metrics.catalog import SPECS
from suite.records import Aspect, Comparison, Direction, Finding, Tier, Tolerance, Verdict
from suite.stats.intervals import launches_to_settle

COMMAND = "pytest --model-matrix"
MOST_LAUNCHES = 50
"""More launches than this are no advice: the effect sits on the tolerance."""

FEWEST_LAUNCHES = 3
"""Launches from which on an interval is of use."""


def judge(comparison: Comparison, policy: Mapping[str, Tolerance], *, command: str = COMMAND) -> Finding:
    """Judge one comparison under a merged policy; `command` is how the suite was started, for the next step."""
    tolerance = tolerance_for(policy, comparison.metric, comparison.scope)
    verdict = decide(comparison, tolerance)
    return Finding(
        variant=comparison.variant,
        metric=comparison.metric,
        scope=comparison.scope,
        verdict=verdict,
        gate=tolerance.gate,
        sentence=sentence(comparison, tolerance, verdict),
        tolerance=tolerance,
        comparison=comparison,
        next_step=_next_step(comparison, tolerance, verdict, command),
    )


def judge_all(
    comparisons: Iterable[Comparison], policy: Mapping[str, Tolerance], *, command: str = COMMAND
) -> tuple[Finding, ...]:
    """A finding for each comparison, in the same order."""
    return tuple(judge(comparison, policy, command=command) for comparison in comparisons)


def _next_step(comparison: Comparison, tolerance: Tolerance, verdict: Verdict, command: str) -> str:
    again = f"{command} --matrix-variants {comparison.variant}"
    match verdict:
        case Verdict.PASS:
            step = ""
        case Verdict.REGRESSED:
            step = f"find out why, or accept it: {_update(again, 'changed')}"
        case Verdict.IMPROVED:
            step = f"accept it, a stale baseline hides the next regression: {_update(again, 'changed')}"
        case Verdict.UNBASELINED:
            step = f"accept what was measured: {_update(again, 'new')}"
        case Verdict.NOT_COMPARABLE if comparison.tier is Tier.FOREIGN:
            step = f"store a baseline for this machine: {_update(again, 'new')}"
        case Verdict.NOT_COMPARABLE:
            step = f"put it back, or accept the new question: {_update(again, 'changed')}"
        case Verdict.NOT_MEASURED:
            step = f"measure it: {again}"
        case Verdict.INCONCLUSIVE:
            step = _settle(comparison, tolerance, again)
        case _:
            step = f"read the end of its stderr in the report, then run it alone: {again}"
    return step


def _update(again: str, mode: str) -> str:
    return f'{again} --matrix-update={mode} --matrix-reason "..."'


def _settle(comparison: Comparison, tolerance: Tolerance, again: str) -> str:
    """What would turn "cannot tell" into an answer."""
    if comparison.aspect is Aspect.QUALITY:
        return f"read the flipped answers, then add cases, or accept these answers: {_update(again, 'all')}"
    speed = f"{again} --matrix-only=speed"
    if comparison.contended:
        return f"measure again when nothing else runs: {speed}"
    if blames_machine(comparison, limit_of(comparison, tolerance)):
        return f"measure again when the machine is as fast as it was: {speed}"
    launches = _launches_needed(comparison, tolerance)
    if launches is None:
        return (
            f"the baseline has too few launches ({comparison.n_baseline}) for more on this side to settle it: widen the "
            "tolerance, or go back to the accepted state, raise launches under [protocol] in the matrix file, and accept "
            f"it anew: {_update(again, 'all')}"
        )
    return f"set launches = {launches} under [protocol] in the matrix file, then: {speed}"


def _launches_needed(comparison: Comparison, tolerance: Tolerance) -> int | None:
    """Launches that would bring the interval to one side of the tolerance if the spread stays as it is."""
    if comparison.interval is None:
        return FEWEST_LAUNCHES if comparison.n < FEWEST_LAUNCHES else None
    low, high, limit = (_to_log(comparison, share) for share in (*comparison.interval, limit_of(comparison, tolerance)))
    half_width, estimate = (high - low) / 2, (high + low) / 2
    needed = launches_to_settle(half_width, abs(estimate - limit), comparison.n, comparison.n_baseline)
    return needed if needed is not None and needed <= MOST_LAUNCHES else None


def _to_log(comparison: Comparison, share: float) -> float:
    """From a share of the old value back to the log ratio, the scale on which the interval is symmetric."""
    if SPECS[comparison.metric].direction is Direction.LOWER:
        return math.log1p(share)
    return -math.log1p(-share) if share < 1 else math.inf
