"""The trends of a history for a terminal: a table with small pictures, the levels that shifted, what happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from suite.records import HistoryEntry, Verdict
from suite.reporting.history_series import ALPHA, LevelShift, Series, Trend, primary_scope
from suite.reporting.history_signs import BLOCKS, DIGITS, marks, sparkline, to_ascii
from suite.reporting.hostile import one_line, wrapped
from suite.reporting.table import Column, Fitted, fit, padded
from suite.reporting.terminal import painted
from suite.reporting.wording import ABSENT, counted, listed, metric_name, value

_NARROWEST = 40
_WIDEST_PICTURE, _SMALLEST_PICTURE = 48, 8
_MOST_SERIES, _MOST_EVENTS, _MOST_CHANGES = 8, 5, 6
NEAR = 2
"""So many runs beside a shift, changes are told as perhaps belonging to it: its place is known to about a run."""
_CHANCE = f"the chance that one of them is told to have shifted by luck is {ALPHA:.0%}".replace("%", " %")
ACCEPT = 'pytest --model-matrix --matrix-update=changed --matrix-reason "..."'


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What it is shown on."""

    width: int
    color: bool = False
    ascii: bool = False
    """Whether only ASCII can be shown."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A shift, and the series that it is in."""

    series: Series
    shift: LevelShift


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
        yield from _heading(trend, width)
        yield ""
        yield from _table(trend, width, screen, scopes)
        yield ""
        told = [_Told(series, shift) for series in trend.series for shift in series.shifts]
        yield from _shifts(trend, told, width)
        yield from _events(trend, width)
        yield from _text(_verdict(trend, told), width)
        if told:
            yield from _text("Baselines stay as they are: mend what shifted, or accept the new level with", width)
            yield f"   {ACCEPT}"
        yield ""
    for fault in faults:
        yield from wrapped(f"NOT READ: {one_line(fault)}", width, first=" ", rest="   ")


def _text(text: str, width: int, indent: int = 1) -> list[str]:
    return wrapped(text, width, first=" " * indent, rest=" " * (indent + 2))


def _heading(trend: Trend, width: int) -> Iterator[str]:
    runs = counted(len(trend.entries), "run")
    if trend.left_out:
        runs = f"the last {runs} of {len(trend.entries) + trend.left_out}"
    first, last = (_day(trend.entries[place]) for place in (0, -1))
    days = first if first == last else f"{first} … {last}"
    yield from wrapped(f"{one_line(trend.model)} · {one_line(trend.machine)} · {runs}, {days}", width, rest="  ")


# ------------------------------------------------------------------------------------------------------- the table


def _table(trend: Trend, width: int, screen: Screen, scopes: bool) -> Iterator[str]:
    rows = trend.series if scopes else _shown(trend.series)
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


def _shown(series: Sequence[Series]) -> list[Series]:
    """Of each metric of a variant the scope of everything together, or the first one; and whatever shifted."""
    scopes: dict[tuple[str, str], list[str]] = {}
    for one in series:
        scopes.setdefault((one.variant, one.metric), []).append(one.scope)
    return [one for one in series if one.shifts or one.scope == primary_scope(scopes[one.variant, one.metric])]


def _columns(rows: Sequence[Series], pictures: Sequence[str], needed: int) -> list[Column]:
    """The last row holds the marks."""
    return [
        Column(heading="variant", cells=[*(one_line(one.variant) for one in rows), ""], keep=9, left=True),
        Column(heading="metric", cells=[*(_name(one) for one in rows), ""], keep=8, left=True),
        Column(heading="first", cells=[*(_value(one.metric, one.values[0]) for one in rows), ""], keep=3),
        Column(heading="last", cells=[*(_value(one.metric, one.values[-1]) for one in rows), ""], keep=5),
        Column(heading="change", cells=[*(share(one.change) for one in rows), ""], keep=6),
        Column(heading="trend", cells=list(pictures), keep=4, left=True),
        Column(heading="level", cells=[*(_level(one, needed) for one in rows), ""], keep=7, left=True),
    ]


def _value(metric: str, number: float) -> str:
    """The value; its unit is left out where the name beside it says it, and of divergences."""
    return value(metric, number).removesuffix(" tok/s").removesuffix(" nats")


def _picture(series: Series, runs: int, size: int, screen: Screen) -> str:
    values: list[float | None] = [None] * runs
    for entry, found in zip(series.entries, series.values, strict=True):
        values[entry] = found
    return sparkline(values, size, DIGITS if screen.ascii else BLOCKS)


def _name(series: Series) -> str:
    name = metric_name(series.metric) if series.metric.isidentifier() else series.metric
    return one_line(name if series.scope == "all" else f"{name} ({series.scope})")


def _level(series: Series, needed: int) -> str:
    """What the last shift did, and how many there were; or why there is none."""
    if not series.shifts:
        if len(set(series.values)) == 1:
            return "the same" if len(series.values) > 1 else "one run"
        return "steady" if len(series.values) >= needed else "too few runs"
    words = {True: "worse", False: "better", None: "moved"}[series.shifts[-1].worse]
    return words if len(series.shifts) == 1 else f"{words}, {len(series.shifts)} shifts"


