"""How close a variant comes to what its device gave in the same run: `mbu` while it decodes, `mfu` while it prefills."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.metrics.roofline import (
    Roofline,
    Work,
    bandwidth_for,
    decode_bytes,
    decode_flop,
    middle,
    prefill_bytes,
    prefill_flop,
    roofline,
    shared_weight_bytes,
)
from suite.metrics.speed import FEWEST_GAPS, launch_values
from suite.records import Demand, Launch, Limits, Measurement, Run, SampleStatus, SpeedSample, VariantResult

MBU, MFU = "mbu", "mfu"
SHARES = (MBU, MFU)
"""Shares of what the device gave. Never gated: they move with `decode_tok_s` and `prefill_tok_s`, or with the device."""

UNTOLD = "the headers of its weights do not tell what a token reads"
MOST_DISAGREEMENT = 0.02
"""Share by which a KV cache may differ from its computed size: paddings are smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a scenario evaluated, by the samples that were taken of it."""

    scenario: str
    work: Work

    @property
    def decodes(self) -> bool:
        """Whether it decodes enough tokens to tell a speed."""
        return self.work.new_tokens - 1 >= FEWEST_GAPS


def timed_scenarios(samples: Iterable[SpeedSample]) -> tuple[Timed, ...]:
    """The scenarios of which there are samples, by first appearance; a rejected one tells only where there is no other."""
    found: dict[str, Timed] = {}
    for sample in sorted(samples, key=lambda sample: sample.status is SampleStatus.REJECTED):
        if sample.new_tokens > 0:
            found.setdefault(sample.scenario, Timed(scenario=sample.scenario, work=_work_of(sample)))
    return tuple(found.values())


def _work_of(sample: SpeedSample) -> Work:
    return Work(
        prompt_tokens=sample.prompt_tokens // sample.batch,
        new_tokens=sample.new_tokens,
        kept_tokens=sample.kept_tokens,
        batch=sample.batch,
    )


def measure_limits(
    demand: Demand | None,
    speeds: Sequence[Measurement],
    samples: Sequence[SpeedSample],
    launches: Sequence[Launch],
) -> tuple[Measurement, ...]:
    """`mbu` of each scenario that decodes, and `mfu` of each, of one variant; nothing where no device was asked.

    One sample a launch: the launch's own rate (`speeds`) against its own readings of the device. Value: geometric mean.
    """
    limits = {launch.index: launch.limits for launch in launches if launch.limits is not None}
    if not limits:
        return ()
    rates = {(m.metric, m.scope): m for m in speeds}
    found = []
    for timed in timed_scenarios(samples):
        for metric, of, share in _shares(demand, timed):
            speed = rates.get((of, timed.scenario))
            if speed is not None:
                found.append(_measure(metric, speed, limits, None if demand is None else share))
    return tuple(found)


Share = Callable[[float, Limits], float | None]
"""From a rate in tokens a second and what the device gave to the share of it that was reached; None where not known."""


def _shares(demand: Demand | None, timed: Timed) -> Iterable[tuple[str, str, Share]]:
    """Each metric of a scenario, the rate that it is made of, and how."""
    if timed.decodes:
        yield MBU, "decode_tok_s", lambda rate, limits: _mbu(demand, timed, rate, limits)
    yield MFU, "prefill_tok_s", lambda rate, limits: _mfu(demand, timed, rate, limits)


def _mbu(demand: Demand | None, timed: Timed, rate: float, limits: Limits) -> float | None:
    if demand is None:
        return None
    needed = decode_bytes(demand, timed.work)
    bandwidth = bandwidth_for(limits, needed * timed.work.batch)
    return needed * rate / bandwidth if bandwidth else None


def _mfu(demand: Demand | None, timed: Timed, rate: float, limits: Limits) -> float | None:
    flop = prefill_flop(demand, timed.work) if demand else None
    if flop is None or not limits.flop_s or timed.work.evaluated_tokens <= 0:
        return None
    return flop / timed.work.evaluated_tokens * rate / limits.flop_s


def _measure(metric: str, speed: Measurement, limits: Mapping[int, Limits], share: Share | None) -> Measurement:
    pairs = [
        (value, launch)
        for launch, rate in launch_values(speed).items()
        if share is not None and launch in limits
        if (value := share(rate, limits[launch])) is not None and value > 0
    ]
    if not pairs:
        told = next((one.reason for one in limits.values() if one.reason), "")
        reason = (told or UNTOLD) if share is None else _why_not(metric, speed, told)
        return Measurement(metric=metric, scope=speed.scope, value=None, status="not_measured", reason=reason)
    return Measurement(
        metric=metric,
        scope=speed.scope,
        value=math.exp(math.fsum(math.log(value) for value, _ in pairs) / len(pairs)),
        samples=tuple(value for value, _ in pairs),
        launches=tuple(launch for _, launch in pairs),
        status=speed.status,
        reason=speed.reason,
    )


def _why_not(metric: str, speed: Measurement, told: str) -> str:
    if speed.value is None:
        return f"{speed.metric} was not measured: {speed.reason}"
    if told:
        return told
    what = "the bandwidth of its device was not read" if metric == MBU else "its weights could not be counted"
    return f"{what} in any launch with usable samples"


# --------------------------------------------------------------------------------------------- for reports


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioLimits:
    """What bounds one variant in one scenario, with the median of what the device gave over the launches."""

    timed: Timed
    decode: Roofline
    prefill: Roofline
    kv_bytes: float
    """The part of `decode.read_bytes` that is keys and values."""

    @property
    def roofline_tok_s(self) -> float | None:
        """Decode rate at which memory would be used to the full: bandwidth / bytes per token."""
        return 1 / self.decode.memory_s if self.decode.memory_s else None


def limits_of(result: VariantResult, samples: Iterable[SpeedSample]) -> tuple[ScenarioLimits, ...]:
    """What bounds a variant in each scenario; nothing without a demand, or where no device was asked."""
    demand = result.artifact.demand if result.artifact else None
    given = middle(launch.limits for launch in result.launches if launch.limits is not None)
    if demand is None or given is None:
        return ()
    own = [sample for sample in samples if sample.variant == result.variant.name]
    return tuple(_limits_of(demand, timed, given) for timed in timed_scenarios(own))


def _limits_of(demand: Demand, timed: Timed, given: Limits) -> ScenarioLimits:
    work = timed.work
    needed = decode_bytes(demand, work)
    return ScenarioLimits(
        timed=timed,
        decode=roofline(needed, decode_flop(demand, work), given, at_once=needed * work.batch),
        prefill=roofline(prefill_bytes(demand, work), prefill_flop(demand, work), given),
        kv_bytes=needed - shared_weight_bytes(demand, work),
    )


# ------------------------------------------------------------------------------------- the KV cache, told twice


@dataclass(frozen=True, slots=True, kw_only=True)
class KvDisagreement:
    """A KV cache that is not as large as the shape of the model says."""

    variant: str
    computed_bytes: int
    reported_bytes: int
    hint: str
    """What would explain it, where something does; else ""."""

    @property
    def sentence(self) -> str:
        """For people: both sizes, and what would explain them."""
        computed, reported = self.computed_bytes / 1e6, self.reported_bytes / 1e6
        more = "more" if self.reported_bytes > self.computed_bytes else "less"
        share = abs(self.reported_bytes / self.computed_bytes - 1)
        because = f": {self.hint}" if self.hint else "; nothing that is known of the model explains it"
        return (
            f"the KV cache of {self.variant} takes {reported:.4g} MB as its backend reports, {computed:.4g} MB by the shape "
            f"of the model ({100 * share:.3g} % {more}){because}"
        )


def kv_disagreement(run: Run, variant: str) -> KvDisagreement | None:
    """How far the reported size of a variant's KV cache is from the computed one, where it is beyond 2 %; else None.

    None too where one of the two is not known. Of several launches the one that differs most is told.
    """
    result = next((one for one in run.variants if one.variant.name == variant), None)
    if result is None:
        return None
    demand = result.artifact.demand if result.artifact else None
    told = [
        (abs(math.log(reported / computed)), launch)
        for launch in result.launches
        if (computed := launch.kv_cache_bytes) and (reported := launch.kv_cache_reported_bytes)
    ]
    if not told:
        return None
    _, worst = max(told, key=lambda pair: pair[0])
    computed, reported = worst.kv_cache_bytes or 0, worst.kv_cache_reported_bytes or 0
    if abs(reported / computed - 1) <= MOST_DISAGREEMENT:
        return None
    hint = _explain(demand, reported, worst.kv_cache_tokens)
    return KvDisagreement(variant=variant, computed_bytes=computed, reported_bytes=reported, hint=hint)


def _explain(demand: Demand | None, reported: int, tokens: int | None) -> str:
    """Which way of keeping the cache gives the reported size."""
    if demand is None or tokens is None:
        return ""
    windows = {group.window for group in demand.attention if group.window is not None and group.window < tokens}
    shared = any(not group.keeps for group in demand.attention)
    whole = "its backend keeps the whole context for layers that look back on a window"
    each = "its backend keeps keys and values for layers that use those of another one"
    ways = [(True, False, whole)] * bool(windows) + [(False, True, each)] * shared
    ways += [(True, True, f"{whole}, and {each.removeprefix('its backend ')}")] * (bool(windows) and shared)
    for windowless, unshared, words in ways:
        expected = sum(
            group.layers * group.kv_bytes * (tokens if windowless else min(tokens, group.window or tokens))
            for group in demand.attention
            if group.keeps or unshared
        )
        if expected and abs(reported / expected - 1) <= MOST_DISAGREEMENT:
            return words
    return ""
