"""What must not be there at all, held against nothing: no baseline excuses it, and none is needed."""

from __future__ import annotations

from dataclasses import replace

from suite.metrics.kinds import BY_TIME
from suite.metrics.speed import launch_values
from suite.records import Comparison, Measurement, VariantFailure, Verdict


def compare_with_none(bare: Comparison, measurement: Measurement | None, failure: VariantFailure | None) -> Comparison:
    """`bare` with the numbers: 0 is what it is held against, the interval is from the least to the largest launch."""
    if failure is not None:
        return replace(bare, unresolved=failure.verdict, reason=failure.reason)
    if measurement is None or measurement.value is None:
        reason = (measurement and measurement.reason) or "it was not part of this run"
        return replace(bare, unresolved=Verdict.NOT_MEASURED, reason=reason)
    launches = launch_values(measurement).values()
    return replace(
        bare,
        observed=measurement.value,
        baseline=0.0,
        drift=None if measurement.value else 0.0,
        interval=(min(launches), max(launches)) if measurement.value else None,
        n=len(launches),
        contended=_contended(measurement),
    )


def _contended(measurement: Measurement) -> str:
    """Why a time says nothing; bytes and counts are what they are, whoever else was there."""
    if measurement.metric not in BY_TIME or measurement.status != "contended":
        return ""
    return measurement.reason or "no clean sample"
