"""What a variant's divergence from the reference is made of: the engine's part, and that of quantization.

A reference in another engine differs from a quantized variant in two ways at once. Where the run holds the unquantized variant
of the same engine, its peer, both are told apart: reference → peer is the engine leg, peer → variant the quantization leg.
Divergences do not add up exactly; the larger leg is where the damage is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suite.records import Forced
from suite.stats.intervals import Estimate, interval_of
from suite.stats.ratios import share_of_sums

UNQUANTIZED_BPW = 15.9
"""Bits per weight from which on a variant counts as unquantized."""

Made = Literal["both", "quantization", "engine", "mixed"]
"""What a total is made of: of two legs that are told apart; of one alone; or of both, and nothing tells them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A mean divergence over positions, nats."""

    value: float
    positions: int
    cases: int
    estimate: Estimate | None
    """With template families as clusters; None for fewer than two."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """The t interval of the mean, nats, never below 0."""
        if self.estimate is None:
            return None
        low, high = interval_of(self.estimate, confidence)
        return max(low, 0.0), high


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """The divergence of one variant from the reference, along the batched path, and its parts."""

    variant: str
    made: Made
    total: Leg
    peer: str | None = None
    engine: Leg | None = None
    """Of the peer from the reference, over the cases that the quantization leg is known of."""
    quantization: Leg | None = None
    """Of the variant from the peer."""

    @property
    def partial(self) -> bool:
        """Whether the quantization leg is known of some of the cases only."""
        return self.quantization is not None and self.quantization.cases < self.total.cases


def split_legs(
    forced: Iterable[Forced],
    variants: Sequence[str],
    *,
    reference: str | None,
    unquantized: Collection[str],
    engine_mates: Collection[str] = (),
) -> tuple[Legs, ...]:
    """The legs of each of `variants` but the reference, in order; none of one that was not forced.

    `unquantized` names variants whose weights are not quantized: all that they differ by is the engine's. A peer that is the
    reference, or is no variant of the run (the reference of a stored trace), leaves no engine leg; so do `engine_mates`, which
    are of the reference's own engine, with a peer or without.
    """
    found: dict[str, dict[str, Forced]] = {}
    for one in forced:
        if one.path == "batched":
            found.setdefault(one.variant, {})[one.case] = one
    others = frozenset(variants) - {reference}
    split = (_split(name, found, others, name in unquantized) for name in variants if name != reference)
    mates = frozenset(engine_mates) if reference is not None else frozenset()
    return tuple(_beside(legs, reference) if legs.variant in mates else legs for legs in split if legs is not None)


def _beside(legs: Legs, reference: str | None) -> Legs:
    """Of a variant in the reference's own engine: what nothing else tells of is quantization's."""
    if legs.made != "mixed":
        return legs
    return replace(legs, made="quantization", peer=reference, quantization=legs.total)


def _split(
    variant: str, found: Mapping[str, Mapping[str, Forced]], others: Collection[str], unquantized: bool
) -> Legs | None:
    own = found.get(variant, {})
    total = _mean([(one, one.kld, set(one.broken)) for one in own.values()])
    if total is None:
        return None
    if unquantized:
        return Legs(variant=variant, made="engine", total=total, engine=total)
    peer = next((one.peer for one in own.values() if one.peer is not None and one.peer_kld is not None), None)
    known = [one for one in own.values() if peer is not None and one.peer == peer and one.peer_kld is not None]
    if peer is None:
        return Legs(variant=variant, made="mixed", total=total)
    theirs = found.get(peer, {})
    alone = peer not in others
    both = known if alone else [one for one in known if one.case in theirs]
    quantization = _mean([(one, one.peer_kld or (), _broken(one, theirs)) for one in both])
    if quantization is None:
        return Legs(variant=variant, made="mixed", total=total, peer=peer)
    engine = None if alone else _mean([(theirs[one.case], theirs[one.case].kld, _broken(one, theirs)) for one in both])
    made: Made = "quantization" if alone else "both"
    return Legs(variant=variant, made=made, total=total, peer=peer, engine=engine, quantization=quantization)


def _broken(one: Forced, theirs: Mapping[str, Forced]) -> set[int]:
    """Positions at which either side's logits are no numbers: a divergence of 0 there is none."""
    other = theirs.get(one.case)
    return {*one.broken, *(other.broken if other is not None else ())}


def _mean(answers: Sequence[tuple[Forced, Sequence[float], set[int]]]) -> Leg | None:
    """The mean over the positions of `answers` (what was forced, values by position, positions to leave out)."""
    clusters: dict[tuple[bool, str], list[float]] = {}
    cases = 0
    for one, values, broken in answers:
        kept = [value for at, value in enumerate(values) if at not in broken]
        cases += bool(kept)
        clusters.setdefault((one.family is not None, one.family or one.case), []).extend(kept)
    filled = [values for values in clusters.values() if values]
    sums, sizes = [math.fsum(values) for values in filled], [float(len(values)) for values in filled]
    positions = int(math.fsum(sizes))
    if not positions:
        return None
    return Leg(value=math.fsum(sums) / positions, positions=positions, cases=cases, estimate=share_of_sums(sums, sizes))
