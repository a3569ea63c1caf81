"""The page with what a history file adds to it, for whoever has a run and may have such a file."""

from __future__ import annotations

from pathlib import Path

from suite.records import Run
from suite.reporting.page.render import render_page
from suite.store.history import scan_history


def render_stored(run: Run, history: Path | None) -> tuple[str, tuple[str, ...]]:
    """The page of a run, and a sentence for each line of the file `history` that cannot be read; None is no history.

    Raises StoreError for a file that cannot be read at all, or that a newer version wrote.
    """
    if history is None:
        return render_page(run), ()
    lines = scan_history(history)
    return render_page(run, lines.entries), lines.faults
