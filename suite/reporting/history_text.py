"""The trends of a history for a terminal: a table with small pictures, the levels that shifted, what happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.records import Verdict
from suite.reporting.history_series import Series, Trend
from suite.reporting.history_signs import BLOCKS, DIGITS, marks, sparkline, to_ascii
from suite.reporting.history_story import (
    ACCEPT,
    ADVICE,
    ToldTrend,
    level_word,
    series_name,
    share,
    short_value,
    shown_series,
    tell_trend,
)
from suite.reporting.hostile import one_line, wrapped
from suite.reporting.table import Column, Fitted, fit, padded
from suite.reporting.terminal import painted

_NARROWEST = 40
_WIDEST_PICTURE, _SMALLEST_PICTURE = 48, 8
_MOST_SERIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What it is shown on."""

    width: int
    color: bool = False
    ascii: bool = False
    """Whether only ASCII can be shown."""


def history_lines(
    trends: Sequence[Trend], faults: Sequence[str], screen: Screen, *, scopes: bool = False
) -> Iterator[str]:
    """Yield the history line by line, without line feeds.

    `faults` are the sentences about lines that cannot be read; `scopes` shows every scope of each metric, not only the one of
    everything together and what shifted. Rows of the table never exceed the width; words carry every state, colour repeats it.
    """
    width = max(screen.width, _NARROWEST)
    for line in _lines(trends, faults, width, screen, scopes):
        yield to_ascii(line) if screen.ascii else line


def _lines(trends: Sequence[Trend], faults: Sequence[str], width: int, screen: Screen, scopes: bool) -> Iterator[str]:
    for trend in trends:
        told = tell_trend(trend)
        yield from wrapped(f"{one_line(trend.model)} · {one_line(trend.machine)} · {told.period}", width, rest="  ")
        yield ""
        if len(trend.entries) > 1:
            yield from _table(trend, width, screen, scopes)
            yield ""
        yield from _shifts(told, width)
        yield from _events(told, width)
        yield from _text(told.verdict, width)
        if told.command:
            yield f"   {told.command}"
        if told.shifts:
            yield from _text(ADVICE, width)
            yield f"   {ACCEPT}"
        yield ""
    for fault in faults:
        yield from wrapped(f"NOT READ: {one_line(fault)}", width, first=" ", rest="   ")


def _text(text: str, width: int, indent: int = 1) -> list[str]:
    return wrapped(text, width, first=" " * indent, rest=" " * (indent + 2))


# ------------------------------------------------------------------------------------------------------- the table


def _table(trend: Trend, width: int, screen: Screen, scopes: bool) -> Iterator[str]:
    rows = shown_series(trend, scopes=scopes)
    if not rows:
        yield " (nothing of what is asked for was measured in these runs)"
        return
    narrow = fit(_columns(rows, [""] * (len(rows) + 1), trend.needed), width - 1)
    room = width - 1 - sum(column.width for column in narrow.kept) + len("trend") - narrow.gap * (len(narrow.kept) - 1)
    size = min(max(room, _SMALLEST_PICTURE), _WIDEST_PICTURE)
    marked = [(entry.accepted, bool(changed)) for entry, changed in zip(trend.entries, trend.changed, strict=True)]
    pictures = [_picture(one, len(trend.entries), size, screen) for one in rows]
    fitted = fit(_columns(rows, [*pictures, marks(marked, size)], trend.needed), width - 1)
    verdicts = [*(_painting(one) for one in rows), None]
    for number, cells in enumerate(padded(fitted)):
        told = verdicts[number - 1] if number else None
        shown = [
            painted(cell, told, screen.color) if told and column.heading == "level" else cell
            for cell, column in zip(cells, fitted.kept, strict=True)
        ]
        yield (" " + (" " * fitted.gap).join(shown)).rstrip()
    yield from _beneath(fitted, screen, width)


def _beneath(fitted: Fitted, screen: Screen, width: int) -> Iterator[str]:
    if fitted.dropped:
        yield from _text(f"(no room for: {', '.join(fitted.dropped)})", width)
    lowest, highest = (DIGITS[0], DIGITS[-1]) if screen.ascii else (BLOCKS[0], BLOCKS[-1])
    yield from _text(
        f"trend: oldest first, {lowest} the least and {highest} the largest value of its row; a: baselines were accepted, "
        "v: a version changed, *: both",
        width,
    )


def _columns(rows: Sequence[Series], pictures: Sequence[str], needed: int) -> list[Column]:
    """The last row holds the marks."""
    return [
        Column(heading="variant", cells=[*(one_line(one.variant) for one in rows), ""], keep=9, left=True),
        Column(heading="metric", cells=[*(series_name(one.metric, one.scope) for one in rows), ""], keep=8, left=True),
        Column(heading="first", cells=[*(short_value(one.metric, one.values[0]) for one in rows), ""], keep=3),
        Column(heading="last", cells=[*(short_value(one.metric, one.values[-1]) for one in rows), ""], keep=5),
        Column(heading="change", cells=[*(share(one.change) for one in rows), ""], keep=6),
        Column(heading="trend", cells=list(pictures), keep=4, left=True),
        Column(heading="level", cells=[*(level_word(one, needed) for one in rows), ""], keep=7, left=True),
    ]


def _picture(series: Series, runs: int, size: int, screen: Screen) -> str:
    values: list[float | None] = [None] * runs
    for entry, found in zip(series.entries, series.values, strict=True):
        values[entry] = found
    return sparkline(values, size, DIGITS if screen.ascii else BLOCKS)


def _painting(series: Series) -> Verdict | None:
    if not series.shifts or series.shifts[-1].worse is None:
        return None
    return Verdict.REGRESSED if series.shifts[-1].worse else Verdict.IMPROVED


# ------------------------------------------------------------------------------------------------------- the rest


def _shifts(told: ToldTrend, width: int) -> Iterator[str]:
    for found in told.shifts:
        yield from _text(f"A level shifted at run {found.run}", width)
        for sentence in found.series[:_MOST_SERIES]:
            yield from _text(sentence, width, 3)
        if len(found.series) > _MOST_SERIES:
            yield f"   and {len(found.series) - _MOST_SERIES} more, in --format json"
        for sentence in found.beside:
            yield from _text(sentence, width, 3)
        yield ""


def _events(told: ToldTrend, width: int) -> Iterator[str]:
    for title, events in told.events:
        yield from _text(title, width)
        yield from (line for event in events for line in _text(event, width, 3))
        yield ""
