"""Speed and memory now beside the accepted ones of the same variant on the same machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.gate.differences import (
    MACHINE,
    concerning,
    describe_accepted,
    describe_differences,
    speed_identity,
    speed_suspects,
)
from suite.gate.plan import GateItem
from suite.metrics.catalog import SPECS
from suite.metrics.speed import YARDSTICKS
from suite.records import (
    ALL,
    Aspect,
    BaselineMetric,
    Baselines,
    Comparison,
    Direction,
    Environment,
    Measurement,
    SpeedBaseline,
    Tier,
    VariantResult,
    Verdict,
)
from suite.stats.intervals import Interval, welch_interval
from suite.stats.robust import group_medians
from suite.store.baselines import as_stored

NOT_COMPARED = frozenset({"speedup"})
"""Never gated on drift: a regression that hits reference and variant alike would cancel out."""


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every comparison of one variant's speed shares."""

    result: VariantResult
    baseline: SpeedBaseline | None
    tier: Tier
    differences: tuple[str, ...]
    suspects: tuple[str, ...]


def compare_speed(
    result: VariantResult, baselines: Baselines, environment: Environment, planned: Sequence[GateItem]
) -> tuple[Comparison, ...]:
    """One comparison for every planned speed and memory gate and for everything else that was measured or accepted."""
    ground = _survey(result, baselines, environment)
    measured = {(m.metric, m.scope): m for m in result.measurements if _is_compared(m.metric)}
    wanted = [(item.metric, item.scope) for item in planned if item.aspect is not Aspect.QUALITY]
    found = [key for key, measurement in measured.items() if measurement.value is not None]
    accepted = [_split(key) for key in ground.baseline.metrics] if ground.baseline and not planned else []
    keys = dict.fromkeys([*wanted, *found, *(key for key in accepted if _is_compared(key[0]))])
    return tuple(_compare_one(key, measured.get(key), ground) for key in keys)


def launch_medians(measurement: Measurement) -> tuple[float, ...]:
    """The median of each launch, in order of the launches: what is stored, and what statistics see."""
    return tuple(group_medians(measurement.samples, measurement.launches).values()) if measurement.launches else ()


def relative_drift(then: float, now: float, direction: Direction) -> float | None:
    """Share of the old value that was lost (positive is worse); None when the old value is 0 and the new is not."""
    if then == 0:
        return 0.0 if now == 0 else None
    change = (now - then) / then
    return change if direction is Direction.LOWER else 0.0 - change


def _survey(result: VariantResult, baselines: Baselines, environment: Environment) -> _Ground:
    identity = speed_identity(result, environment)
    candidates = [baselines.speed] if baselines.speed else list(baselines.foreign)
    by_distance = sorted(candidates, key=lambda b: len(describe_differences(b.identity, identity)))
    baseline = by_distance[0] if by_distance else None
    if baseline is None:
        return _Ground(result, None, Tier.NONE, (), ())
    differences = describe_differences(baseline.identity, identity)
    foreign = baselines.speed is None or any(difference.startswith(MACHINE) for difference in differences)
    if foreign and not differences:
        differences = (f"machine: {baseline.machine} → {environment.machine}",)
    return _Ground(
        result=result,
        baseline=baseline,
        tier=Tier.FOREIGN if foreign else Tier.STORED,
        differences=differences,
        suspects=describe_differences(baseline.suspects, speed_suspects(result, environment)),
    )


def _compare_one(key: tuple[str, str], measurement: Measurement | None, ground: _Ground) -> Comparison:
    metric, scope = key
    baseline = ground.baseline.metrics.get(f"{metric}/{scope}") if ground.baseline else None
    unresolved = _unresolved(scope, measurement, baseline, ground)
    values = _values(measurement, baseline, SPECS[metric].direction) if unresolved is None else None
    interval = values.interval if values else None
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=SPECS[metric].aspect,
        tier=ground.tier,
        observed=measurement.value if measurement else None,
        baseline=baseline.value if baseline else None,
        drift=values.drift if values else None,
        interval=interval,
        mde=values.mde if values else None,
        n=len(launch_medians(measurement)) if measurement else 0,
        n_baseline=len(baseline.launches) if baseline else 0,
        unresolved=unresolved[0] if unresolved else None,
        reason=unresolved[1] if unresolved else (measurement.reason or "") if measurement else "",
        suspects=ground.suspects,
        accepted=describe_accepted(ground.baseline) if ground.baseline else "",
        machine_drift=_machine_drift(ground) if values and values.interval else (),
        contended=_contended(measurement),
    )


