"""What is kept of a run in the history: one line, small enough for a thousand nights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One run, as far as trends need it."""

    run: str
    created: str
    """ISO 8601, UTC."""
    suite_version: str
    model: str
    machine: str
    """`Environment.machine`: values of two machines are never put into one series."""
    commit: str | None = None
    """The commit that was measured, where whoever appended the run told it."""
    accepted: bool = False
    """Whether baselines were accepted from this run."""
    cases: str = ""
    """``3 of 77`` where only a part of the cases was answered."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """What may have changed and be to blame: library versions, first digits of hashes. A name that differs between variants is
    ``variant: name``."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """Variant → its worst verdict in that run."""
    values: Mapping[str, float] = field(default_factory=dict)
    """``variant/metric/scope`` → value, of what was measured and is valid; six significant digits once it was stored."""
