"""A run as a table for spreadsheets and data frames: one row for each variant, metric and scope."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from suite.metrics.catalog import SPECS
from suite.records import Finding, Measurement, Run
from suite.reporting.hostile import one_line

COLUMNS = (
    "run", "created", "model", "machine", "variant", "metric", "scope", "value", "unit", "direction", "status", "baseline",
    "drift", "drift_low", "drift_high", "tolerance_relative", "tolerance_absolute", "tolerance_duet", "mde", "n", "tier",
    "gate", "verdict",
)  # fmt: skip
"""In this order; columns are added at the end, never removed."""

_FORMULA = tuple("=+-@＝＋－＠")
"""A spreadsheet computes a cell that starts so (https://owasp.org/www-community/attacks/CSV_Injection); the wide ones too."""


def render_csv(run: Run) -> str:
    """RFC 4180 in UTF-8, but for line feeds: a heading, then rows in the order of the run.

    An empty cell is "not known". `value` is what was measured, in `unit`; `drift` and its 95 % interval are signed so that
    positive is worse, and are shares of the baseline for speed and memory, in the metric's own unit for answers. Numbers
    have all their digits. Text that a spreadsheet would compute starts with an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(row[column]) for column in COLUMNS] for row in _rows(run))
    return text.getvalue()


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    shared = {"run": run.id, "created": run.created, "model": run.model, "machine": run.environment.machine}
    judged = {(f.variant, f.metric, f.scope): f for f in run.findings}
    for result in (*run.variants, *run.against):
        name = result.variant.name
        for measured in result.measurements:
            finding = judged.pop((name, measured.metric, measured.scope), None)
            yield {**shared, **_measured(name, measured), **_judged(finding)}
    for (name, metric, scope), finding in judged.items():  # what could not be measured was judged all the same
        absent = Measurement(metric=metric, scope=scope, value=finding.comparison.observed, status="not_measured")
        yield {**shared, **_measured(name, absent), **_judged(finding)}


def _measured(variant: str, measured: Measurement) -> dict[str, Any]:
    spec = SPECS.get(measured.metric)
    return {
        "variant": variant,
        "metric": measured.metric,
        "scope": measured.scope,
        "value": measured.value,
        "unit": spec.unit if spec else None,
        "direction": spec.direction.value if spec else None,
        "status": measured.status,
    }


def _judged(finding: Finding | None) -> dict[str, Any]:
    if finding is None:
        judged = COLUMNS[COLUMNS.index("baseline") :]
        return dict.fromkeys(judged)
    comparison, limit = finding.comparison, finding.tolerance
    low, high = comparison.interval or (None, None)
    return {
        "baseline": comparison.baseline,
        "drift": comparison.drift,
        "drift_low": low,
        "drift_high": high,
        "tolerance_relative": limit.relative if limit else None,
        "tolerance_absolute": limit.absolute if limit else None,
        "tolerance_duet": limit.duet if limit else None,
        "mde": comparison.mde,
        "n": comparison.n,
        "tier": comparison.tier.value,
        "gate": finding.gate.value,
        "verdict": finding.verdict.value,
    }


def _cell(value: str | float | None) -> str:
    """A number with all its digits, or text that is no formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    line = one_line(value)
    return f"'{line}" if line.startswith(_FORMULA) else line
