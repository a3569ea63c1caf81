"""Comparisons → findings: the verdict, the sentence that a person reads, and what to do next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from suite.gate.compare_fidelity import CANNOT_BE_FORCED, FIDELITY
from suite.gate.decide import PASS_ALPHA, blames_machine, estimate_of, flip_counts, is_estimated, limit_of, log_limit
from suite.gate.family import ALPHA, Decision, decide_all, group_of, share_out
from suite.gate.policy import tolerance_for
from suite.gate.sensitivity import find_smallest
from suite.gate.wording import sentence
from suite.metrics.fidelity import BROKEN
from suite.metrics.kinds import HELD_TO_NONE
from suite.records import Aspect, Comparison, Finding, Gate, Tier, Tolerance, Verdict
from suite.stats.beta import t_quantile
from suite.stats.binomial import net_loss_bounds
from suite.stats.intervals import Estimate, spend, spend_late

COMMAND = "pytest --model-matrix"
MOST_LAUNCHES = 50
"""More launches than this are no advice: the effect sits on the tolerance."""

FEWEST_LAUNCHES = 3
"""Launches from which on an interval is of use."""

MOST_CASES = 2000
"""More cases than this are no advice."""

DEVIATIONS = 1.645
"""How many standard errors the estimate must be away from the tolerance, in a test of its own at 5 %."""


def judge(comparison: Comparison, policy: Mapping[str, Tolerance], *, command: str = COMMAND) -> Finding:
    """Judge one comparison by itself, as the only one of its run: see `judge_all`."""
    return judge_all([comparison], policy, command=command)[0]


def judge_all(
    comparisons: Iterable[Comparison],
    policy: Mapping[str, Tolerance],
    *,
    command: str = COMMAND,
    alpha: float = ALPHA,
) -> tuple[Finding, ...]:
    """A finding for each comparison, in the same order, under a merged policy; together they are what one run tests.

    `command` is how the suite was started, for the next step; `alpha` the chance of crying wolf that they share.
    """
    items = [(comparison, tolerance_for(policy, comparison.metric, comparison.scope)) for comparison in comparisons]
    alone = share_out([group_of(*item) for item in items if item[0].unresolved is None], alpha)
    return tuple(
        _word(_sensed(*item, decision.p_needed or alone.get(group_of(*item), 0.0)), item[1], decision, command)
        for item, decision in zip(items, decide_all(items, alpha=alpha), strict=True)
    )


def _sensed(comparison: Comparison, tolerance: Tolerance, level: float) -> Comparison:
    """With what could have been seen at the level in force. Where nothing changed, or too few answers to be tested, that is
    the level which a lone test of its kind would have had.
    """
    return replace(comparison, mde=find_smallest(comparison, tolerance, level))


def needs_more(finding: Finding) -> bool:
    """Whether more launches may decide what these could not: an undecided speed that matters, unless it is the sessions that
    differ too much.
    """
    comparison = finding.comparison
    if finding.verdict is not Verdict.INCONCLUSIVE or comparison.aspect is not Aspect.SPEED:
        return False
    if finding.gate is Gate.INFO or finding.tolerance is None:
        return False
    estimate = estimate_of(comparison)
    if estimate is None and not comparison.contended:
        return comparison.n_baseline > 0  # without a single accepted launch no number of new ones has anything to go by
    if estimate is None or comparison.contended or comparison.flags:
        return True
    limit = limit_of(comparison, finding.tolerance)
    in_doubt = comparison.assumed and estimate.mean > log_limit(comparison, limit)
    if in_doubt or blames_machine(comparison, limit, finding.p_needed or 0.0):
        return False  # it is the sessions, or the machine
    gap = abs(estimate.mean - log_limit(comparison, limit))
    return gap > _deviations(finding, estimate, limit) * comparison.log_floor


def _deviations(finding: Finding, estimate: Estimate, limit: float) -> float:
    """How many standard errors away from the tolerance the next look needs, which has a part of the level of its own."""
    comparison = finding.comparison
    beyond = estimate.mean > log_limit(comparison, limit)
    looks = comparison.looks
    part = spend_late(1.0, looks + 1) / spend_late(1.0, looks)
    level = (finding.p_needed or PASS_ALPHA) * part if beyond else spend(PASS_ALPHA, looks + 1)
    return t_quantile(1 - level, estimate.df)


def _word(comparison: Comparison, tolerance: Tolerance, decision: Decision, command: str) -> Finding:
    finding = Finding(
        variant=comparison.variant,
        metric=comparison.metric,
        scope=comparison.scope,
        verdict=decision.verdict,
        gate=tolerance.gate,
        sentence=sentence(comparison, tolerance, decision),
        tolerance=tolerance,
        comparison=comparison,
        p_value=decision.p_value,
        p_needed=decision.p_needed,
        family=decision.family,
    )
    return replace(finding, next_step=_next_step(finding, tolerance, command))


def _next_step(finding: Finding, tolerance: Tolerance, command: str) -> str:
    """What to do; a command to copy has a line to itself, behind one that ends in a colon."""
    comparison = finding.comparison
    again = f"{command} --matrix-variants {comparison.variant}"
    if (own := _step_of_its_own(finding, again, command)) is not None:
        return own
    match finding.verdict:
        case Verdict.PASS:
            step = ""
        case Verdict.REGRESSED:
            step = f"find out why, or accept it:\n{_update(again, 'changed')}"
        case Verdict.IMPROVED:
            step = f"accept it, a stale baseline hides the next regression:\n{_update(again, 'changed')}"
        case Verdict.UNBASELINED:
            step = f"accept what was measured:\n{_update(again, 'new')}"
        case Verdict.NOT_COMPARABLE if comparison.tier is Tier.FOREIGN:
            step = f"store a baseline for this machine:\n{_update(again, 'new')}"
        case Verdict.NOT_COMPARABLE:
            step = f"put it back, or accept the new question:\n{_update(again, 'changed')}"
        case Verdict.NOT_MEASURED:
            unsuited = "nothing, if that is meant; else give it what it lacks"
            step = unsuited if comparison.unsuited else f"measure it:\n{again}"
        case Verdict.INCONCLUSIVE:
            step = _settle(finding, tolerance, again)
        case _:
            step = f"read the end of its stderr in the report, then run it alone:\n{again}"
    return step


def _step_of_its_own(finding: Finding, again: str, command: str) -> str | None:
    """What to do where that is something else than with other drifts: about a divergence, or what must not be there at all."""
    comparison = finding.comparison
    if comparison.metric in HELD_TO_NONE and finding.verdict in (Verdict.REGRESSED, Verdict.INCONCLUSIVE):
        return f"find what does it, or allow so much: absolute in [policy.{comparison.metric}]. Then:\n{again}"
    return _step_of_fidelity(finding, again, command) if comparison.metric in FIDELITY else None


def _step_of_fidelity(finding: Finding, again: str, command: str) -> str | None:
    comparison = finding.comparison
    if finding.verdict is Verdict.NOT_MEASURED:
        beyond_help = comparison.unsuited or CANNOT_BE_FORCED in comparison.reason
        return "" if beyond_help else f"measure it with the reference once:\n{command}"
    if finding.verdict is not Verdict.REGRESSED:
        return None
    if comparison.metric == BROKEN:
        return f"look at its weights, its dtype and its backend; such logits are never accepted. Then:\n{again}"
    look = f"see where:\nquantdrift explain --variant {shlex.quote(comparison.variant)}"
    return f"{look}\nmend it, or accept it:\n{_update(again, 'changed')}"


def _update(again: str, mode: str) -> str:
    """Accepting needs a whole run of one side: what makes it another is left out."""
    words = shlex.split(again)
    kept = [word for word in words if not word.startswith("--matrix-against=") and word != "--matrix-quick"]
    return f'{shlex.join(kept)} --matrix-update={mode} --matrix-reason "..."'


def _settle(finding: Finding, tolerance: Tolerance, again: str) -> str:
    """What would turn "cannot tell" into an answer."""
    comparison = finding.comparison
    if comparison.aspect is Aspect.QUALITY and is_estimated(comparison):
        return _settle_logprob(comparison, tolerance, again)
    if comparison.aspect is Aspect.QUALITY:
        return _settle_answers(comparison, tolerance, again)
    if comparison.aspect is Aspect.MEMORY:
        return (
            f"no number of launches settles it: widen [policy.{comparison.metric}] to what this variant needs from load to "
            f"load, or accept it:\n{_update(again, 'changed')}"
        )
    more = f"{again} --matrix-only=speed --matrix-resume"
    if comparison.contended or comparison.flags:
        return f"add launches to these when nothing else runs:\n{more}"
    limit = limit_of(comparison, tolerance)
    if blames_machine(comparison, limit, finding.p_needed or 0.0):
        return f"measure again when the machine is as fast as it was, or side by side:\n{again} --matrix-against=OLD-PYTHON"
    launches = _launches_needed(finding, limit)
    return (
        _settle_spread(comparison, again)
        if launches is None
        else f"about {launches} more launches would settle it:\n{more}"
    )


def _settle_spread(comparison: Comparison, again: str) -> str:
    """What is left to do where no number of launches helps."""
    if comparison.tier is Tier.DUET:
        return (
            f"not even {MOST_LAUNCHES} more launches would settle it, for the launches themselves differ by more than this: "
            "find out what disturbs them (quantdrift plan says what they can see), or widen the tolerance side by side, duet"
        )
    return (
        "more launches cannot settle it, for whole sessions differ by more than this: measure old and new side by side:\n"
        f"{again} --matrix-against=OLD-PYTHON\nor find out how much they differ, and widen the tolerance:\n"
        "quantdrift calibrate"
    )


def _settle_answers(comparison: Comparison, tolerance: Tolerance, again: str) -> str:
    """How many cases it would take if flips stayed as frequent as they are, and what to do until then."""
    limit = limit_of(comparison, tolerance)
    n = max(comparison.n, 1)
    net = round((comparison.drift or 0.0) * n)  # rates have no flips of their own
    lost, gained = flip_counts(comparison) if comparison.flips else (max(net, 0), max(-net, 0))
    certified = next(
        (
            cases
            for cases in range(n, MOST_CASES, max(n // 4, 1))
            if net_loss_bounds(round(lost * cases / n), round(gained * cases / n), cases, confidence=0.9)[1] <= limit
        ),
        None,
    )
    wanted = (
        f"about {certified} cases of {comparison.scope} would" if certified else f"not even {MOST_CASES} cases would"
    )
    return (
        f"read the flipped answers; {wanted} show a loss like this to be within the tolerance "
        f"(quantdrift plan); or accept these answers:\n{_update(again, 'changed')}"
    )


def _settle_logprob(comparison: Comparison, tolerance: Tolerance, again: str) -> str:
    """How many cases it would take if log-probabilities went on to differ as they do."""
    estimate, limit = estimate_of(comparison), limit_of(comparison, tolerance)
    gap = abs(estimate.mean - log_limit(comparison, limit)) if estimate else 0.0
    cases = math.ceil(comparison.n * (DEVIATIONS * estimate.se / gap) ** 2) if estimate and gap else MOST_CASES + 1
    cases = max(cases, comparison.n + 1)
    wanted = f"about {cases} cases" if cases <= MOST_CASES else f"not even {MOST_CASES} cases"
    look = "read the changed answers; "
    if comparison.metric in FIDELITY:
        look = f"see where:\nquantdrift explain --variant {shlex.quote(comparison.variant)}\n"
    return f"{look}{wanted} would settle it; or accept these:\n{_update(again, 'changed')}"


def _launches_needed(finding: Finding, limit: float) -> int | None:
    """Launches to add that would bring the estimate far enough to one side of the tolerance if the spread stays as it is."""
    comparison = finding.comparison
    estimate = estimate_of(comparison)
    if estimate is None:
        return FEWEST_LAUNCHES
    gap = abs(estimate.mean - log_limit(comparison, limit))
    room = (gap / _deviations(finding, estimate, limit)) ** 2 - comparison.log_floor**2
    if room <= 0:
        return None
    each = max(estimate.se**2 - comparison.log_floor**2, 0.0) * comparison.n
    more = max(math.ceil(each / room) - comparison.n, 1)
    return more if more <= MOST_LAUNCHES else None
