"""What the check list found, as a table of the page."""

from __future__ import annotations

from suite.reporting.model import Report
from suite.reporting.page.sheet import Sheet, heads, named, said


def doctor_sheet(report: Report) -> Sheet | None:
    """One row a finding; None without any."""
    if not report.doctor:
        return None
    rows = tuple(
        (named(one.title), said(", ".join(one.variants) or "the run"), said(one.evidence), said(one.remedy))
        for one in report.doctor
    )
    columns = ("variants", "what was seen", "what to do")
    return Sheet(caption="Doctor", heads=heads("item", *columns, text=columns), rows=rows, stacked=True)
