"""Speed of one variant: timed samples and launches → measurements. Only clean samples count.

`decode_tok_s` follows the definition, (n - 1) / (last - first token time), over all clean samples of a launch together: no
stall is trimmed away. `itl_s` is the median gap, which single stalls cannot move; the two drift apart when a backend stalls
now and then, so the median is the sharp gate and the other one stands guard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from suite.metrics.catalog import SPECS
from suite.metrics.kinds import BY_TIME, FEWEST_TAIL_GAPS, OF_KINDS, belongs, tail_s
from suite.records import Direction, Launch, Measurement, SampleStatus, Scenario, SpeedSample, VariantResult, Witness
from suite.stats.intervals import interval_of, paired_mean
from suite.stats.robust import group_by, harmonic_mean, mean, median

Rate = Callable[[SpeedSample], float | None]

FIRST_GAPS = 2
"""Gaps after a switch to another variant that are left out of the median gap."""
FEWEST_GAPS = 8
"""Gaps that must remain for that."""


def prefill_tok_s(sample: SpeedSample) -> float | None:
    """Newly evaluated prompt tokens / prefill time; None when no time passed."""
    return _finite(sample.evaluated_tokens, sample.prefill_s)


def decode_tok_s(sample: SpeedSample) -> float | None:
    """(n - 1) / sum of the gaps, of all sequences of a batch together; None for fewer than two tokens.

    Tokens that came together with the first one, as a server may send them, were made before it and do not count: 16 tokens
    a chunk would make 64 tokens a third too fast.
    """
    return _finite(sample.batch * _later(sample.itl_s), math.fsum(sample.itl_s))


def tpot_s(sample: SpeedSample) -> float | None:
    """Sum of the gaps / (n - 1); None for fewer than two tokens. Which tokens count: see `decode_tok_s`."""
    return _finite(math.fsum(sample.itl_s), _later(sample.itl_s))


def _later(gaps: Sequence[float]) -> int:
    """Gaps without those of no length that they begin with: one for each token that came later than the first."""
    return len(gaps) - next((index for index, gap in enumerate(gaps) if gap > 0), len(gaps))


def spread_chunks(gaps: Sequence[float]) -> Sequence[float]:
    """Gaps as they are where tokens came one by one; else one for each chunk: the time since the one before / its tokens.

    Tokens of one chunk have no gaps between them; what is left is a chunk's figure, and no tail of single tokens.
    """
    if all(gap > 0 for gap in gaps):
        return gaps
    starts = [index for index, gap in enumerate(gaps) if gap > 0]
    ends = [*starts[1:], len(gaps)]
    return [gaps[start] / (end - start) for start, end in zip(starts, ends, strict=False)]


def median_itl_s(sample: SpeedSample) -> float | None:
    """The median gap between two tokens; None for fewer than two tokens.

    The first gaps after a switch to another variant are a little slower, and left out where enough remain.
    """
    paced = spread_chunks(sample.itl_s)
    gaps = paced[FIRST_GAPS:] if len(paced) >= FIRST_GAPS + FEWEST_GAPS else paced
    return median(gaps) if gaps else None


PER_SAMPLE: Mapping[str, Rate] = {
    "prefill_tok_s": prefill_tok_s,
    "ttft_s": lambda sample: sample.ttft_s,
    "decode_tok_s": decode_tok_s,
    "itl_s": median_itl_s,
    "tpot_s": tpot_s,
    **OF_KINDS,
}
"""Metric identifier → its value for one sample."""

TAILS = tuple(FEWEST_TAIL_GAPS)
"""Metrics with one value a launch, over all gaps of its clean samples together."""

OF_SCENARIOS = (*PER_SAMPLE, *TAILS)
"""Metrics whose scope is a scenario."""

PER_LAUNCH: Mapping[str, Callable[[Launch], float | None]] = {
    "load_s": lambda launch: launch.load_s,
    "cold_ttft_s": lambda launch: launch.cold_ttft_s,
    "yardstick_hash_bytes_s": lambda launch: launch.yardstick.hash_bytes_s if launch.yardstick else None,
    "yardstick_copy_bytes_s": lambda launch: launch.yardstick.copy_bytes_s if launch.yardstick else None,
}


POOLED: Mapping[str, Callable[[Sequence[float]], float]] = {
    "decode_tok_s": harmonic_mean,
    "tpot_s": mean,
}
"""Metrics that nothing is trimmed from: a launch's value is that of all its tokens together (every slice has as many), so that
stalls in a few slices count too. They stand guard beside the medians."""

YARDSTICKS = ("yardstick_hash_bytes_s", "yardstick_copy_bytes_s")
"""The machine's own speed: a witness, never gated. Values are divided by one only where calibration saw that this helps."""


