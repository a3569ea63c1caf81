"""Another machine's baseline: only what has no unit may be held against it, and nothing fails by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suite.gate.differences import MACHINE, concerning, describe_differences
from suite.metrics.speed import speedup_interval
from suite.records import Aspect, Baselines, Comparison, Measurement, SpeedBaseline, Tier, VariantResult, Verdict

_DECODE, _SPEEDUP = "decode_tok_s", "speedup"


def compare_speedups(
    results: Sequence[VariantResult], baselines: Mapping[str, Baselines], reference: str
) -> tuple[Comparison, ...]:
    """Speed-up over the reference here beside that on another machine, for variants without a baseline of this one.

    `results` hold their speed-ups, and the reference's identity; `baselines` are by variant. Both sides must have been asked
    the same question on both machines. Every comparison is NOT_COMPARABLE: it informs.
    """
    base = next((result for result in results if result.variant.name == reference), None)
    if base is None:
        return ()
    of_reference = {b.machine: b for b in baselines.get(reference, Baselines()).foreign}
    found = []
    for result in results:
        stored = baselines.get(result.variant.name, Baselines())
        if stored.speed is not None:
            continue
        pairs = [(b, of_reference[b.machine]) for b in stored.foreign if b.machine in of_reference]
        for measured in result.measurements if pairs else ():
            if measured.metric == _SPEEDUP and measured.value is not None:
                alike = [
                    pair
                    for pair in pairs
                    if _is_alike(result, pair[0], measured.scope) and _is_alike(base, pair[1], measured.scope)
                ]
                found += [_beside(result.variant.name, measured, *pair) for pair in alike[:1]]
    return tuple(comparison for comparison in found if comparison is not None)


def _is_alike(result: VariantResult, baseline: SpeedBaseline, scope: str) -> bool:
    """Whether a scenario's baseline answers the same question, whatever the machine."""
    asked = {name: value for name, value in baseline.identity.items() if not name.startswith(MACHINE)}
    return not concerning(describe_differences(asked, result.identity), scope)


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
