"""The table of what bounds each variant, for the page."""

from __future__ import annotations

from suite.reporting.limits import HEADS, WORDS, LimitReport, cells
from suite.reporting.page.sheet import Cell, Sheet, heads, named, number


def limits_sheet(report: LimitReport) -> Sheet | None:
    """One row for each variant and scenario; None where no device was asked."""
    if not report.rows:
        return None
    rows: list[tuple[Cell, ...]] = []
    for row in report.rows:
        texts = cells(row)
        values = (row.token_bytes, row.bandwidth_bytes_s, row.roofline_tok_s, row.decode_tok_s)
        shares = (row.mbu[0] if row.mbu else None, row.mfu[0] if row.mfu else None)
        middle = (number(value, text) for value, text in zip((*values, *shares), texts[2:8], strict=True))
        rows.append((named(texts[0]), named(texts[1]), *middle, named(texts[8]), named(texts[9])))
    first, *others = HEADS
    return Sheet(
        caption="What bounds each variant", heads=heads(first, *others, text=WORDS), rows=tuple(rows), sortable=True
    )