def measure_samples(samples: Sequence[SpeedSample], asked: Sequence[Scenario] = ()) -> tuple[Measurement, ...]:
    """Measurements of one variant's timed samples, by metric, then by scenario in order of first appearance; of `asked` it is
    known which metrics a scenario has.

    Value: median over launches of the launch's value (`launch_values`). With no clean sample the status is
    ``contended``, with what the witnesses saw, and the contended samples for display; with none but rejected samples,
    which timed something else, ``not_measured``.
    """
    known = {scenario.name: scenario for scenario in asked}
    scenarios: dict[str, list[SpeedSample]] = {}
    for sample in samples:
        scenarios.setdefault(sample.scenario, []).append(sample)
    return tuple(
        _measure(metric, scenario, taken)
        for metric in OF_SCENARIOS
        for scenario, taken in scenarios.items()
        if belongs(metric, known.get(scenario))
    )


def launch_values(measurement: Measurement) -> dict[int, float]:
    """One number a launch, the sampling unit: the median over its samples, or all of it where nothing is trimmed."""
    return _by_launch(measurement.metric, measurement.samples, measurement.launches) if measurement.launches else {}


def launch_medians(measurement: Measurement) -> tuple[float, ...]:
    """The value of each launch, in order of the launches: what is stored, and what statistics see."""
    return tuple(launch_values(measurement).values())


def relative_drift(then: float, now: float, direction: Direction) -> float | None:
    """Share of the old value that was lost (positive is worse); None when the old value is 0 and the new is not."""
    if then == 0:
        return 0.0 if now == 0 else None
    change = (now - then) / then
    return change if direction is Direction.LOWER else 0.0 - change


def pair_logs(metric: str, now: Sequence[SpeedSample], old: Sequence[SpeedSample]) -> dict[int, float]:
    """Old and new side by side: by launch, the log of the ratio of their values, positive is worse for the new one.

    Slices of the same launch, scenario and round were taken one right after the other, and count only if both are clean.
    The median over the pairs; of a metric that nothing is trimmed from, the ratio over all pairs together.
    """
    read = PER_SAMPLE[metric]
    olds = {(s.scenario, s.launch, s.round): value for s in old if _is_clean(s) if (value := read(s)) is not None}
    pairs: dict[int, list[tuple[float, float]]] = {}
    for sample in now:
        then = olds.get((sample.scenario, sample.launch, sample.round))
        if then is not None and _is_clean(sample) and (value := read(sample)) is not None:
            pairs.setdefault(sample.launch, []).append((value, then))
    worse = 1 if SPECS[metric].direction is Direction.LOWER else -1
    return {launch: worse * _log_ratio(metric, taken) for launch, taken in sorted(pairs.items())}


def _log_ratio(metric: str, pairs: Sequence[tuple[float, float]]) -> float:
    if metric in POOLED:
        news, olds = zip(*pairs, strict=True)
        return math.log(POOLED[metric](news) / POOLED[metric](olds))
    return median([math.log(new / old) for new, old in pairs])


def _is_clean(sample: SpeedSample) -> bool:
    return sample.status is SampleStatus.CLEAN


def _by_launch(metric: str, samples: Sequence[float], launches: Sequence[int]) -> dict[int, float]:
    combine = POOLED.get(metric, median)
    return {launch: combine(values) for launch, values in group_by(samples, launches).items()}


def measure_launches(launches: Sequence[Launch]) -> tuple[Measurement, ...]:
    """Load time and cold TTFT of one variant, scope ``all``: median over launches, one sample a launch."""
    return tuple(
        _from_pairs(
            metric,
            "all",
            [(value, launch.index) for launch in launches if (value := read(launch)) is not None],
            missing="no launch reported it",
        )
        for metric, read in PER_LAUNCH.items()
        if launches
        if metric not in YARDSTICKS or any(launch.yardstick for launch in launches)
    )


def speedup(results: Sequence[VariantResult], reference: str) -> dict[str, tuple[Measurement, ...]]:
    """Decode rate of each variant / decode rate of the reference, by variant, one measurement a scenario.

    Samples: the ratio of the launch medians of launches with the same index, since variants are interleaved and so met
    the same machine. Value: their geometric mean; `speedup_interval` gives its interval. The reference itself has none.
    """
    base = next((result for result in results if result.variant.name == reference), None)
    if base is None:
        return {}
    return {result.variant.name: tuple(_ratios(result, base)) for result in results if result.variant.name != reference}


