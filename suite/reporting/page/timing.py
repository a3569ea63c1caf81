"""Pictures of speed: each scenario with its launches, and how the gaps between tokens are spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.metrics.fidelity import percentile
from suite.metrics.speed import launch_values, spread_chunks
from suite.records import Run, SampleStatus
from suite.reporting import wording
from suite.reporting.hostile import columns, one_line
from suite.reporting.page.drawing import GRID, INK, MUTED, SERIES, label_rows, place, room_for, series
from suite.reporting.page.scenario_panels import METRICS, MOST_PANELS, Timed, draw_speed, paint_panels, panels_height
from suite.reporting.page.sheet import (
    NARROW,
    WHOLE,
    Cell,
    Picture,
    Sheet,
    heads,
    named,
    number,
    picture,
    whole_picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 24
_LEGEND_ROW = 24
_LETTER = 6.8
_LONGEST_NAME = 18
_FEWEST_GAPS = 8
_BINS = 56


def draw_scenarios(run: Run) -> tuple[Picture, ...]:
    """Prefill and decode rate in each scenario; nothing where none was timed.

    Up to five scenarios share their axes and are told apart by colour and marker; more of them have a panel each, a few in
    a picture.
    """
    timed = _timed(run)
    if not timed.variants:
        return ()
    if len(timed.scenarios) <= len(SERIES):
        return (_draw_together(timed),)
    starts = range(0, len(timed.scenarios), MOST_PANELS)
    parts = [timed.only(timed.scenarios[start : start + MOST_PANELS]) for start in starts]
    return tuple(_draw_apart(part, at, len(parts)) for at, part in enumerate(parts, start=1))


def _draw_together(timed: Timed) -> Picture:
    high = _ROW * len(timed.scenarios) * len(timed.variants)
    legends = {width: place_names(timed.scenarios, width) for width in (WHOLE, NARROW)}
    first = {width: 32 + _LEGEND_ROW * (1 + legend[-1][1]) for width, legend in legends.items()}

    def paint(figure: Figure, width: int) -> None:
        names = [one_line(name, 24) for name in timed.variants]
        left = room_for(names)
        beside = width != NARROW
        each = (width - 2 * left - 60) / 2 if beside else width - left - 20
        for panel, metric in enumerate(METRICS):
            x = left + panel * (each + left + 30) if beside else left
            top = first[width] if beside else first[width] + panel * (high + 66)
            _panel(place(figure, x, top, each, high), timed, metric, names)
        _legend(figure, width, timed.scenarios, legends[width])

    words = (f"Dot plot, prefill and decode rate in tokens a second. {_tell(timed)}", _caption(timed))
    heights = (first[WHOLE] + high + 34, first[NARROW] + 2 * (high + 66) - 30)
    return whole_picture("scenarios", "Speed by scenario", words, paint, _speed_sheet(timed), heights=heights)


def _draw_apart(timed: Timed, at: int, of: int) -> Picture:
    def paint(figure: Figure, width: int) -> None:
        paint_panels(figure, width, timed)

    words = (
        f"Dot plots, prefill and decode rate in tokens a second, a pair for each scenario. {_tell(timed)}",
        f"Tokens a second; each pair of panels is a scenario, each panel has a scale of its own. {_caption(timed)}",
    )
    title = f"Speed by scenario, {at} of {of}" if of > 1 else "Speed by scenario"
    heights = (panels_height(timed, WHOLE), panels_height(timed, NARROW))
    return whole_picture(f"scenarios-{at}", title, words, paint, _speed_sheet(timed), heights=heights)


def _timed(run: Run) -> Timed:
    speeds = {
        (result.variant.name, m.metric, m.scope): m
        for result in run.variants
        for m in result.measurements
        if m.metric in METRICS and m.value is not None
    }
    compared = {
        (f.variant, f.metric, f.scope): f.comparison.baseline
        for f in run.findings
        if f.metric in METRICS and f.comparison.unresolved is None  # that of another machine is no baseline here
    }
    return Timed(
        variants=tuple(dict.fromkeys(key[0] for key in speeds)),
        scenarios=tuple(dict.fromkeys(key[2] for key in speeds)),
        speeds=speeds,
        baselines={key: baseline for key, baseline in compared.items() if baseline is not None},
    )


def _caption(timed: Timed) -> str:
    text = "Large: the value. Small strokes: each launch, the unit of sampling."
    return f"{text} Grey ring: the accepted baseline." if timed.baselines else text


def _tell(timed: Timed) -> str:
    return "; ".join(
        f"{one_line(v)} {one_line(s)} {wording.metric_name(m)} {wording.rate(timed.speeds[v, m, s].value)}"
        for v, m, s in timed.speeds
    )


def _panel(axes: Axes, timed: Timed, metric: str, names: list[str]) -> None:
    label_rows(axes, names)
    axes.set_title(wording.metric_name(metric), pad=8)
    step = 0.72 / len(timed.scenarios)
    for row, variant in enumerate(timed.variants):
        if row:
            axes.axhline(row - 0.5, color=GRID, linewidth=1)
        for which, scenario in enumerate(timed.scenarios):
            draw_speed(axes, row - 0.36 + step * (which + 0.5), (variant, metric, scenario), timed, which)
    axes.set_xlim(0, axes.get_xlim()[1])


def place_names(scenarios: Sequence[str], width: int) -> list[tuple[float, int]]:
    """Where the marker of each name of the legend lies: pixels from its left, and on which line; names do not leave `width`."""
    places: list[tuple[float, int]] = []
    x, line = 8.0, 0
    for scenario in scenarios:
        wide = 10 + _LETTER * columns(one_line(scenario, _LONGEST_NAME))
        if x > 8 and x + wide > width - 16:
            x, line = 8.0, line + 1
        places.append((x, line))
        x += wide + 22
    return places


def _legend(figure: Figure, width: int, scenarios: Sequence[str], places: Sequence[tuple[float, int]]) -> None:
    lines = 1 + places[-1][1]
    axes = place(figure, 8, 0, width - 16, _LEGEND_ROW * lines)
    axes.set_xlim(0, width - 16)
    axes.set_ylim(lines - 0.5, -0.5)
    axes.set_axis_off()
    for which, (scenario, (x, line)) in enumerate(zip(scenarios, places, strict=True)):
        colour, marker = series(which)
        axes.scatter([x], [line], s=44, marker=marker, color=colour)
        axes.text(x + 10, line, one_line(scenario, _LONGEST_NAME), va="center", color=INK)


def _speed_sheet(timed: Timed) -> Sheet:
    rows = []
    for variant, metric, scenario in timed.speeds:
        found, baseline = timed.speeds[variant, metric, scenario], timed.baselines.get((variant, metric, scenario))
        launches = " ".join(wording.rate(value) for value in launch_values(found).values())
        rows.append(
            (
                named(variant),
                named(scenario),
                named(wording.metric_name(metric)),
                number(found.value, wording.rate(found.value)),
                Cell(text=launches or wording.ABSENT),
                number(baseline, wording.rate(baseline)),
            )
        )
    others = ("scenario", "metric", "value", "launches", "baseline")
    return Sheet(
        caption="Tokens a second", heads=heads("variant", *others, text=["scenario", "metric"]), rows=tuple(rows)
    )


# ------------------------------------------------------------------------------------------------------------- gaps


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The gaps of one variant in seconds, of all its clean samples of a scenario."""

    values: list[float]
    chunked: bool
    """Whether tokens came several at once: a value is that of a chunk then, its time shared among its tokens."""


