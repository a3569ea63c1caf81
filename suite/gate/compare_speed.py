"""Speed and memory now beside the accepted ones of the same variant on the same machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.gate.compare_none import compare_with_none
from suite.gate.differences import (
    MACHINE,
    concerning,
    describe_accepted,
    describe_changes,
    describe_differences,
    speed_identity,
    speed_suspects,
)
from suite.gate.duet import OldSide, describe_beside, suspects_beside, values_beside
from suite.gate.flags import find_flags
from suite.gate.plan import GateItem
from suite.gate.sessions import session_spread
from suite.metrics.catalog import SPECS
from suite.metrics.kinds import HELD_TO_NONE
from suite.metrics.speed import PER_SAMPLE, YARDSTICKS, launch_medians, launch_values, pair_logs, relative_drift
from suite.records import (
    ALL,
    Aspect,
    BaselineMetric,
    Baselines,
    Comparison,
    Direction,
    Environment,
    Measurement,
    Noise,
    NoiseFloor,
    SampleStatus,
    SpeedBaseline,
    SpeedSample,
    Tier,
    VariantResult,
    Verdict,
)
from suite.stats.intervals import (
    PAIRED_SD_FLOOR,
    STORED_SD_FLOOR,
    Estimate,
    interval_of,
    paired_mean,
    stored_difference,
)
from suite.store.baselines import as_stored

NOT_COMPARED = frozenset({"speedup", "mbu", "mfu"})
"""Never gated on drift: a regression that hits reference and variant alike, or the device too, would cancel out."""


USUAL_SESSIONS = 3.0
"""A yardstick that moved by less than this many standard deviations between sessions tells nothing that calibration did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What every comparison of one variant's speed shares."""

    result: VariantResult
    baseline: SpeedBaseline | None
    tier: Tier
    differences: tuple[str, ...]
    suspects: tuple[str, ...]
    samples: tuple[SpeedSample, ...] = ()
    noise: Noise | None = None
    old: OldSide | None = None
    looks: int = 1

    def is_unsuited(self, scenario: str) -> bool:
        """Whether the variant cannot do a scenario."""
        return any(s.scenario == scenario and s.status is SampleStatus.UNSUITED for s in self.samples)

    @property
    def accepted(self) -> str:
        """What it is compared with, for people."""
        if self.old is not None:
            return describe_beside(self.old)
        return describe_accepted(self.baseline) if self.baseline else ""

    @property
    def accepted_values(self) -> Mapping[str, BaselineMetric]:
        """By ``metric/scope``."""
        if self.old is not None:
            return values_beside(self.old)
        return self.baseline.metrics if self.baseline else {}

    def floor(self, metric: str) -> NoiseFloor | None:
        """How much the metric varies on this machine when nothing changed, if that is known."""
        return self.noise.floors.get(metric) if self.noise else None

    def flags(self, scope: str) -> tuple[str, ...]:
        """What was wrong with the machine while `scope` was timed, on either side."""
        own = [sample for sample in self.samples if scope in (ALL, sample.scenario)]
        found = find_flags(own, self.result.launches, side_by_side=self.old is not None)
        if self.old is None:
            return found
        others = [sample for sample in self.old.samples if scope in (ALL, sample.scenario)]
        return found + tuple(
            f"{self.old.described}: {flag}" for flag in find_flags(others, self.old.result.launches, side_by_side=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What belongs to the speed of one variant in this run, beside its measurements."""

    samples: tuple[SpeedSample, ...] = ()
    old: OldSide | None = None
    looks: int = 1


def compare_speed(
    result: VariantResult,
    baselines: Baselines,
    environment: Environment,
    planned: Sequence[GateItem],
    timed: Timed | None = None,
) -> tuple[Comparison, ...]:
    """One comparison for every planned speed and memory gate and for everything else that was measured or accepted."""
    ground = _survey(result, baselines, environment, timed or Timed())
    measured = {(m.metric, m.scope): m for m in result.measurements if _is_compared(m.metric)}
    wanted = [(item.metric, item.scope) for item in planned if item.aspect is not Aspect.QUALITY]
    found = [key for key, measurement in measured.items() if measurement.value is not None]
    accepted = [_split(key) for key in ground.baseline.metrics] if ground.baseline and not planned else []
    keys = dict.fromkeys([*wanted, *found, *(key for key in accepted if _is_compared(key[0]))])
    return tuple(_compare_one(key, measured.get(key), ground) for key in keys)


def _survey(result: VariantResult, baselines: Baselines, environment: Environment, timed: Timed) -> _Ground:
    shared: dict[str, Any] = {
        "result": result,
        "samples": timed.samples,
        "noise": baselines.noise,
        "old": timed.old,
        "looks": timed.looks,
    }
    if timed.old is not None:
        suspects = suspects_beside(result, timed.old, environment)
        return _Ground(baseline=None, tier=Tier.DUET, differences=(), suspects=suspects, **shared)
    identity = speed_identity(result, environment)
    candidates = [baselines.speed] if baselines.speed else list(baselines.foreign)
    by_distance = sorted(candidates, key=lambda b: len(describe_differences(b.identity, identity)))
    baseline = by_distance[0] if by_distance else None
    if baseline is None:
        return _Ground(baseline=None, tier=Tier.NONE, differences=(), suspects=(), **shared)
    differences = describe_differences(baseline.identity, identity)
    foreign = baselines.speed is None or any(difference.startswith(MACHINE) for difference in differences)
    if foreign and not differences:
        differences = (f"machine: {baseline.machine} → {environment.machine}",)
    return _Ground(
        baseline=baseline,
        tier=Tier.FOREIGN if foreign else Tier.STORED,
        differences=differences,
        suspects=describe_changes(baseline.suspects, speed_suspects(result, environment)),
        **shared,
    )


def _compare_one(key: tuple[str, str], measurement: Measurement | None, ground: _Ground) -> Comparison:
    metric, scope = key
    if metric in HELD_TO_NONE:
        name, aspect = ground.result.variant.name, SPECS[metric].aspect
        unsuited = ground.is_unsuited(scope)
        bare = Comparison(variant=name, metric=metric, scope=scope, aspect=aspect, tier=Tier.NONE, unsuited=unsuited)
        return compare_with_none(bare, measurement, ground.result.failure)
    baseline = ground.accepted_values.get(f"{metric}/{scope}")
    unresolved = _unresolved(scope, measurement, baseline, ground)
    values = _values(measurement, baseline, ground) if unresolved is None else None
    estimate = values.estimate if values else None
    share = _to_share(SPECS[metric].direction)
    low, high = interval_of(estimate) if estimate else (0.0, 0.0)
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=SPECS[metric].aspect,
        tier=ground.tier,
        unsuited=ground.is_unsuited(scope),
        observed=measurement.value if measurement else None,
        baseline=baseline.value if baseline else None,
        drift=share(estimate.mean) if estimate and ground.old else values.drift if values else None,
        interval=(share(low), share(high)) if estimate else _memory_range(measurement, baseline) if values else None,
        log_drift=estimate.mean if estimate else None,
        log_se=estimate.se if estimate else None,
        log_df=estimate.df if estimate else None,
        log_floor=values.floor if values else 0.0,
        assumed=bool(estimate) and _is_assumed(metric, ground),
        n=_count_launches(measurement, estimate, ground),
        n_baseline=len(baseline.launches) if baseline else 0,
        unresolved=unresolved[0] if unresolved else None,
        reason=unresolved[1] if unresolved else (measurement.reason or "") if measurement else "",
        suspects=ground.suspects,
        accepted=ground.accepted,
        machine_drift=_machine_drift(metric, ground) if estimate else (),
        contended=_contended(measurement),
        flags=ground.flags(scope) if _is_timed(measurement) else (),
        looks=ground.looks,
    )


def _count_launches(measurement: Measurement | None, estimate: Estimate | None, ground: _Ground) -> int:
    """Launches behind the numbers: side by side those that are clean on both sides."""
    if estimate is not None and ground.old is not None:
        return int(estimate.df) + 1
    return len(launch_medians(measurement)) if measurement else 0


def _machine_drift(metric: str, ground: _Ground) -> tuple[float, ...]:
    """By which share each yardstick is slower than it was beside the baseline, as far as calibration has not seen it move.

    Empty side by side, where both sides met the same machine, and where the values were divided by a yardstick.
    """
    floor = ground.floor(metric)
    if ground.old is not None or _machine_change(floor, ground) is not None:
        return ()
    accepted = ground.baseline.metrics if ground.baseline else {}
    measured = {m.metric: m.value for m in ground.result.measurements if m.metric in YARDSTICKS}
    pairs = [(accepted.get(f"{name}/{ALL}"), measured.get(name)) for name in YARDSTICKS]
    drifts = [relative_drift(then.value, now, Direction.HIGHER) for then, now in pairs if then and now]
    usual = (
        USUAL_SESSIONS * session_spread(floor, normalised=False)[0]
        if floor is not None and floor.session_df > 0
        else 0.0
    )
    return tuple(drift for drift in drifts if drift is not None and abs(drift) > usual)


def _is_timed(measurement: Measurement | None) -> bool:
    """Whether it is a speed that was measured: what disturbed it is told even where nothing was accepted to compare with."""
    return (
        measurement is not None and measurement.value is not None and SPECS[measurement.metric].aspect is Aspect.SPEED
    )


def _is_assumed(metric: str, ground: _Ground) -> bool:
    """Whether nobody has measured how much sessions differ here. Simulated time, which has no yardstick, has no sessions."""
    floor = ground.floor(metric)
    timed = any(m.metric in YARDSTICKS and m.value is not None for m in ground.result.measurements)
    return ground.old is None and timed and (floor is None or floor.session_df < 1)


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
    if ground.old is not None:
        return _unresolved_beside(baseline, ground.old)
    return _unresolved_stored(scope, baseline, ground)


def _unresolved_stored(scope: str, baseline: BaselineMetric | None, ground: _Ground) -> tuple[Verdict, str] | None:
    if ground.baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this variant yet"
    differences = concerning(ground.differences, scope)
    if differences:
        other = "" if ground.tier is Tier.STORED else f"the baseline is from machine {ground.baseline.machine}: "
        return Verdict.NOT_COMPARABLE, other + "; ".join(differences)
    if baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this metric yet"
    return None


def _unresolved_beside(baseline: BaselineMetric | None, old: OldSide) -> tuple[Verdict, str] | None:
    if failure := old.result.failure:
        return Verdict.NOT_MEASURED, f"{old.described} could not be measured: {failure.reason}"
    return (Verdict.NOT_MEASURED, f"it was not measured of {old.described}") if baseline is None else None


@dataclass(frozen=True, slots=True)
class _Values:
    drift: float | None
    estimate: Estimate | None = None
    floor: float = 0.0
    """The part of its standard error that more launches do not make smaller."""


def _values(measurement: Measurement | None, baseline: BaselineMetric | None, ground: _Ground) -> _Values | None:
    """Drift of the values; for speed also the drift on the scale of logs, with its standard error.

    The values are medians of launches and the estimate is a mean of their logs, so the one need not be the other.
    """
    if measurement is None or measurement.value is None or baseline is None:
        return None
    direction = SPECS[measurement.metric].direction
    fresh = as_stored(BaselineMetric(value=measurement.value, unit=baseline.unit))
    unchanged = fresh.value == as_stored(baseline).value  # stored with fewer digits than are measured
    drift = 0.0 if unchanged else relative_drift(baseline.value, measurement.value, direction)
    if SPECS[measurement.metric].aspect is Aspect.MEMORY or measurement.status == "contended":
        return _Values(drift)
    if ground.old is not None:
        return _Values(drift, _beside(measurement, ground, ground.old))
    return _stored(drift, measurement, baseline, ground)


def _memory_range(measurement: Measurement | None, baseline: BaselineMetric | None) -> tuple[float, float] | None:
    """Memory: the least and the largest drift between any launch of now and any of then; None where launches do not differ.

    Peaks of some libraries depend on how their threads happened to meet while they loaded.
    """
    if measurement is None or baseline is None or SPECS[measurement.metric].aspect is not Aspect.MEMORY:
        return None
    now, then = launch_medians(measurement), baseline.launches
    if not now or not then or min(then) <= 0 or (min(now) == max(now) and min(then) == max(then)):
        return None
    return min(now) / max(then) - 1, max(now) / min(then) - 1


def _beside(measurement: Measurement, ground: _Ground, old: OldSide) -> Estimate | None:
    """Side by side: the mean over launches of the log ratio of adjacent slices, or of the launches where there are none."""
    if measurement.metric in PER_SAMPLE:
        now, then = (
            tuple(s for s in side if s.scenario == measurement.scope) for side in (ground.samples, old.samples)
        )
        return paired_mean(list(pair_logs(measurement.metric, now, then).values()))
    key = (measurement.metric, measurement.scope)
    beside = next((m for m in old.result.measurements if (m.metric, m.scope) == key), None)
    olds = launch_values(beside) if beside else {}
    pairs = [(new, olds[launch]) for launch, new in launch_values(measurement).items() if launch in olds]
    worse = 1 if SPECS[measurement.metric].direction is Direction.LOWER else -1
    return paired_mean([worse * math.log(new / then) for new, then in pairs if new > 0 and then > 0])


def _stored(drift: float | None, measurement: Measurement, baseline: BaselineMetric, ground: _Ground) -> _Values:
    """Against accepted launches of another session: the spread of the launches, and that between sessions."""
    now, then = launch_medians(measurement), baseline.launches
    floor = ground.floor(measurement.metric)
    if not now or not then or min(*now, *then) <= 0:
        return _Values(drift)
    worse = 1 if SPECS[measurement.metric].direction is Direction.LOWER else -1
    machine = _machine_change(floor, ground)
    shift = machine or 0.0  # a rate / yardstick and a time × yardstick: on the scale of "worse" the same
    session_sd, session_df = session_spread(floor, normalised=machine is not None)
    estimate = stored_difference(
        [worse * math.log(value) + shift for value in now],
        [worse * math.log(value) for value in then],
        sd_floor=max(floor.launch_sd, PAIRED_SD_FLOOR) if floor else STORED_SD_FLOOR,
        session_sd=session_sd,
        session_df=session_df,
    )
    if estimate is None:
        return _Values(drift)
    launches = max(estimate.se**2 - 2 * session_sd**2, 0.0) / (1 / len(now) + 1 / len(then))
    return _Values(drift, estimate, math.sqrt(2 * session_sd**2 + launches / len(then)))


def _machine_change(floor: NoiseFloor | None, ground: _Ground) -> float | None:
    """Log of the yardstick now / then, for what calibration has shown to be steadier when divided by it; None: as measured."""
    if floor is None or floor.normaliser == "none":
        return None
    yardstick = f"yardstick_{floor.normaliser}_bytes_s"
    measured = next((m for m in ground.result.measurements if m.metric == yardstick), None)
    accepted = ground.baseline.metrics.get(f"{yardstick}/{ALL}") if ground.baseline else None
    if measured is None or accepted is None or not measured.value or not accepted.value:
        return None
    return math.log(measured.value / accepted.value)


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