def speedup_interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of a geometric mean of ratios (on their logs, one a launch); None for fewer than two."""
    if not ratios or min(ratios) <= 0:
        return None
    estimate = paired_mean([math.log(ratio) for ratio in ratios])
    if estimate is None:
        return None
    low, high = interval_of(estimate)
    return math.exp(low), math.exp(high)


def _ratios(result: VariantResult, base: VariantResult) -> Iterable[Measurement]:
    references = {m.scope: m for m in base.measurements if m.metric == "decode_tok_s"}
    for mine in result.measurements:
        if mine.metric == "decode_tok_s" and mine.scope in references:
            yield _ratio(mine, references[mine.scope])


def _ratio(mine: Measurement, reference: Measurement) -> Measurement:
    for side, whose in ((mine, ""), (reference, "decode_tok_s of the reference was not measured: ")):
        if side.status == "not_measured":
            reason = f"{whose}{side.reason}"
            return Measurement(metric="speedup", scope=mine.scope, value=None, status="not_measured", reason=reason)
    numerators, denominators = launch_values(mine), launch_values(reference)
    shared = sorted(numerators.keys() & denominators.keys())
    if not shared:
        reason = "no launch of both variant and reference has clean samples"
        return Measurement(metric="speedup", scope=mine.scope, value=None, status="not_measured", reason=reason)
    ratios = tuple(numerators[launch] / denominators[launch] for launch in shared)
    contended = next((side for side in (mine, reference) if side.status == "contended"), None)
    return Measurement(
        metric="speedup",
        scope=mine.scope,
        value=math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios)),
        samples=ratios,
        launches=tuple(shared),
        status="contended" if contended else "measured",
        reason=contended.reason if contended else None,
    )


def _measure(metric: str, scenario: str, taken: Sequence[SpeedSample]) -> Measurement:
    clean = [sample for sample in taken if sample.status is SampleStatus.CLEAN]
    usable = clean or [sample for sample in taken if sample.status is SampleStatus.CONTENDED]
    left_out = describe_unclean(taken)
    why_not = next((sample.reason for sample in taken if sample.status is SampleStatus.UNSUITED), None)
    missing = why_not or (f"no usable sample: {left_out}" if left_out else _too_few(metric))
    return _from_pairs(metric, scenario, _pairs(metric, usable), contended=not clean, reason=left_out, missing=missing)


def _pairs(metric: str, usable: Sequence[SpeedSample]) -> list[tuple[float, int]]:
    """Values with the launch that each is of."""
    if metric not in TAILS:
        return [(value, sample.launch) for sample in usable if (value := PER_SAMPLE[metric](sample)) is not None]
    launches: dict[int, list[float]] = {}
    for sample in usable:
        launches.setdefault(sample.launch, []).extend(spread_chunks(sample.itl_s))
    return [(value, launch) for launch, gaps in launches.items() if (value := tail_s(metric, gaps)) is not None]


def _too_few(metric: str) -> str:
    if metric in TAILS:
        return f"no launch has the {FEWEST_TAIL_GAPS[metric]} gaps that it takes"
    if metric in BY_TIME:
        return "everything sent again takes hardly longer than a step of decoding, so that its time tells nothing"
    return "the samples hold too few tokens for it"


def _from_pairs(
    metric: str,
    scope: str,
    pairs: Sequence[tuple[float, int]],
    *,
    missing: str,
    contended: bool = False,
    reason: str | None = None,
) -> Measurement:
    if not pairs:
        return Measurement(metric=metric, scope=scope, value=None, status="not_measured", reason=missing)
    samples, launches = tuple(value for value, _ in pairs), tuple(launch for _, launch in pairs)
    return Measurement(
        metric=metric,
        scope=scope,
        value=median(list(_by_launch(metric, samples, launches).values())),
        samples=samples,
        launches=launches,
        status="contended" if contended else "measured",
        reason=reason,
    )


def describe_unclean(taken: Sequence[SpeedSample]) -> str | None:
    """How many samples were left out and what the witnesses saw, for people; None when all were clean."""
    contended = [sample for sample in taken if sample.status is SampleStatus.CONTENDED]
    rejected = [sample for sample in taken if sample.status is SampleStatus.REJECTED]
    if not contended and not rejected:
        return None
    parts = []
    if contended:
        seen = describe_witnesses([sample.witness for sample in contended])
        parts.append(f"{len(contended)} of {len(taken)} samples contended ({seen})")
    if rejected:
        reasons = sorted({sample.reason or "no reason given" for sample in rejected})
        parts.append(f"{len(rejected)} of {len(taken)} samples rejected ({'; '.join(reasons)})")
    return ", ".join(parts)


def describe_witnesses(witnesses: Sequence[Witness]) -> str:
    """Medians of what the witnesses saw: ``CPU pressure 31 %, own CPU time 66 %, steal 4 %``.

    Own CPU time is the worker's, as a share of wall time × threads.
    """
    columns = {
        "CPU pressure": [w.pressure for w in witnesses],
        "own CPU time": [w.cpu_s / (w.wall_s * w.threads) if w.wall_s > 0 and w.threads else None for w in witnesses],
        "steal": [w.steal for w in witnesses],
    }
    seen = {name: [value for value in column if value is not None] for name, column in columns.items()}
    words = [f"{name} {100 * median(values):.0f} %" for name, values in seen.items() if values]
    return ", ".join(words) if words else "no witness could be read"


def _finite(numerator: float, denominator: float) -> float | None:
    """The ratio, or None when it has no finite, positive value."""
    if denominator <= 0 or numerator <= 0:
        return None
    ratio = numerator / denominator
    return ratio if math.isfinite(ratio) else None