def draw_gaps(run: Run) -> Picture | None:
    """How the gaps between tokens are spread in the first scenario with enough of them; None where there is none."""
    found = ((scenario.name, _gaps(run, scenario.name)) for scenario in run.matrix.scenarios)
    scenario, gaps = next(((name, gaps) for name, gaps in found if gaps), ("", {}))
    if not gaps:
        return None
    names = [one_line(name, 24) for name in gaps]
    edges = _edges([gap for one in gaps.values() for gap in one.values])

    def paint(figure: Figure, width: int) -> None:
        left = room_for(names)
        axes = place(figure, left, 12, width - left - 16, 34 * len(names))
        label_rows(axes, names)
        axes.set_xscale("log")
        axes.set_xlim(edges[0], edges[-1])
        for row, one in enumerate(gaps.values()):
            _draw_gaps(axes, row, [1000 * gap for gap in one.values], edges)
        _plain_ticks(axes)
        axes.set_xlabel("milliseconds between two tokens (logarithmic)")

    height = 12 + 34 * len(names) + 46
    words = (_tell_gaps(gaps), _gap_caption(scenario, gaps))
    return picture("gaps", "Gaps between tokens (ITL)", words, paint, _gap_sheet(gaps), heights=(height, height))


def _gaps(run: Run, scenario: str) -> dict[str, _Gaps]:
    """By variant, where there are enough."""
    found: dict[str, _Gaps] = {}
    for result in run.variants:
        name = result.variant.name
        clean = [
            sample.itl_s
            for sample in run.speed_samples
            if (sample.variant, sample.scenario, sample.status) == (name, scenario, SampleStatus.CLEAN)
        ]
        values = [gap for gaps in clean for gap in spread_chunks(gaps)]
        if len(values) >= _FEWEST_GAPS:
            found[name] = _Gaps(values, chunked=any(gap <= 0 for gaps in clean for gap in gaps))
    return found


