"""A table of text that fits into a width: gaps are narrowed, then columns dropped; rows never wrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from suite.records import Verdict
from suite.reporting.hostile import columns, cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: a heading and a cell for each row."""

    heading: str
    cells: Sequence[str]
    keep: int
    """Importance: the column with the lowest is dropped first."""
    left: bool = False
    """Left-aligned; numbers are right-aligned."""
    verdicts: Sequence[Verdict] = field(default=())
    """What each cell says, when the cells are verdicts (for colour)."""

    @property
    def width(self) -> int:
        """Terminal columns of its widest cell."""
        return max(columns(text) for text in (self.heading, *self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A choice of columns for a width."""

    kept: tuple[Column, ...]
    dropped: tuple[str, ...]
    """Headings of those that did not fit."""
    gap: int
    """Spaces between two columns."""
    width: int


def fit(candidates: Sequence[Column], width: int) -> Fitted:
    """Choose the columns that fit into `width`: first the gap shrinks from two spaces to one, then columns go."""
    kept = list(candidates)
    gap = 2 if _total(kept, 2) <= width else 1
    while len(kept) > 1 and _total(kept, gap) > width:
        kept.remove(min(kept, key=lambda column: column.keep))
    if _total(kept, 2) <= width:
        gap = 2
    dropped = tuple(column.heading for column in candidates if column not in kept)
    return Fitted(kept=tuple(kept), dropped=dropped, gap=gap, width=width)


def padded(fitted: Fitted) -> list[list[str]]:
    """Heading and rows as cells of equal width; a lone column that is still too wide is cut."""
    widths = [min(column.width, fitted.width) for column in fitted.kept]
    rows = [[column.heading for column in fitted.kept], *zip(*(c.cells for c in fitted.kept), strict=True)]
    return [[_pad(t, w, c.left) for t, w, c in zip(row, widths, fitted.kept, strict=True)] for row in rows]


def _total(kept: Sequence[Column], gap: int) -> int:
    return sum(column.width for column in kept) + gap * (len(kept) - 1)


def _pad(text: str, width: int, left: bool) -> str:
    text = cut(text, width)
    padding = " " * (width - columns(text))
    return text + padding if left else padding + text
