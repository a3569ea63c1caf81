"""What the page is put together from: tables, and pictures that bring their own table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.records import VERDICTS_WORST_FIRST, Verdict
from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, WHOLE, NARROW = 540, 1080, 348
"""Pixels: a picture in one of two columns, one across the page, and either on a telephone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str
    sort: float | str | None = None
    """What it is sorted by, where that is not its text; None sorts last."""
    verdict: Verdict | None = None
    note: str = ""
    """Said beside it, small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of a column."""

    text: str
    number: bool = True
    """Right-aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table; the first cell of each row names it."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sortable: bool = False
    stacked: bool = False
    """Whether its rows are cards on a telephone: some cells are sentences, which a narrow column makes very tall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture for wide and one for narrow screens, what they show in words, and their numbers."""

    ident: str
    title: str
    caption: str
    wide: str
    """SVG, made here: safe."""
    narrow: str
    sheet: Sheet
    whole: bool = False
    """Whether it goes across the page."""


Paint = Callable[["Figure", int], None]
"""Paints into an empty figure of a given width."""


def picture(
    ident: str, title: str, words: tuple[str, str], paint: Paint, sheet: Sheet, *, heights: tuple[int, int]
) -> Picture:
    """A picture in one column of two; `words` are its alternative text and its caption, `heights` those of wide and narrow."""
    return _picture(ident, title, words, paint, sheet, ((WIDE, heights[0]), (NARROW, heights[1])))


def whole_picture(
    ident: str, title: str, words: tuple[str, str], paint: Paint, sheet: Sheet, *, heights: tuple[int, int]
) -> Picture:
    """The same across the page."""
    return _picture(ident, title, words, paint, sheet, ((WHOLE, heights[0]), (NARROW, heights[1])))


def _picture(
    ident: str,
    title: str,
    words: tuple[str, str],
    paint: Paint,
    sheet: Sheet,
    sizes: tuple[tuple[int, int], tuple[int, int]],
) -> Picture:
    def drawn(name: str, size: tuple[int, int]) -> str:
        return draw(f"{ident}-{name}", size, words[0], lambda figure: paint(figure, size[0]))

    wide, narrow = drawn("w", sizes[0]), drawn("n", sizes[1])
    return Picture(
        ident=ident, title=title, caption=words[1], wide=wide, narrow=narrow, sheet=sheet, whole=sizes[0][0] == WHOLE
    )


def heads(first: str, *others: str, text: Iterable[str] = ()) -> tuple[Head, ...]:
    """Heads of a table: the first names rows, the others are numbers but for those in `text`."""
    words = frozenset(text)
    return (Head(text=first, number=False), *(Head(text=other, number=other not in words) for other in others))


def named(name: str, note: str = "") -> Cell:
    """A cell that names a row."""
    return Cell(text=one_line(name), note=note)


def number(value: float | None, text: str) -> Cell:
    """A number as it is worded."""
    return Cell(text=text, sort=value)


def said(text: str) -> Cell:
    """Words, sorted as such."""
    line = one_line(text)
    return Cell(text=line or wording.ABSENT, sort=line.lower() or None)


def verdict(found: Verdict) -> Cell:
    """A verdict, sorted worst first."""
    return Cell(text=str(found), sort=VERDICTS_WORST_FIRST.index(found), verdict=found)


def bounds(interval: Sequence[float] | None, word: Callable[[float], str]) -> str:
    """``0.042 … 0.058``, or a dash."""
    return wording.ABSENT if interval is None else f"{word(interval[0])} … {word(interval[1])}"
