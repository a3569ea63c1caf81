"""Another machine's baseline: only what has no unit may be held against it, and nothing fails by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suite.metrics.speed import speedup_interval
from suite.records import Aspect, Baselines, Comparison, Measurement, SpeedBaseline, Tier, VariantResult, Verdict

_DECODE, _SPEEDUP = "decode_tok_s", "speedup"


def compare_speedups(
    results: Sequence[VariantResult], baselines: Mapping[str, Baselines], reference: str
) -> tuple[Comparison, ...]:
    """Speed-up over the reference here beside that on another machine, for variants without a baseline of this one.

    `results` hold their speed-ups; `baselines` are by variant. Every comparison is NOT_COMPARABLE: it informs.
    """
    of_reference = {b.machine: b for b in baselines.get(reference, Baselines()).foreign}
    found = []
    for result in results:
        stored = baselines.get(result.variant.name, Baselines())
        if stored.speed is not None:
            continue
        pairs = [(b, of_reference[b.machine]) for b in stored.foreign if b.machine in of_reference]
        for measured in result.measurements if pairs else ():
            if measured.metric == _SPEEDUP and measured.value is not None:
                found += [_beside(result.variant.name, measured, *pair) for pair in pairs[:1]]
    return tuple(comparison for comparison in found if comparison is not None)


def _beside(variant: str, now: Measurement, own: SpeedBaseline, reference: SpeedBaseline) -> Comparison | None:
    values = [baseline.metrics.get(f"{_DECODE}/{now.scope}") for baseline in (own, reference)]
    if now.value is None or None in values or not all(value and value.value for value in values):
        return None
    mine, theirs = (value.value for value in values if value is not None)
    then = mine / theirs
    bounds = speedup_interval(now.samples)
    here = f"{now.value:.2f}×" + (f" (95 %: {bounds[0]:.2f} … {bounds[1]:.2f})" if bounds else "")
    return Comparison(
        variant=variant,
        metric=_SPEEDUP,
        scope=now.scope,
        aspect=Aspect.SPEED,
        tier=Tier.FOREIGN,
        observed=now.value,
        baseline=then,
        drift=(then - now.value) / then,
        interval=((then - bounds[1]) / then, (then - bounds[0]) / then) if bounds else None,
        n=len(now.samples),
        n_baseline=len(own.metrics[f"{_DECODE}/{now.scope}"].launches),
        unresolved=Verdict.NOT_COMPARABLE,
        reason=f"{here} the reference's decode rate here, {then:.2f}× on {own.machine}; another machine fails nothing",
    )
