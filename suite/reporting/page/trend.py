"""Past runs on the same machine: one small line for each variant and metric. What shifted is decided in `history_series`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.records import ALL, HistoryEntry, Run
from suite.reporting import wording
from suite.reporting.history_entry import enter_run
from suite.reporting.history_series import LevelShift, Selection, Series, Trend, build_trends
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import GRID, INK, MUTED, PAPER, SERIES, UNSURE, place, room_for
from suite.reporting.page.sheet import NARROW, Cell, Picture, Sheet, heads, named, said, whole_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 30
_ROW = 46
_NAME = 14
"""Pixels above a line for the variant's name, on a telephone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """What is drawn: rows of variants, columns of metrics."""

    trend: Trend
    variants: tuple[str, ...]
    metrics: tuple[tuple[str, str], ...]
    """Metric and scope."""
    labels: Mapping[tuple[str, str], str]
    """The heading of each."""

    def find(self, variant: str, metric: str, scope: str) -> Series | None:
        """The series of one cell."""
        key = (variant, metric, scope)
        return next((one for one in self.trend.series if (one.variant, one.metric, one.scope) == key), None)


def follow(run: Run, history: Sequence[HistoryEntry]) -> Trend | None:
    """The trend up to this run; None where no other run of its model was measured on its machine before."""
    before = [entry for entry in history if entry.run != run.id and entry.created <= run.created]
    own = next((entry for entry in history if entry.run == run.id), None) or enter_run(run)
    machine = run.environment.machine
    trends = build_trends([*before, own], Selection(machine=machine))
    found = next((trend for trend in trends if trend.model == run.model), None)
    return found if found is not None and len(found.entries) > 1 and found.series else None


def draw_trend(run: Run, trend: Trend) -> Picture | None:
    """Small lines, one row a variant and one column a metric, each on its own scale; None where there is no line."""
    timed = [("decode_tok_s", scenario.name) for scenario in run.matrix.scenarios[:1]]
    names = [result.variant.name for result in run.variants]
    labels = {pair: wording.metric_name(pair[0]) for pair in (*timed, ("mean_kld", ALL), ("score", ALL))}
    return draw_lines(("trend", "Trend"), trend, names, labels)


def draw_lines(
    called: tuple[str, str], trend: Trend, names: Sequence[str], labels: Mapping[tuple[str, str], str]
) -> Picture | None:
    """The same of any variants and of any metrics (with scope), whose headings are `labels`; `called` are id and title."""
    grid = _grid(trend, names, labels)
    if not grid.variants or not grid.metrics:
        return None

    def paint(figure: Figure, width: int) -> None:
        _paint(figure, width, grid)

    words = (
        f"Small line charts of {len(trend.entries)} runs, one row a variant: {_tell(grid)}",
        "Each line has its own scale; the number is the latest. Ring: a run whose baselines were accepted. Dashed: a version "
        "or a hash changed. Thick stroke: the level shifted there.",
    )
    rows = len(grid.variants)
    heights = (34 + rows * _ROW + 8, 34 + rows * (_ROW + _NAME) + 8)
    return whole_picture(*called, words, paint, _sheet(grid), heights=heights)


def describe_shifts(trend: Trend) -> tuple[str, ...]:
    """A sentence for each shift of level, with the run that it begins at; or that there is none, and what could be seen."""
    told = [_shift(trend, series, shift) for series in trend.series for shift in series.shifts]
    if told:
        return tuple(told)
    return (
        f"No level shifted in {len(trend.entries)} runs; of {trend.tested} series together, none shorter than "
        f"{trend.needed} runs could show it.",
    )


def _shift(trend: Trend, series: Series, found: LevelShift) -> str:
    entry = trend.entries[found.entry]
    way = "" if found.worse is None else ", worse" if found.worse else ", better"
    before, after = (wording.value(series.metric, value) for value in (found.shift.before, found.shift.after))
    return (
        f"{one_line(series.variant)}: {wording.metric_name(series.metric)} ({one_line(series.scope)}) shifted from {before} "
        f"to {after}{way}, at run {one_line(entry.run)} of {one_line(entry.created)[:10]} (p = {found.shift.p_value:.2g}, "
        f"level {trend.level:.2g})"
    )


def _grid(trend: Trend, names: Sequence[str], labels: Mapping[tuple[str, str], str]) -> _Grid:
    """What of it was seen more than once."""
    lines = {(one.variant, one.metric, one.scope) for one in trend.series if len(one.values) > 1}
    metrics = tuple(pair for pair in labels if any(key[1:] == pair for key in lines))
    return _Grid(
        trend=trend,
        variants=tuple(name for name in names if any((name, *pair) in lines for pair in metrics)),
        metrics=metrics,
        labels=labels,
    )


