"""Creeping: a variant held against the first baseline that was accepted, where the latest one has moved away from it.

A per cent a week passes every gate, and every update takes it in; beside the first baseline it adds up. Numbers only: it
informs, and fails nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from suite.gate.compare import compare
from suite.gate.compare_fidelity import Beside
from suite.records import BaselineMetric, Baselines, Comparison, Environment, Forced, Trial, VariantResult
from suite.store.baselines import as_stored


def creep(
    result: VariantResult,
    trials: Sequence[Trial],
    baselines: Baselines,
    environment: Environment,
    forced: Sequence[Forced] = (),
) -> tuple[Comparison, ...]:
    """The comparisons with the frozen baselines, of the metrics whose latest accepted value is not the frozen one.

    `accepted` says that it is the first baseline. What cannot be compared with it (it answers another question, or lacks
    the metric) is left out.
    """
    moved = _moved(baselines)
    if not moved:
        return ()
    frozen = Baselines(quality=baselines.frozen_quality, speed=baselines.frozen_speed, noise=baselines.noise)
    return tuple(
        dataclasses.replace(comparison, accepted=f"first {comparison.accepted}")
        for comparison in compare(result, trials, frozen, environment, fidelity=Beside(forced=tuple(forced)))
        if comparison.unresolved is None and f"{comparison.metric}/{comparison.scope}" in moved
    )


def _moved(baselines: Baselines) -> set[str]:
    """``metric/scope`` of what both baselines hold, with different values."""
    pairs = ((baselines.quality, baselines.frozen_quality), (baselines.speed, baselines.frozen_speed))
    return {
        key
        for latest, frozen in pairs
        if latest is not None and frozen is not None
        for key, metric in latest.metrics.items()
        if key in frozen.metrics and _differs(metric, frozen.metrics[key])
    }


def _differs(latest: BaselineMetric, frozen: BaselineMetric) -> bool:
    return as_stored(latest).value != as_stored(frozen).value
