"""The fields of a comparison of answers whose drift was estimated with a t interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suite.stats.intervals import Estimate, interval_of

ONE_SIDED_90 = 0.90
"""Two-sided confidence whose ends are one-sided bounds of 95 % each."""


def estimated_fields(estimate: Estimate | None, to_drift: Callable[[float], float] = float) -> dict[str, Any]:
    """Estimate and interval as fields of a `Comparison`; none without an estimate.

    `to_drift` turns what was estimated (a log ratio, say) into the scale of the drift.
    """
    if estimate is None:
        return {}
    low, high = interval_of(estimate, ONE_SIDED_90)
    return {
        "log_drift": estimate.mean,
        "log_se": estimate.se,
        "log_df": estimate.df,
        "interval": (to_drift(low), to_drift(high)),
    }
