"""Say what a run took from earlier runs instead of computing it."""

from __future__ import annotations

from collections.abc import Iterable

from suite.records import Forced, Run, Trial
from suite.reporting.wording import counted, listed

DROPPED = "cache dropped"
"""Key among a run's settings: variants of which nothing was taken, since their control differed, each with the reason."""


def tell_cached(run: Run) -> tuple[str, ...]:
    """One sentence for all variants of which as much was taken from the same runs, and one for those of which nothing was."""
    found: dict[str, list[str]] = {}
    for result in run.variants:
        name = result.variant.name
        trials = [trial for trial in run.trials if trial.variant == name]
        forced = [one for one in run.forced if one.variant == name and one.path == "batched"]
        told = _tell(trials, forced)
        if told:
            found.setdefault(told, []).append(name)
    sentences = [f"from earlier runs (--matrix-cached): {told}: {listed(names)}" for told, names in found.items()]
    if found:
        sentences.append(
            "of each of these a sample was computed again as a control, and came out the same; no speed is from a cache"
        )
    dropped = run.settings.get(DROPPED)
    if dropped:
        sentences.append(
            f"measured anew although nothing seemed to have changed, since the control differed: {dropped}"
        )
    return tuple(sentences)


def _tell(trials: list[Trial], forced: list[Forced]) -> str:
    """``70 of 73 answers and 70 of 73 traced answers, of 2026-…``; "" for none."""
    parts = [
        f"{taken} of {counted(len(records), what)}"
        for records, what in ((trials, "answer"), (forced, "traced answer"))
        if (taken := sum(record.cached_from is not None for record in records))
    ]
    return f"{' and '.join(parts)}, of {listed(_origins([*trials, *forced]))}" if parts else ""


def _origins(records: Iterable[Trial | Forced]) -> list[str]:
    return sorted({record.cached_from for record in records if record.cached_from is not None})
