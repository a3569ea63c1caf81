"""The quality-speed plane: what each variant loses against what it gains, and which of them another one beats at both.

Estimates, intervals and doubts are those of the advice, so that both give the same answer. Nothing here is a verdict: dominance
is read off the drawn positions, and it is said where the error bars do not tell two of them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suite.gate.advice.asked import Name
from suite.gate.advice.estimates import Estimate, find_estimates
from suite.records import ALL, Comparison, Run
from suite.reporting.model import Report, Row
from suite.stats.dominance import Point, dominates, find_standings, reading

Quantity = Literal["score", "mean_kld"]
_POINTS = 100
_NAMES: Mapping[Quantity, Name] = {"score": "loss", "mean_kld": "kld"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One variant on the plane."""

    variant: str
    reference: bool
    speedup: float
    speedup_interval: tuple[float, float] | None
    loss: float
    """Points of score, or nats."""
    loss_interval: tuple[float, float] | None
    memory_bytes: float | None
    confidence: float = 0.95
    """Of the interval of the speed-up: more where its launches were judged more than once."""
    doubt: str = ""
    """Why the speed-up is not to be trusted; nothing is told apart by it then."""
    before: tuple[float, float] | None = None
    """Speed-up and loss when the baselines were accepted, as far as both are known."""
    beaten_by: tuple[str, ...] = ()
    """Variants on the frontier that are at least as good at both, and better at one."""
    surely: bool = False
    """Whether the error bars tell one of them to be better at one, and better or exactly equal at the other."""


def find_spots(run: Run, report: Report, quantity: Quantity) -> tuple[Spot, ...]:
    """The variants of which both are known, in the order of the report; the reference at 1× and no loss if it was timed."""
    known = find_estimates(run, report.scenario)
    placed = (_spot(row, known[row.variant]["speedup"], known[row.variant][_NAMES[quantity]]) for row in report.rows)
    found = [spot for spot in placed if spot is not None]
    answered = (finding for finding in run.findings if finding.comparison.unresolved is None)
    compared = {(f.variant, f.metric, f.scope): f.comparison for f in answered}
    reference = next((row.variant for row in report.rows if row.reference), None)
    return mark_beaten(
        [
            spot
            if spot.reference
            else replace(spot, before=_before(spot, reference, quantity, report.scenario, compared))
            for spot in found
        ]
    )


def mark_beaten(spots: Sequence[Spot]) -> tuple[Spot, ...]:
    """With `beaten_by` filled in: the frontier is what nothing beats (Pareto)."""
    points = {spot.variant: _point(spot) for spot in spots}
    standings = find_standings(points)
    return tuple(
        replace(
            spot,
            beaten_by=standings[spot.variant].beaten_by,
            surely=any(dominates(points[name], points[spot.variant]) for name in standings[spot.variant].beaten_by),
        )
        for spot in spots
    )


def frontier_of(spots: Sequence[Spot]) -> tuple[Spot, ...]:
    """What nothing beats, slowest first."""
    return tuple(sorted((s for s in spots if not s.beaten_by), key=lambda spot: (spot.speedup, spot.loss)))


def _point(spot: Spot) -> Point:
    """The reference is where it is by definition."""
    return (
        reading(
            spot.speedup,
            None if spot.doubt else spot.speedup_interval,
            more_is_better=True,
            exact=spot.reference,
        ),
        reading(spot.loss, spot.loss_interval, more_is_better=False, exact=spot.reference),
    )


def _spot(row: Row, speedup: Estimate, loss: Estimate) -> Spot | None:
    if speedup.value is None or loss.value is None or (row.reference and row.decode_tok_s is None):
        return None
    return Spot(
        variant=row.variant,
        reference=row.reference,
        speedup=speedup.value,
        speedup_interval=None if speedup.exact else speedup.interval,
        loss=loss.value,
        loss_interval=None if loss.exact else loss.interval,
        memory_bytes=row.peak_rss_bytes if row.peak_device_bytes is None else row.peak_device_bytes,
        confidence=speedup.confidence,
        doubt=speedup.doubt,
    )


_Compared = Mapping[tuple[str, str, str], Comparison]


def _before(
    spot: Spot, reference: str | None, quantity: Quantity, scenario: str | None, compared: _Compared
) -> tuple[float, float] | None:
    """The present position, moved back by what variant and reference drifted since their baselines."""
    if reference is None or scenario is None:
        return None
    own, theirs = (_share(compared.get((name, "decode_tok_s", scenario))) for name in (spot.variant, reference))
    now, then = (compared.get((name, quantity, ALL)) for name in (spot.variant, reference))
    if own is None or theirs is None or now is None:
        return None
    speedup = spot.speedup * own / theirs
    if quantity == "mean_kld":
        share = _share(now)
        return None if share is None else (speedup, spot.loss * share)
    if then is None or now.drift is None or then.drift is None:
        return None
    return speedup, spot.loss - _POINTS * (now.drift - then.drift)


def _share(comparison: Comparison | None) -> float | None:
    """Baseline / present value."""
    if comparison is None or comparison.baseline is None or not comparison.observed:
        return None
    return comparison.baseline / comparison.observed
