"""The trends of a history for programs, as ``.github/HISTORY.md`` says. Text is as it was found: escape it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from suite.metrics.catalog import SPECS
from suite.reporting.history_series import ALPHA, LevelShift, Series, Trend

SCHEMA = 1
"""Version of the layout."""
KIND = "history-trends"

Plain = dict[str, Any]


def history_json(trends: Sequence[Trend], faults: Sequence[str]) -> str:
    """One JSON document, two spaces an indent, ending in a line feed; keys are added without a new schema, never removed."""
    document: Plain = {
        "schema": SCHEMA,
        "kind": KIND,
        "alpha": ALPHA,
        "trends": [_trend(trend) for trend in trends],
        "faults": list(faults),
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _trend(trend: Trend) -> Plain:
    return {
        "model": trend.model,
        "machine": trend.machine,
        "tested": trend.tested,
        "level": trend.level,
        "needed": trend.needed,
        "left_out": trend.left_out,
        "runs": [
            {
                "run": entry.run,
                "created": entry.created,
                "commit": entry.commit,
                "accepted": entry.accepted,
                "cases": entry.cases or None,
                "changed": list(changed),
                "verdicts": dict(entry.verdicts),
            }
            for entry, changed in zip(trend.entries, trend.changed, strict=True)
        ],
        "series": [_series(series, trend) for series in trend.series],
    }


def _series(series: Series, trend: Trend) -> Plain:
    spec = SPECS.get(series.metric)
    return {
        "variant": series.variant,
        "metric": series.metric,
        "scope": series.scope,
        "unit": spec.unit if spec else None,
        "direction": spec.direction.value if spec else None,
        "runs": list(series.entries),
        "values": list(series.values),
        "first": series.values[0],
        "last": series.values[-1],
        "change": series.change,
        "shifts": [_shift(shift, trend) for shift in series.shifts],
    }


def _shift(found: LevelShift, trend: Trend) -> Plain:
    return {
        "run": trend.entries[found.entry].run,
        "index": found.entry,
        "before": found.shift.before,
        "after": found.shift.after,
        "change": found.change,
        "worse": found.worse,
        "runs_before": found.runs_before,
        "runs_after": found.runs_after,
        "p_value": found.shift.p_value,
    }
