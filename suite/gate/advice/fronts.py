"""The Pareto front of a run: who is better than whom in quality, speed-up and memory, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.gate.advice.asked import QUANTITIES, Name
from suite.gate.advice.estimates import Estimate
from suite.stats.dominance import Point, Reading, Relation, Standing, find_standings, reading, relate

Estimates = Mapping[Name, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One variant beside the others."""

    variant: str
    standing: Standing
    apart: Mapping[str, Mapping[Name, Relation]]
    """By variant that is better by estimates: how that one stands to it in each quantity."""

    @property
    def is_dominated(self) -> bool:
        """For sure."""
        return bool(self.standing.dominated_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """All variants of which every quantity of the front is known."""

    quantities: tuple[Name, ...]
    """What counts; none where not two variants have two of them in common."""
    placed: tuple[Placed, ...] = ()
    """In the order of the run."""
    missing: Mapping[str, tuple[Name, ...]]
    """Variants that are not placed, with what is not known of them."""

    def find(self, variant: str) -> Placed | None:
        """Where a variant is; None where it is not placed."""
        return next((one for one in self.placed if one.variant == variant), None)


def find_front(estimates: Mapping[str, Estimates]) -> Front:
    """The front of the variants in `estimates`, which are those that may be advised."""
    quantities = _choose(estimates)
    known = {
        name: tuple(q for q in quantities if not _is_known(own[q])) for name, own in estimates.items() if quantities
    }
    points: dict[str, Point] = {
        name: [read(estimates[name][q]) for q in quantities] for name, missing in known.items() if not missing
    }
    standings = find_standings(points)
    placed = tuple(
        Placed(variant=name, standing=standing, apart=_apart(name, standing, quantities, points))
        for name, standing in standings.items()
    )
    return Front(
        quantities=quantities, placed=placed, missing={name: missing for name, missing in known.items() if missing}
    )


def _apart(
    variant: str, standing: Standing, quantities: Sequence[Name], points: Mapping[str, Point]
) -> dict[str, dict[Name, Relation]]:
    others = dict.fromkeys((*standing.dominated_by, *standing.beaten_by))
    return {
        other: {
            name: relate(theirs, mine)
            for name, theirs, mine in zip(quantities, points[other], points[variant], strict=True)
        }
        for other in others
    }


def _choose(estimates: Mapping[str, Estimates]) -> tuple[Name, ...]:
    """Quality by the divergence, which tells more apart than the score does, where it is known of as many; speed-up, memory.

    What is known of fewer than two variants is no quantity to compare them in, and one quantity alone is a ranking.
    """
    count = {name: sum(_is_known(own[name]) for own in estimates.values()) for name in QUANTITIES}
    wanted: tuple[Name, ...] = ("kld" if count["kld"] >= count["loss"] else "loss", "speedup", "memory")
    known = tuple(name for name in wanted if count[name] > 1)
    return known if len(known) > 1 else ()


def _is_known(estimate: Estimate) -> bool:
    return estimate.value is not None


def read(estimate: Estimate) -> Reading:
    """An estimate as a reading; numbers that are in doubt are told apart from nothing. Its value is known."""
    interval = None if estimate.doubt else estimate.interval
    more = QUANTITIES[estimate.quantity].more_is_better
    return reading(estimate.value or 0.0, interval, more_is_better=more, exact=estimate.exact, slack=estimate.slack)
