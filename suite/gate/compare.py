"""A variant's measurements beside its baselines: numbers only. `suite.gate.judge` turns them into verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from suite.gate.compare_quality import compare_quality
from suite.gate.compare_speed import compare_speed
from suite.gate.plan import GateItem
from suite.records import Baselines, Comparison, Environment, Trial, VariantResult


def compare(
    result: VariantResult,
    trials: Sequence[Trial],
    baselines: Baselines,
    environment: Environment,
    *,
    planned: Sequence[GateItem] = (),
) -> tuple[Comparison, ...]:
    """Compare one variant with what was accepted for it; trials of other variants are left out.

    Every planned gate gets a comparison, whatever became of the variant; so does everything else that was measured and
    has a meaning in the catalogue, and each case that cannot be paired (metric ``score``, scope the case's id).
    """
    return (
        *compare_quality(result, trials, baselines.quality, environment, planned),
        *compare_speed(result, baselines, environment, planned),
    )