def _tell_gaps(gaps: Mapping[str, _Gaps]) -> str:
    told = [
        f"{one_line(name)} median {wording.duration(percentile(one.values, 0.5))}{', in chunks' if one.chunked else ''}"
        for name, one in gaps.items()
    ]
    return f"Histograms of the gaps between tokens, one row a variant: {'; '.join(told)}."


def _gap_caption(scenario: str, gaps: Mapping[str, _Gaps]) -> str:
    text = (
        f"Scenario {one_line(scenario)}, clean samples, all launches. Long stroke: median; short: 99th percentile. "
        "A hump far to the right is a stall that comes back."
    )
    chunked = [one_line(name) for name, one in gaps.items() if one.chunked]
    if not chunked:
        return text
    return (
        f"{text} Tokens of {wording.listed(chunked)} came in chunks: each gap is the time since the chunk before, shared among "
        "the tokens of the chunk."
    )


def _edges(gaps: Sequence[float]) -> list[float]:
    """Bins in milliseconds, of equal width on the logarithmic axis, over all variants."""
    low, high = math.log(1000 * min(gaps) * 0.95), math.log(1000 * max(gaps) * 1.05)
    return [math.exp(low + (high - low) * step / _BINS) for step in range(_BINS + 1)]


def _draw_gaps(axes: Axes, row: int, gaps: Sequence[float], edges: Sequence[float]) -> None:
    import numpy

    counts, _ = numpy.histogram(gaps, bins=edges)
    tops = [row + 0.4 - 0.78 * float(count) / max(float(counts.max()), 1.0) for count in counts]
    axes.stairs(tops, edges, baseline=row + 0.4, fill=True, color=SERIES[0][0], alpha=0.55, zorder=2)
    axes.axhline(row + 0.4, color=GRID, linewidth=1)
    median, late = percentile(gaps, 0.5), percentile(gaps, 0.99)
    axes.plot([median, median], [row - 0.4, row + 0.44], color=INK, linewidth=1.8, zorder=3)
    axes.plot([late, late], [row + 0.12, row + 0.44], color=MUTED, linewidth=1.8, zorder=3)


def _plain_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axes.get_xlim()
    steps = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
    inside = [step for step in steps if low <= step <= high]
    axes.xaxis.set_major_locator(FixedLocator(inside if len(inside) < 8 else inside[::2]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _gap_sheet(gaps: Mapping[str, _Gaps]) -> Sheet:
    rows = tuple(
        (
            named(name, "in chunks" if one.chunked else ""),
            number(len(one.values), str(len(one.values))),
            *(number(value, wording.duration(value)) for value in _quantiles(one.values)),
        )
        for name, one in gaps.items()
    )
    others = ("gaps", "median", "90 %", "99 %", "longest")
    return Sheet(caption="Gaps between tokens", heads=heads("variant", *others), rows=rows)


def _quantiles(found: Sequence[float]) -> list[float]:
    return [percentile(found, share) for share in (0.5, 0.9, 0.99, 1.0)]
