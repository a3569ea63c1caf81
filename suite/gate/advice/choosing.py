"""Which of several variants that all satisfy what is asked is taken.

By one quantity after the other: whatever is not told apart from the best estimate stays, and the next quantity decides among
those. So a hair's breadth of speed, which the next run may turn round, does not outweigh a loss that was seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from suite.gate.advice.asked import Name, Preference
from suite.gate.advice.estimates import Estimate
from suite.gate.advice.fronts import Estimates, read
from suite.stats.dominance import Relation, relate

_ORDER: Mapping[Preference, tuple[Preference, ...]] = {
    "quality": ("quality", "speed", "memory"),
    "speed": ("speed", "quality", "memory"),
    "memory": ("memory", "quality", "speed"),
}
_QUANTITIES: Mapping[Preference, tuple[Name, ...]] = {
    "quality": ("kld", "loss"),
    "speed": ("speedup", "decode", "ttft"),
    "memory": ("memory",),
}
"""By which quantity each is told: the first that is known of all that are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One quantity that was looked at."""

    quantity: Name
    best: str
    """The variant with the best estimate."""
    left: tuple[str, ...]
    """What is not told apart from it, itself included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The variant that is taken, and how it came to it."""

    variant: str
    among: tuple[str, ...]
    """All that satisfy everything."""
    rounds: tuple[Round, ...] = ()
    put_back: tuple[str, ...] = ()
    """What satisfies everything too, but failed a gate against its own baseline where others did not."""


def choose(satisfying: Mapping[str, Estimates], prefer: Preference, failing: Collection[str]) -> Choice | None:
    """Take one; None where none satisfies. Of `failing`, those whose gates failed, one is taken only if all are of them."""
    if not satisfying:
        return None
    sound = [name for name in satisfying if name not in failing]
    left, rounds = sound or list(satisfying), []
    for about in _ORDER[prefer]:
        quantity = _known_of_all(about, left, satisfying)
        if len(left) > 1 and quantity is not None:
            best, left = _stay(quantity, left, satisfying)
            rounds.append(Round(quantity=quantity, best=best, left=tuple(left)))
    return Choice(
        variant=left[0] if len(left) == 1 or not rounds else rounds[-1].best,
        among=tuple(satisfying),
        rounds=tuple(rounds),
        put_back=tuple(name for name in satisfying if name in failing) if sound else (),
    )


def order_by(estimates: Mapping[str, Estimates], prefer: Preference) -> dict[str, int]:
    """The rank of each by the estimates of what decides; what is not known comes last."""
    known = [{name: own for name, own in estimates.items() if own[q].value is not None} for q in _QUANTITIES[prefer]]
    quantity = _QUANTITIES[prefer][max(range(len(known)), key=lambda place: len(known[place]))]
    ranked = sorted(estimates, key=lambda name: _worth(estimates[name][quantity]))
    return {name: place for place, name in enumerate(ranked)}


def _worth(estimate: Estimate) -> tuple[bool, float]:
    return (True, 0.0) if estimate.value is None else (False, -read(estimate).value)


def _known_of_all(about: Preference, names: Collection[str], estimates: Mapping[str, Estimates]) -> Name | None:
    return next((q for q in _QUANTITIES[about] if all(estimates[name][q].value is not None for name in names)), None)


def _stay(quantity: Name, names: list[str], estimates: Mapping[str, Estimates]) -> tuple[str, list[str]]:
    """The best estimate, and what is not told to be worse than it."""
    readings = {name: read(estimates[name][quantity]) for name in names}
    best = max(names, key=lambda name: readings[name].value)
    return best, [name for name in names if relate(readings[best], readings[name]) is not Relation.BETTER]
