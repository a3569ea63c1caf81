"""How much a machine varies when nothing changed: sessions of launches → noise floors. Pure.

One-way random effects for each metric, variant and scenario, on logs (`suite.stats.components`); pooled by variances.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from suite.metrics.catalog import SPECS
from suite.metrics.speed import PER_SAMPLE, launch_values, measure_launches, measure_samples, pair_logs
from suite.records import Direction, Launch, Measurement, NoiseFloor, SpeedSample, Yardstick
from suite.stats.components import Components, components
from suite.stats.robust import mad, median

METRICS = ("itl_s", "decode_tok_s", "prefill_tok_s", "ttft_s", "load_s", "cold_ttft_s")
NARROWER = 0.8
"""A yardstick is divided by only where the spread between sessions becomes less than this share of what it was."""
WIDER = 1.1
"""And only where launches do not vary more than this many times what they did."""
SESSIONS_FOR_NORMALISER = 3
LEAST_LIMIT = 0.02
"""No limit of a clean slice is set tighter than this share of the time."""
FENCE_MADS = 6
FEWEST_READINGS = 10

Normaliser = Literal["hash", "copy"]
_YARDSTICKS: Mapping[Normaliser, Callable[[Yardstick], float]] = {
    "hash": lambda yardstick: yardstick.hash_bytes_s,
    "copy": lambda yardstick: yardstick.copy_bytes_s,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What was measured in one go: the samples and launches of every variant."""

    samples: tuple[SpeedSample, ...]
    launches: tuple[Launch, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """In the order in which they stood next to each other."""
        return tuple(dict.fromkeys(launch.variant for launch in self.launches))

    def measurements(self, variant: str) -> list[Measurement]:
        """Everything clean that was measured of one variant."""
        taken = [sample for sample in self.samples if sample.variant == variant]
        launched = [launch for launch in self.launches if launch.variant == variant]
        return [m for m in (*measure_samples(taken), *measure_launches(launched)) if m.status == "measured"]


def find_floors(sessions: Sequence[Session], pairs: Iterable[tuple[str, str]] | None = None) -> dict[str, NoiseFloor]:
    """The noise floor of each of `METRICS` that was measured, pooled over variants and scenarios.

    `pairs` are the variants that stood next to each other and are alike enough to be what a duet is; by default all
    neighbours.
    """
    couples = list(neighbours(sessions) if pairs is None else pairs)
    measured = [{v: session.measurements(v) for v in session.variants} for session in sessions]
    floors = ((metric, _find_floor(metric, sessions, measured, couples)) for metric in METRICS)
    return {metric: floor for metric, floor in floors if floor is not None}


def neighbours(sessions: Sequence[Session]) -> list[tuple[str, str]]:
    """Variants that stood next to each other in every session, in whatever order."""
    lines = [{(min(pair), max(pair)) for pair in pairwise(session.variants)} for session in sessions]
    return sorted(set.intersection(*lines)) if lines else []


def _find_floor(
    metric: str,
    sessions: Sequence[Session],
    measured: Sequence[Mapping[str, Sequence[Measurement]]],
    couples: Sequence[tuple[str, str]],
) -> NoiseFloor | None:
    series = _series(metric, measured)
    plain = _pool([_logs(values) for values in series.values()])
    if plain is None:
        return None
    scopes = len({scope for _, scope in series})
    normaliser, normalised = _find_normaliser(metric, series, sessions, plain)
    pair_sd, pair_df = _pair_spread(metric, sessions, couples)
    return NoiseFloor(
        slice_sd=_slice_spread(metric, measured),
        launch_sd=plain.launch_sd,
        launch_df=max(plain.launch_df // scopes, 1),  # scenarios of one launch share its luck
        session_sd=plain.session_sd,
        session_df=plain.session_df,
        normaliser=normaliser,
        normalised_session_sd=normalised,
        pair_sd=pair_sd,
        pair_df=pair_df,
    )


Series = list[dict[int, float]]
"""By session, the value of each launch."""


def _series(metric: str, measured: Sequence[Mapping[str, Sequence[Measurement]]]) -> dict[tuple[str, str], Series]:
    """By variant and scope."""
    found: dict[tuple[str, str], Series] = defaultdict(lambda: [{} for _ in measured])
    for index, variants in enumerate(measured):
        for variant, measurements in variants.items():
            for m in measurements:
                if m.metric == metric:
                    found[variant, m.scope][index] = {k: v for k, v in launch_values(m).items() if v > 0}
    return found


def _logs(series: Series) -> list[list[float]]:
    return [[math.log(value) for value in session.values()] for session in series]


def _pool(groups: Iterable[Sequence[Sequence[float]]]) -> Components | None:
    """Pooled components: variances of launches weighted by their degrees of freedom, those of sessions averaged.

    All variants meet the same sessions, so that their degrees of freedom do not add up.
    """
    found = [c for group in groups if (c := components(group)) is not None]
    if not found:
        return None
    launch_df = sum(c.launch_df for c in found)
    launch = math.fsum(c.launch_df * c.launch_sd**2 for c in found) / launch_df
    several = [c for c in found if c.session_df > 0]
    session = math.fsum(c.session_sd**2 for c in several) / len(several) if several else 0.0
    session_df = min((c.session_df for c in several), default=0)
    return Components(math.sqrt(launch), launch_df, math.sqrt(session), session_df)


def _find_normaliser(
    metric: str, series: Mapping[tuple[str, str], Series], sessions: Sequence[Session], plain: Components
) -> tuple[Literal["none", "hash", "copy"], float | None]:
    """The yardstick that narrows the spread between sessions most, if it does so by enough; and what is left then.

    The means of the sessions are looked at, launches and all: a component of variance that comes out as 0 by luck would
    make any yardstick look good. With few sessions a yardstick follows them by chance as well; one that makes launches
    vary more than before is not believed.
    """
    if plain.session_df + 1 < SESSIONS_FOR_NORMALISER or plain.session_sd == 0:
        return "none", None
    spread = _spread_of_means([_logs(values) for values in series.values()])
    candidates: list[tuple[float, Normaliser, float]] = []
    for name in _YARDSTICKS:
        groups = [_logs(_normalise(metric, key[0], values, sessions, name)) for key, values in series.items()]
        pooled = _pool(groups)
        if pooled is None or pooled.session_df < plain.session_df or pooled.launch_sd > WIDER * plain.launch_sd:
            continue
        candidates.append((_spread_of_means(groups), name, pooled.session_sd))
    best = min(candidates, default=None)
    if best is None or best[0] >= NARROWER * spread:
        return "none", None
    return best[1], best[2]


def _spread_of_means(groups: Iterable[Sequence[Sequence[float]]]) -> float:
    """Root mean square over the groups of the SD of their sessions' means."""
    means = [[statistics.fmean(session) for session in group if session] for group in groups]
    variances = [statistics.variance(group) for group in means if len(group) > 1]
    return math.sqrt(math.fsum(variances) / len(variances)) if variances else 0.0


def _normalise(metric: str, variant: str, series: Series, sessions: Sequence[Session], name: Normaliser) -> Series:
    """Work per unit of what the machine itself did: rates / yardstick, times × yardstick. Launches without one are left out."""
    power = 1 if SPECS[metric].direction is Direction.LOWER else -1
    read = _YARDSTICKS[name]
    normalised: Series = []
    for values, session in zip(series, sessions, strict=True):
        speeds = {x.index: read(x.yardstick) for x in session.launches if x.variant == variant and x.yardstick}
        normalised.append({index: value * speeds[index] ** power for index, value in values.items() if index in speeds})
    return normalised


def _slice_spread(metric: str, measured: Sequence[Mapping[str, Sequence[Measurement]]]) -> float:
    """SD between the slices of one launch; 0 for what is measured once a launch."""
    pooled = _pool(
        [
            [[math.log(v) for v, launch in zip(m.samples, m.launches, strict=True) if launch == index and v > 0]]
            for variants in measured
            for measurements in variants.values()
            for m in measurements
            if m.metric == metric and metric in PER_SAMPLE
            for index in sorted(set(m.launches))
        ]
    )
    return pooled.launch_sd if pooled else 0.0


def _pair_spread(
    metric: str, sessions: Sequence[Session], couples: Sequence[tuple[str, str]]
) -> tuple[float | None, int]:
    """SD between launches of the log ratio of two variants side by side; the sessions are in it as well."""
    if metric not in PER_SAMPLE:
        return None, 0
    found = _pool([[logs] for logs in _ratios(metric, sessions, couples) if len(logs) > 1])
    return (found.launch_sd, found.launch_df) if found else (None, 0)


def _ratios(metric: str, sessions: Sequence[Session], couples: Sequence[tuple[str, str]]) -> Iterator[list[float]]:
    """By couple and scenario, the log ratio of each launch of every session."""
    scenarios = sorted({sample.scenario for session in sessions for sample in session.samples})
    for one, other in couples:
        for scenario in scenarios:
            yield [
                log
                for session in sessions
                for log in pair_logs(
                    metric,
                    [s for s in session.samples if (s.variant, s.scenario) == (one, scenario)],
                    [s for s in session.samples if (s.variant, s.scenario) == (other, scenario)],
                ).values()
            ]


def find_limit(readings: Sequence[tuple[float, float]], most: float) -> float | None:
    """The limit of a clean slice: of (what the witness saw, by how much the slice deviates) pairs. None for too few.

    A robust fence, median + 6 MAD of the quietest half. It is opened up to `most`, the protocol's own limit, when what
    lies between deviates no more than what lies below, since then the witness sees nothing that matters.
    """
    if len(readings) < FEWEST_READINGS:
        return None
    quiet = sorted(seen for seen, _ in readings)[: (len(readings) + 1) // 2]
    fence = min(max(LEAST_LIMIT, median(quiet) + FENCE_MADS * mad(quiet)), most)
    below = [abs(deviation) for seen, deviation in readings if seen <= fence]
    between = [abs(deviation) for seen, deviation in readings if fence < seen <= most]
    if len(between) >= FEWEST_READINGS // 2 and below and median(between) <= 1.5 * median(below):
        return most
    return fence


def deviations(sessions: Sequence[Session]) -> Iterator[tuple[SpeedSample, float]]:
    """Each slice with the log of its median gap, less the median of its launch and scenario."""
    read = PER_SAMPLE["itl_s"]
    for session in sessions:
        groups: dict[tuple[str, str, int], list[tuple[SpeedSample, float]]] = defaultdict(list)
        for sample in session.samples:
            value = read(sample)
            if sample.status != "rejected" and value is not None and value > 0:
                groups[sample.variant, sample.scenario, sample.launch].append((sample, math.log(value)))
        for slices in groups.values():
            centre = median([log for _, log in slices])
            yield from ((sample, log - centre) for sample, log in slices)
