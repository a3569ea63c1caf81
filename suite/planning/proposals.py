"""From noise floors to tolerances that a machine can hold, and to warnings about those that it cannot. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.gate.plan import GateItem
from suite.planning.plan import allowed
from suite.planning.speed import PlannedTest, smallest_tolerance, spread_of
from suite.records import Aspect, Gate, NoiseFloor, Tier, Tolerance

GRID = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.10, 0.12, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.60, 0.75, 0.90)
EXCESS = 0.5
"""Against a stored baseline, a drift of half as much again as the tolerance must be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The smallest tolerances that fit a metric on this machine; None where none does."""

    metric: str
    duet: float | None
    stored: float | None


def propose(floors: Mapping[str, NoiseFloor], *, launches: int, alpha: float) -> tuple[Proposal, ...]:
    """For each metric the smallest tolerance at which an unchanged variant passes with 95 % power at `launches`.

    In the stored tier also one beyond which half as much again is found so at level `alpha`.
    """

    def smallest(metric: str, floor: NoiseFloor, tier: Tier) -> float | None:
        test = PlannedTest(spread=spread_of(floor, tier), launches=launches, stored=launches, look=1, alpha=alpha)
        return smallest_tolerance(test, metric, grid=GRID, excess=EXCESS if tier is Tier.STORED else None)

    return tuple(
        Proposal(metric=metric, duet=smallest(metric, floor, Tier.DUET), stored=smallest(metric, floor, Tier.STORED))
        for metric, floor in floors.items()
    )


def describe_proposals(proposals: Sequence[Proposal], launches: int) -> list[str]:
    """What would fit, for people."""
    lines = [f"Tolerances that fit this machine with {launches} launches", f"  {'metric':14} {'duet':>8} {'stored':>8}"]
    return lines + [f"  {p.metric:14} {_fitting(p.duet):>8} {_fitting(p.stored):>8}" for p in proposals]


def _fitting(tolerance: float | None) -> str:
    return "none" if tolerance is None else f"{tolerance:g}"


def warn_too_tight(
    proposals: Sequence[Proposal], policy: Mapping[str, Tolerance], gates: Sequence[GateItem]
) -> list[str]:
    """One line for each tolerance of a gate that is tighter than what this machine allows."""
    by_metric = {proposal.metric: proposal for proposal in proposals}
    gated = {item.metric for item in gates if item.aspect is Aspect.SPEED}
    lines = []
    for key, tolerance in policy.items():
        metric = key.partition("/")[0]
        if metric in gated and metric in by_metric and tolerance.gate is not Gate.INFO:
            for tier, name in ((Tier.DUET, "duet"), (Tier.STORED, "relative")):
                proposed = by_metric[metric].duet if tier is Tier.DUET else by_metric[metric].stored
                has = allowed(tolerance, tier)
                if proposed is None or has < proposed:
                    lines.append(
                        f"[policy.{key}] {name} = {has:g} is tighter than this machine allows ({_tell(proposed)})"
                    )
    return lines


def _tell(proposed: float | None) -> str:
    return "none fits" if proposed is None else f"{proposed:g} fits"