def _painting(series: Series) -> Verdict | None:
    if not series.shifts or series.shifts[-1].worse is None:
        return None
    return Verdict.REGRESSED if series.shifts[-1].worse else Verdict.IMPROVED


def share(change: float | None) -> str:
    """A relative change: ``+4.1 %``, ``−11.8 %``, ``0 %``, ``+<0.1 %``."""
    if change is None:
        return ABSENT
    if not change:
        return "0 %"
    sign = "+" if change > 0 else "−"
    percent = abs(change) * 100
    if 0 < percent < 0.05:
        return f"{sign}<0.1 %"
    return f"{sign}{percent:.1f} %" if percent < 99.95 else f"{sign}{percent:.0f} %"


# ------------------------------------------------------------------------------------------------------- shifts


def _shifts(trend: Trend, told: Sequence[_Told], width: int) -> Iterator[str]:
    """By the run that they began with, the newest first."""
    by_run: dict[int, list[_Told]] = {}
    for one in told:
        by_run.setdefault(one.shift.entry, []).append(one)
    for place in sorted(by_run, reverse=True):
        yield from _text(f"A level shifted at run {_run(trend.entries[place])}", width)
        for one in by_run[place][:_MOST_SERIES]:
            yield from _text(_shift(one), width, 3)
        if len(by_run[place]) > _MOST_SERIES:
            yield f"   and {len(by_run[place]) - _MOST_SERIES} more, in --format json"
        for sentence in _beside(trend, place):
            yield from _text(sentence, width, 3)
        yield ""


def _shift(told: _Told) -> str:
    series, found = told.series, told.shift
    before, after = value(series.metric, found.shift.before), value(series.metric, found.shift.after)
    worse = {True: ", worse", False: ", better", None: ""}[found.worse]
    return (
        f"{one_line(series.variant)} {_name(series)}: {before} → {after}, {share(found.change)}{worse} "
        f"(medians of {counted(found.runs_before, 'run')} and {found.runs_after}; p = {found.shift.p_value:.2g})"
    )


def _beside(trend: Trend, place: int) -> Iterator[str]:
    """What changed, and was accepted, in that run, or in one so near that it may be meant."""
    changed = False
    for other in sorted(range(len(trend.entries)), key=lambda other: abs(other - place)):
        if abs(other - place) > NEAR:
            break
        when = _when(other - place)
        if trend.changed[other]:
            changed = True
            yield f"changed {when}: {_changes(trend.changed[other])}"
        if trend.entries[other].accepted:
            yield f"baselines were accepted {when}"
    if not changed:
        yield "nothing that is recorded changed there"


def _when(distance: int) -> str:
    if distance == 0:
        return "with this run"
    return f"{counted(abs(distance), 'run')} {'later' if distance > 0 else 'earlier'}"


# ------------------------------------------------------------------------------------------------------- the rest


def _events(trend: Trend, width: int) -> Iterator[str]:
    """The newest of what was accepted, and of what changed."""
    accepted = [_run(entry) for entry in trend.entries if entry.accepted]
    changed = [
        f"{_run(entry)}: {_changes(changes)}"
        for entry, changes in zip(trend.entries, trend.changed, strict=True)
        if changes
    ]
    for title, events in (("Baselines were accepted from", accepted), ("Versions changed at", changed)):
        if events:
            yield from _text(title, width)
            yield from (line for event in _newest(events) for line in _text(event, width, 3))
            yield ""


def _newest(events: Sequence[str]) -> Iterator[str]:
    yield from reversed(events[-_MOST_EVENTS:])
    if len(events) > _MOST_EVENTS:
        yield f"and {counted(len(events) - _MOST_EVENTS, 'earlier run')}"


def _changes(changes: Iterable[str]) -> str:
    return listed([one_line(change) for change in changes], _MOST_CHANGES)


def _run(entry: HistoryEntry) -> str:
    told = [] if entry.run.startswith(entry.created[:10]) else [_day(entry)]
    told += [f"commit {one_line(entry.commit)}"] if entry.commit else []
    return f"{one_line(entry.run)} ({', '.join(told)})" if told else one_line(entry.run)


def _day(entry: HistoryEntry) -> str:
    return one_line(entry.created[:10])


def _verdict(trend: Trend, told: Sequence[_Told]) -> str:
    """The one sentence: what shifted, or what could have been seen."""
    among = f"{trend.tested} series"
    if told:
        runs = counted(len({one.shift.entry for one in told}), "run")
        return f"{counted(len(told), 'shift')} of level, at {runs}, among {among}; {_CHANCE}."
    if len(trend.entries) < trend.needed and trend.tested:
        return (
            f"No level shifted, but none could have been seen: among {among}, {trend.needed} runs are needed and there are "
            f"{len(trend.entries)}."
        )
    if not trend.tested:
        return "No level shifted: nothing moved, or there are too few runs to tell."
    return f"No level shifted among {among}; {_CHANCE}."