def _tell(grid: _Grid) -> str:
    told = []
    for variant in grid.variants:
        for metric, scope in grid.metrics:
            series = grid.find(variant, metric, scope)
            if series is not None:
                first, last = (wording.value(metric, value) for value in (series.values[0], series.values[-1]))
                shifts = "".join(f", shifted at run {shift.entry + 1}" for shift in series.shifts)
                told.append(f"{one_line(variant)} {one_line(grid.labels[metric, scope])} {first} to {last}{shifts}")
    return "; ".join(told) + "."


# --------------------------------------------------------------------------------------------------------- drawing


def _paint(figure: Figure, width: int, grid: _Grid) -> None:
    narrow = width == NARROW
    names = [one_line(name, 16) for name in grid.variants]
    left, above = (8.0, _NAME) if narrow else (1.15 * room_for(names), 0)  # names are bold
    each = (width - left - 6) / len(grid.metrics)
    for row, variant in enumerate(grid.variants):
        top = 34 + row * (_ROW + above)
        _write(figure, (8, top + (0 if narrow else 8)), names[row])
        for column, (metric, scope) in enumerate(grid.metrics):
            axes = place(figure, left + column * each + 4, top + above, each - 50, 30)
            _draw_line(axes, grid, variant, (metric, scope))
            if not row:
                _head(axes, one_line(grid.labels[metric, scope], 16 if narrow else 40), above)


def _head(axes: Axes, text: str, above: int) -> None:
    """The heading of a column, over its first line."""
    axes.annotate(
        text, (0, 1), xytext=(0, 14 + above), xycoords="axes fraction", textcoords="offset points", color=MUTED
    )


def _draw_line(axes: Axes, grid: _Grid, variant: str, what: tuple[str, str]) -> None:
    trend, series = grid.trend, grid.find(variant, *what)
    axes.set_xlim(-0.5, len(trend.entries) - 0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    if series is None:
        axes.text(-0.5, 0.5, "not measured", color=MUTED, fontsize=10, va="center")
        return
    xs, ys = series.entries, series.values
    room = 0.12 * (max(ys) - min(ys)) or 0.05 * abs(max(ys)) or 1.0
    axes.set_ylim(min(ys) - room, max(ys) + room)
    axes.axhline(min(ys) - room, color=GRID, linewidth=1)
    for at, changes in enumerate(trend.changed):
        if any(_owner(change, grid.variants) in (None, variant) for change in changes):
            axes.axvline(at - 0.5, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    for shift in series.shifts:
        axes.axvline(shift.entry - 0.5, color=UNSURE, linewidth=2.4)
    axes.plot(xs, ys, color=SERIES[0][0], linewidth=1.3, zorder=3)
    accepted = [(x, y) for x, y in zip(xs, ys, strict=True) if trend.entries[x].accepted]
    axes.scatter(
        [x for x, _ in accepted],
        [y for _, y in accepted],
        s=26,
        facecolor=PAPER,
        edgecolor=INK,
        linewidth=1.2,
        zorder=4,
    )
    axes.scatter(xs[-1:], ys[-1:], s=18, color=SERIES[0][0], zorder=5)
    axes.annotate(
        _short(what[0], ys[-1]), (1, 0.5), xytext=(5, 0), xycoords="axes fraction", textcoords="offset points", va="center",
        fontsize=10.5, color=INK,
    )  # fmt: skip


def _owner(change: str, variants: Sequence[str]) -> str | None:
    """The variant that alone it concerns: ``variant: name: old → new``."""
    return next((name for name in variants if change.startswith(f"{name}: ")), None)


def _short(metric: str, value: float) -> str:
    """Without its unit, which the column names."""
    return wording.short_nats(value) if metric == "mean_kld" else wording.value(metric, value).removesuffix(" tok/s")


def _write(figure: Figure, at: tuple[float, float], name: str) -> None:
    axes = place(figure, *at, 100, 14)
    axes.set_axis_off()
    axes.text(0, 0.5, name, va="center", fontweight="bold", color=INK)


# ------------------------------------------------------------------------------------------------------- the table


def _sheet(grid: _Grid) -> Sheet:
    """The runs, the latest first, with every value that is drawn."""
    lines = [(v, m, s) for v in grid.variants for m, s in grid.metrics]
    entries = grid.trend.entries
    places = range(len(entries))[::-1][:_MOST_ROWS]
    rows = tuple(
        (
            named(entries[at].run),
            said(entries[at].created[:10]),
            said("accepted" if entries[at].accepted else ""),
            said("; ".join(grid.trend.changed[at])),
            *(_value(entries[at], *line) for line in lines),
        )
        for at in places
    )
    names = [f"{one_line(v)} {one_line(grid.labels[m, s])}" for v, m, s in lines]
    left = len(entries) - len(rows)
    return Sheet(
        caption="Runs, the latest first" + (f"; {left} older ones are in the history" if left else ""),
        heads=heads("run", "created", "baselines", "changed", *names, text=["created", "baselines", "changed"]),
        rows=rows,
    )


def _value(entry: HistoryEntry, variant: str, metric: str, scope: str) -> Cell:
    found = entry.values.get(f"{variant}/{metric}/{scope}")
    return Cell(text=wording.value(metric, found), sort=found)
