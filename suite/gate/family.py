"""Everything that one run tests, judged together: 5 % for the chance that any of it is called REGRESSED by luck.

The 5 % are shared out between three kinds of tests, so that seventy answers need not compete with fifty speeds; within a
share they step down by Holm's procedure. The share of scores is what five losses without a gain need (p = 1/32).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.gate.decide import (
    find_settled,
    is_estimated,
    limit_of,
    log_limit,
    looks_factor,
    verdict_of_paired,
    verdict_of_speed,
    verdict_of_values,
)
from suite.records import ALL, Aspect, Comparison, Gate, Tolerance, Verdict
from suite.stats.holm import Tested, family_size, holm_levels
from suite.stats.intervals import Estimate, p_above

ALPHA = 0.05
"""Chance that an unchanged run says REGRESSED of anything."""
SHARES: Mapping[str, float] = {"score": 0.64, "speed": 0.24, "answers": 0.12}
"""How it is shared: score over all cases; speed; everything else about answers. What a run does not hold leaves its share to
the others."""
INFORMING = "informing"
"""What fails nothing is a family of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with the test behind it."""

    verdict: Verdict
    p_value: float | None = None
    p_needed: float | None = None
    family: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    group: str
    tested: Tested
    factor: float
    """By which the p was multiplied, since earlier looks at the same data have spent their part."""


def decide_all(items: Sequence[tuple[Comparison, Tolerance]], *, alpha: float = ALPHA) -> list[Decision]:
    """A decision for each comparison, in order, all of one run: leaving some out makes the others' levels too generous.

    `alpha` is less than all of it where several processes judge one run, none of which sees everything.
    """
    settled = [find_settled(comparison) for comparison, _ in items]
    entries = {
        index: entry
        for index, (comparison, tolerance) in enumerate(items)
        if settled[index] is None and (entry := _enter(comparison, tolerance)) is not None
    }
    levels, sizes = _levels(entries, alpha)
    decisions = []
    for index, (comparison, tolerance) in enumerate(items):
        if (verdict := settled[index]) is not None:
            decisions.append(Decision(verdict))
        elif index in entries:
            entry, level = entries[index], levels[index] / entries[index].factor
            p_value = entry.tested.p / entry.factor
            decisions.append(Decision(_decide(comparison, tolerance, level), p_value, level, sizes[entry.group]))
        else:
            decisions.append(Decision(_decide(comparison, tolerance, 0.0)))
    return decisions


def decide(comparison: Comparison, tolerance: Tolerance) -> Verdict:
    """The verdict on the one comparison of a run."""
    return decide_all([(comparison, tolerance)])[0].verdict


def group_of(comparison: Comparison, tolerance: Tolerance) -> str:
    """Which share a comparison belongs to."""
    if tolerance.gate is Gate.INFO:
        return INFORMING
    if comparison.aspect is Aspect.SPEED:
        return "speed"
    return "score" if (comparison.metric, comparison.scope) == ("score", ALL) else "answers"


def share_out(groups: Sequence[str], alpha: float = ALPHA) -> dict[str, float]:
    """The part of `alpha` of each group that a run holds."""
    present = {group for group in groups if group in SHARES}
    total = sum(SHARES[group] for group in present)
    shares = {group: alpha * SHARES[group] / total for group in present}
    return {**shares, INFORMING: alpha}


def _enter(comparison: Comparison, tolerance: Tolerance) -> _Entry | None:
    """The test behind a comparison, with what earlier looks have spent put onto its p; None where nothing is tested."""
    group = group_of(comparison, tolerance)
    if comparison.p_value is not None:
        return _Entry(group, Tested(comparison.p_value, comparison.p_least), 1.0)
    if comparison.log_drift is None or comparison.log_se is None or comparison.log_df is None:
        return None
    estimate = Estimate(comparison.log_drift, comparison.log_se, comparison.log_df)
    factor = looks_factor(comparison)
    p = p_above(estimate, log_limit(comparison, limit_of(comparison, tolerance)))
    return _Entry(group, Tested(p * factor), factor)


def _levels(entries: Mapping[int, _Entry], alpha: float) -> tuple[dict[int, float], dict[str, int]]:
    able = [entry.group for entry in entries.values() if entry.tested.p_least <= alpha]
    alphas = share_out(able, alpha)
    levels: dict[int, float] = {}
    sizes: dict[str, int] = {}
    for group in {entry.group for entry in entries.values()}:
        members = {index: entry.tested for index, entry in entries.items() if entry.group == group}
        part = alphas.get(group, 0.0)
        found = holm_levels(list(members.values()), part) if part else [0.0] * len(members)
        levels.update(zip(members, found, strict=True))
        sizes[group] = family_size(list(members.values()), part) if part else 0
    return levels, sizes


def _decide(comparison: Comparison, tolerance: Tolerance, level: float) -> Verdict:
    limit = limit_of(comparison, tolerance)
    if comparison.p_value is not None:
        return verdict_of_paired(comparison, limit, level)
    if is_estimated(comparison):
        return verdict_of_speed(comparison, limit, level)
    return verdict_of_values(comparison, limit)
