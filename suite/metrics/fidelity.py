"""Fidelity of one variant: how far its distributions are from the reference's, along the reference's own answers.

Terms and formulas are those of llama.cpp's ``perplexity --kl-divergence``, with two differences that are told: the divergence
is over the reference's likeliest tokens and one bucket for the rest, which is a lower bound, and positions are those of
answers to the matrix's own cases. A position whose logits are no numbers counts as broken, and into nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.records import ALL, EvaluationPath, Forced, Measurement
from suite.stats.intervals import interval_of
from suite.stats.ratios import share_of_sums

PERCENTILE = 0.99
MOST_NATS = 700.0
"""A mean loss beyond it is told as it: its exponential is no number in double precision."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions of one answer that are not broken."""

    case: str
    kld: tuple[float, ...]
    logprobs: tuple[float, ...]
    reference_logprobs: tuple[float, ...]
    departures: int

    @property
    def shifts(self) -> list[float]:
        """Δp: by how much more likely the reference's token is here, at each position."""
        pairs = zip(self.logprobs, self.reference_logprobs, strict=True)
        return [math.exp(mine) - math.exp(theirs) for mine, theirs in pairs]


def positions_of(forced: Forced) -> Positions:
    """One forced answer without its broken positions."""
    broken = frozenset(forced.broken)
    left = [position for position in range(len(forced.kld)) if position not in broken]
    return Positions(
        case=forced.case,
        kld=tuple(forced.kld[at] for at in left),
        logprobs=tuple(forced.logprobs[at] for at in left),
        reference_logprobs=tuple(forced.reference_logprobs[at] for at in left),
        departures=sum(departure.position not in broken for departure in forced.departures),
    )


def distances_of(forced: Forced) -> list[float]:
    """How far the two paths of a variant are apart in one case, at the positions at which they ran different kernels.

    What follows the prompt is evaluated as a prompt on either path, and a single token in a batch as one that is decoded.
    """
    if len(forced.kld) < 3:
        return []
    return [d for d in (forced.distance or ())[1:] if d is not None]


def percentile(values: Sequence[float], share: float) -> float:
    """By the nearest rank: the smallest value with at least this share of all at or below it."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _pooled(cases: Sequence[Positions]) -> list[float]:
    return [value for case in cases for value in case.kld]


def _mean_kld(cases: Sequence[Positions]) -> float:
    pooled = _pooled(cases)
    return math.fsum(pooled) / len(pooled)


def _mean_shift(cases: Sequence[Positions]) -> float:
    shifts = [shift for case in cases for shift in case.shifts]
    return math.fsum(shifts) / len(shifts)


def _rms_shift(cases: Sequence[Positions]) -> float:
    shifts = [shift for case in cases for shift in case.shifts]
    return math.sqrt(math.fsum(shift * shift for shift in shifts) / len(shifts))


def _same_top(cases: Sequence[Positions]) -> float:
    return 1 - sum(case.departures for case in cases) / sum(len(case.kld) for case in cases)


def _ppl_ratio(cases: Sequence[Positions]) -> float:
    losses = [
        theirs - mine for case in cases for mine, theirs in zip(case.logprobs, case.reference_logprobs, strict=True)
    ]
    return math.exp(min(math.fsum(losses) / len(losses), MOST_NATS))


OF_POSITIONS: Mapping[str, Callable[[Sequence[Positions]], float]] = {
    "mean_kld": _mean_kld,
    "median_kld": lambda cases: percentile(_pooled(cases), 0.5),
    "p99_kld": lambda cases: percentile(_pooled(cases), PERCENTILE),
    "same_top_1": _same_top,
    "delta_p": _mean_shift,
    "rms_delta_p": _rms_shift,
    "ppl_ratio": _ppl_ratio,
}
"""Metric identifier → its value over answers along the batched path, at least one position."""

DECODE_KLD, PATH_DISTANCE, BROKEN = "decode_kld", "path_distance", "broken_logits"


def measure_fidelity(forced: Iterable[Forced]) -> tuple[Measurement, ...]:
    """Measurements of one variant, by metric, then ``all`` and each domain; nothing where nothing was forced.

    Samples: one a case, the same metric over its positions. The decode path is measured over all its cases together.
    """
    everything = sorted(forced, key=lambda one: one.case)
    batched, decoded = (_along(everything, path) for path in ("batched", "decode"))
    scopes = {ALL: batched} | {d: [f for f in batched if f.domain == d] for d in sorted({f.domain for f in batched})}
    found = [_measure(metric, scope, part) for metric in OF_POSITIONS for scope, part in scopes.items() if part]
    if decoded:
        found.append(_measure_one(DECODE_KLD, ALL, decoded, _mean_kld))
        found.append(_measure_distance(decoded))
    if everything:
        found.append(_measure_broken(everything))
    return tuple(found)


def _along(forced: Iterable[Forced], path: EvaluationPath) -> list[Forced]:
    return [one for one in forced if one.path == path]


def _measure(metric: str, scope: str, forced: Sequence[Forced]) -> Measurement:
    return _measure_one(metric, scope, forced, OF_POSITIONS[metric])


def _measure_one(
    metric: str, scope: str, forced: Sequence[Forced], formula: Callable[[Sequence[Positions]], float]
) -> Measurement:
    cases = [positions for one in forced if (positions := positions_of(one)).kld]
    if not cases:
        return Measurement(
            metric=metric, scope=scope, value=None, status="not_measured", reason="none of its logits are numbers"
        )
    return Measurement(
        metric=metric, scope=scope, value=formula(cases), samples=tuple(formula([case]) for case in cases)
    )


def _measure_distance(decoded: Sequence[Forced]) -> Measurement:
    """How far the variant's own two paths are apart."""
    cases = [distances_of(one) for one in decoded]
    pooled = [value for case in cases for value in case]
    if not pooled:
        reason = "none of its logits are numbers"
        return Measurement(metric=PATH_DISTANCE, scope=ALL, value=None, status="not_measured", reason=reason)
    return Measurement(
        metric=PATH_DISTANCE,
        scope=ALL,
        value=math.fsum(pooled) / len(pooled),
        samples=tuple(math.fsum(case) / len(case) for case in cases if case),
    )


def _measure_broken(forced: Sequence[Forced]) -> Measurement:
    """Share of positions, along both paths, whose logits are no numbers."""
    shares = [len(one.broken) / len(one.kld) for one in forced if one.kld]
    total = sum(len(one.kld) for one in forced)
    value = sum(len(one.broken) for one in forced) / total if total else 0.0
    return Measurement(metric=BROKEN, scope=ALL, value=value, samples=tuple(shares))


def kld_interval(
    forced: Sequence[Forced], confidence: float = 0.95, *, path: EvaluationPath = "batched"
) -> tuple[float, float] | None:
    """Interval of the mean divergence along one path, nats, never below 0: cases of one family are one cluster.

    None for fewer than two clusters.
    """
    clusters: dict[tuple[bool, str], list[float]] = {}
    for one in forced:
        if one.path == path:
            key = (one.family is not None, one.family or one.case)
            clusters.setdefault(key, []).extend(positions_of(one).kld)
    filled = [values for values in clusters.values() if values]
    estimate = share_of_sums([math.fsum(values) for values in filled], [float(len(values)) for values in filled])
    if estimate is None:
        return None
    low, high = interval_of(estimate, confidence)
    return max(low, 0.0), high