def _machine_drift(ground: _Ground) -> tuple[float, ...]:
    """By which share each yardstick is slower than it was beside the baseline; empty where one side has none."""
    accepted = ground.baseline.metrics if ground.baseline else {}
    measured = {m.metric: m.value for m in ground.result.measurements if m.metric in YARDSTICKS}
    pairs = [(accepted.get(f"{name}/{ALL}"), measured.get(name)) for name in YARDSTICKS]
    drifts = [relative_drift(then.value, now, Direction.HIGHER) for then, now in pairs if then and now]
    return tuple(drift for drift in drifts if drift is not None)


def _contended(measurement: Measurement | None) -> str:
    if measurement is None or measurement.status != "contended":
        return ""
    return measurement.reason or "no clean sample"


def _unresolved(
    scope: str, measurement: Measurement | None, baseline: BaselineMetric | None, ground: _Ground
) -> tuple[Verdict, str] | None:
    """Why there is nothing to compare, the nearest cause first; None when there is."""
    if failure := ground.result.failure:
        return failure.verdict, failure.reason
    if measurement is None or measurement.value is None:
        return Verdict.NOT_MEASURED, (measurement and measurement.reason) or "it was not part of this run"
    if ground.baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this variant yet"
    differences = concerning(ground.differences, scope)
    if differences:
        other = "" if ground.tier is Tier.STORED else f"the baseline is from machine {ground.baseline.machine}: "
        return Verdict.NOT_COMPARABLE, other + "; ".join(differences)
    if baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this metric yet"
    return None


@dataclass(frozen=True, slots=True)
class _Values:
    drift: float | None
    interval: tuple[float, float] | None = None
    mde: float | None = None


def _values(measurement: Measurement | None, baseline: BaselineMetric | None, direction: Direction) -> _Values | None:
    """Drift of the values; for speed also the interval and the smallest drift that could be told from none.

    The values are medians of launch medians and the interval is one of means of their logs, so it need not be centred.
    """
    if measurement is None or measurement.value is None or baseline is None:
        return None
    fresh = as_stored(BaselineMetric(value=measurement.value, unit=baseline.unit))
    unchanged = fresh.value == as_stored(baseline).value  # stored with fewer digits than are measured
    drift = 0.0 if unchanged else relative_drift(baseline.value, measurement.value, direction)
    if SPECS[measurement.metric].aspect is Aspect.MEMORY or measurement.status == "contended":
        return _Values(drift)
    interval = _worsening(launch_medians(measurement), baseline.launches, direction)
    if interval is None:
        return _Values(drift)
    to_share = _to_share(direction)
    return _Values(drift, (to_share(interval.low), to_share(interval.high)), to_share(interval.half_width))


def _worsening(now: Sequence[float], then: Sequence[float], direction: Direction) -> Interval | None:
    """Interval of the log ratio, positive is worse; None for too few launches or a value without a logarithm."""
    if not now or not then or min(*now, *then) <= 0:
        return None
    logs_now, logs_then = ([math.log(value) for value in side] for side in (now, then))
    if direction is Direction.LOWER:
        return welch_interval(logs_now, logs_then)
    return welch_interval(logs_then, logs_now)


def _to_share(direction: Direction) -> Callable[[float], float]:
    """From a log ratio (positive is worse) to the share of the old value: increasing either way."""
    if direction is Direction.LOWER:
        return math.expm1
    return lambda worsening: -math.expm1(-worsening)


def _is_compared(metric: str) -> bool:
    return (
        metric in SPECS
        and SPECS[metric].aspect is not Aspect.QUALITY
        and metric not in NOT_COMPARED
        and metric not in YARDSTICKS
    )


def _split(key: str) -> tuple[str, str]:
    metric, _, scope = key.partition("/")
    return metric, scope
