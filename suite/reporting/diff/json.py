"""A diff of baselines for programs, as ``.github/DIFF.md`` says. Text is as it was found: whoever shows it escapes it."""

from __future__ import annotations

import json
from typing import Any

from suite.metrics.catalog import SPECS
from suite.records import Diff, DiffEntry, Figure
from suite.reporting.diff.story import tell
from suite.reporting.rounding import rounded
from suite.schema import dump

SCHEMA = 1
"""Version of the layout."""
KIND = "baseline-diff"

Plain = dict[str, Any]


def diff_json(diff: Diff) -> str:
    """One JSON document, two spaces an indent, ending in a line feed; keys are added without a new schema, never removed."""
    story = tell(diff)
    document: Plain = {
        "schema": SCHEMA,
        "kind": KIND,
        "headline": story.headline,
        "sentences": list(story.sentences),
        "base": {"label": diff.base, "kind": diff.base_kind},
        "head": {"label": diff.head, "kind": diff.head_kind},
        "changed": _is_changed(diff),
        "questions": [dump(question) for question in diff.questions],
        "tolerances": {
            "compared": diff.tolerances_compared,
            "judged_by": diff.judged_by,
            "changes": [dump(change) for change in diff.tolerances],
        },
        "notes": list(diff.notes),
        "reasons": list(story.reasons),
        "baselines": [_entry(entry) for entry in diff.entries],
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _is_changed(diff: Diff) -> bool:
    """Whether anything at all is not as it was."""
    return bool(diff.tolerances or diff.notes) or any(entry.state != "unchanged" for entry in diff.entries)


def _entry(entry: DiffEntry) -> Plain:
    kept = (
        "model", "variant", "aspect", "machine", "moved_from", "state", "edited", "same", "answers_changed", "cases_added",
        "cases_gone", "cases_gone_wrong", "cases_asked_otherwise", "differences", "was", "now",
    )  # fmt: skip
    plain: Plain = dump(entry)
    return {
        **{name: plain[name] for name in kept},
        "figures": [_figure(figure) for figure in entry.figures],
        "flips": plain["flips"],
    }


def _figure(figure: Figure) -> Plain:
    finding = figure.finding
    comparison = finding.comparison if finding else None
    return {
        "metric": figure.metric,
        "scope": figure.scope,
        "aspect": figure.aspect.value,
        "unit": SPECS[figure.metric].unit,
        "direction": SPECS[figure.metric].direction.value,
        "old": rounded(figure.old),
        "new": rounded(figure.new),
        "state": figure.state,
        "beyond_noise": figure.beyond_noise,
        "drift": rounded(comparison.drift) if comparison else None,
        "interval": [rounded(end) for end in comparison.interval] if comparison and comparison.interval else None,
        "verdict": finding.verdict.value if finding else None,
        "gate": finding.gate.value if finding else None,
        "tolerance": dump(finding.tolerance) if finding and finding.tolerance else None,
        "p_value": rounded(finding.p_value) if finding else None,
        "p_needed": rounded(finding.p_needed) if finding else None,
        "sentence": finding.sentence if finding else "",
    }
