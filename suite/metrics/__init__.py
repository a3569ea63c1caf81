"""Trials, timed samples and launches → measurements. Pure; the catalogue says what each identifier means."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from suite.metrics.catalog import SPECS
from suite.metrics.limits import measure_limits
from suite.metrics.memory import measure_memory
from suite.metrics.quality import measure_quality
from suite.metrics.speed import measure_launches, measure_samples, speedup, speedup_interval
from suite.records import Demand, Launch, Measurement, Scenario, SpeedSample, Trial, VariantResult

__all__ = ["SPECS", "add_speedups", "measure", "speedup", "speedup_interval"]


def measure(
    variant: str,
    trials: Sequence[Trial],
    samples: Sequence[SpeedSample],
    launches: Sequence[Launch],
    *,
    demand: Demand | None = None,
    scenarios: Sequence[Scenario] = (),
) -> tuple[Measurement, ...]:
    """Everything measured of `variant`, grouped by metric, without `speedup`; other variants are left out.

    `demand` is what a token demands of it.
    """
    timed = [sample for sample in samples if sample.variant == variant]
    loaded = [launch for launch in launches if launch.variant == variant]
    speeds = measure_samples(timed, scenarios)
    return (
        *speeds,
        *measure_launches(loaded),
        *measure_memory(loaded),
        *measure_limits(demand, speeds, timed, loaded),
        *measure_quality([trial for trial in trials if trial.variant == variant]),
    )


def add_speedups(results: Sequence[VariantResult], reference: str) -> tuple[VariantResult, ...]:
    """The results, each with its `speedup` measurements over the reference; the reference stays as it is."""
    found = speedup(results, reference)
    return tuple(
        dataclasses.replace(result, measurements=(*result.measurements, *found.get(result.variant.name, ())))
        for result in results
    )
