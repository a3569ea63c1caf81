"""The report for the summary of a GitHub step: what matters open, long tables folded, cut below what GitHub takes."""

from __future__ import annotations

from collections.abc import Iterator

from suite.reporting.cutting import cut_markdown, utf8_bytes
from suite.reporting.markdown import render
from suite.reporting.model import Report

LIMIT = 1_000_000
"""Bytes in UTF-8. GitHub drops the whole summary of a step above 1 MiB; what is left is for other text of the same step."""
_FOLDED = ("## What was compared", "## Flipped answers")
_WHOLE = "All of it is in `run.json`: `quantdrift report --format markdown`."


def render_summary(report: Report, limit: int = LIMIT) -> str:
    """The report as Markdown of at most `limit` bytes (4 000 at least), ending in a line feed."""
    text = "\n".join(_fold(render(report).split("\n")))
    return cut_markdown(text, limit, measure=utf8_bytes, whole=_WHOLE)


def _fold(lines: list[str]) -> Iterator[str]:
    """Long sections within ``<details>``. Only headings of ours start with ``## ``: all else is escaped or indented."""
    folded = False
    for line in lines:
        if line.startswith("## ") and folded:
            yield from ("</details>", "")
        if line.startswith("## "):
            folded = line in _FOLDED
        yield f"<details><summary>{line.removeprefix('## ')}</summary>" if line in _FOLDED else line
    if folded:
        yield from ("</details>", "")
