"""The table of what servers tell of themselves, for the page."""

from __future__ import annotations

from collections.abc import Sequence

from suite.reporting.page.sheet import Sheet, heads, named, number
from suite.reporting.servers import HEADS, ServerRow, cells


def servers_sheet(rows: Sequence[ServerRow]) -> Sheet | None:
    """One row for each server; None without any."""
    if not rows:
        return None
    return Sheet(
        caption="What servers tell of themselves",
        heads=heads(*HEADS),
        rows=tuple(
            (
                named(row.variant),
                *(number(value, text) for value, text in zip(_values(row), cells(row)[1:], strict=True)),
            )
            for row in rows
        ),
        sortable=True,
    )


def _values(row: ServerRow) -> tuple[float | None, ...]:
    """What each column is sorted by."""
    told = row.told
    rates = (told.client_tok_s, told.server_tok_s, told.difference)
    return (*rates, told.overhead_s, told.tokens_a_chunk, told.kv_usage, told.waiting, told.prefix_hits, told.retries)
