"""Pictures of speed: each scenario with its launches, and how the gaps between tokens are spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.metrics.fidelity import percentile
from suite.metrics.speed import launch_values
from suite.records import Measurement, Run, SampleStatus
from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import GHOST, GRID, INK, MUTED, PAPER, SERIES, label_rows, place, room_for, series
from suite.reporting.page.sheet import NARROW, Cell, Picture, Sheet, heads, named, number, picture, whole_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METRICS = ("prefill_tok_s", "decode_tok_s")
_ROW = 24
_FEWEST_GAPS = 8
_BINS = 56
_Speeds = Mapping[tuple[str, str, str], Measurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """What is drawn of speed."""

    variants: tuple[str, ...]
    scenarios: tuple[str, ...]
    speeds: _Speeds
    """By variant, metric, scenario."""
    baselines: Mapping[tuple[str, str, str], float]


def draw_scenarios(run: Run) -> Picture | None:
    """Prefill and decode rate in each scenario; None where none was timed."""
    timed = _timed(run)
    if not timed.variants:
        return None
    high = _ROW * len(timed.scenarios) * len(timed.variants)

    def paint(figure: Figure, width: int) -> None:
        names = [one_line(name, 24) for name in timed.variants]
        left = room_for(names)
        beside = width != NARROW
        each = (width - 2 * left - 60) / 2 if beside else width - left - 20
        for panel, metric in enumerate(_METRICS):
            x = left + panel * (each + left + 30) if beside else left
            top = 56 if beside else 56 + panel * (high + 66)
            _panel(place(figure, x, top, each, high), timed, metric, names)
        _legend(figure, width, timed)

    words = (f"Dot plot, prefill and decode rate in tokens a second. {_tell(timed)}", _caption(timed))
    heights = (56 + high + 34, 56 + 2 * (high + 66) - 30)
    return whole_picture("scenarios", "Speed by scenario", words, paint, _speed_sheet(timed), heights=heights)


def _timed(run: Run) -> _Timed:
    speeds = {
        (result.variant.name, m.metric, m.scope): m
        for result in run.variants
        for m in result.measurements
        if m.metric in _METRICS and m.value is not None
    }
    compared = {
        (f.variant, f.metric, f.scope): f.comparison.baseline
        for f in run.findings
        if f.metric in _METRICS and f.comparison.unresolved is None  # that of another machine is no baseline here
    }
    return _Timed(
        variants=tuple(dict.fromkeys(key[0] for key in speeds)),
        scenarios=tuple(dict.fromkeys(key[2] for key in speeds)),
        speeds=speeds,
        baselines={key: baseline for key, baseline in compared.items() if baseline is not None},
    )


def _caption(timed: _Timed) -> str:
    text = "Large: the value. Small strokes: each launch, the unit of sampling."
    return f"{text} Grey ring: the accepted baseline." if timed.baselines else text


def _tell(timed: _Timed) -> str:
    return "; ".join(
        f"{one_line(v)} {one_line(s)} {wording.metric_name(m)} {wording.rate(timed.speeds[v, m, s].value)}"
        for v, m, s in timed.speeds
    )


def _panel(axes: Axes, timed: _Timed, metric: str, names: list[str]) -> None:
    label_rows(axes, names)
    axes.set_title(wording.metric_name(metric), pad=8)
    step = 0.72 / len(timed.scenarios)
    for row, variant in enumerate(timed.variants):
        if row:
            axes.axhline(row - 0.5, color=GRID, linewidth=1)
        for which, scenario in enumerate(timed.scenarios):
            found = timed.speeds.get((variant, metric, scenario))
            at = row - 0.36 + step * (which + 0.5)
            if found is not None:
                _draw_speed(axes, at, found, which)
            baseline = timed.baselines.get((variant, metric, scenario))
            if baseline is not None:
                axes.scatter([baseline], [at], s=64, facecolor="none", edgecolor=GHOST, linewidth=1.6, zorder=2)
    axes.set_xlim(0, axes.get_xlim()[1])


def _draw_speed(axes: Axes, at: float, found: Measurement, which: int) -> None:
    colour, marker = series(which)
    launches = list(launch_values(found).values())
    axes.scatter(launches, [at] * len(launches), s=90, marker="|", color=colour, linewidth=1.4, zorder=2.5)
    axes.scatter([found.value or 0], [at], s=52, marker=marker, color=colour, edgecolor=PAPER, linewidth=0.8, zorder=3)


def _legend(figure: Figure, width: int, timed: _Timed) -> None:
    axes = place(figure, 8, 0, width - 16, 24)
    axes.set_xlim(0, width - 16)
    axes.set_ylim(-1, 1)
    axes.set_axis_off()
    x = 8.0
    for which, scenario in enumerate(timed.scenarios):
        name = one_line(scenario, 18)
        colour, marker = series(which)
        axes.scatter([x], [0], s=44, marker=marker, color=colour)
        axes.text(x + 10, 0, name, va="center", color=INK)
        x += 32 + 6.8 * len(name)


def _speed_sheet(timed: _Timed) -> Sheet:
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
    columns = ("scenario", "metric", "value", "launches", "baseline")
    return Sheet(
        caption="Tokens a second", heads=heads("variant", *columns, text=["scenario", "metric"]), rows=tuple(rows)
    )


# ------------------------------------------------------------------------------------------------------------- gaps


def draw_gaps(run: Run) -> Picture | None:
    """How the gaps between tokens are spread in the first scenario with enough of them; None where there is none."""
    scenario = next((s.name for s in run.matrix.scenarios if any(_gaps(run, s.name).values())), None)
    gaps = {name: found for name, found in _gaps(run, scenario).items() if len(found) >= _FEWEST_GAPS}
    if scenario is None or not gaps:
        return None
    names = [one_line(name, 24) for name in gaps]
    edges = _edges([gap for found in gaps.values() for gap in found])

    def paint(figure: Figure, width: int) -> None:
        left = room_for(names)
        axes = place(figure, left, 12, width - left - 16, 34 * len(names))
        label_rows(axes, names)
        axes.set_xscale("log")
        axes.set_xlim(edges[0], edges[-1])
        for row, found in enumerate(gaps.values()):
            _draw_gaps(axes, row, [1000 * gap for gap in found], edges)
        _plain_ticks(axes)
        axes.set_xlabel("milliseconds between two tokens (logarithmic)")

    height = 12 + 34 * len(names) + 46
    told = [f"{one_line(name)} median {wording.duration(percentile(found, 0.5))}" for name, found in gaps.items()]
    words = (
        f"Histograms of the gaps between tokens, one row a variant: {'; '.join(told)}.",
        f"Scenario {one_line(scenario)}, clean samples, all launches. Long stroke: median; short: 99th percentile. "
        "A hump far to the right is a stall that comes back.",
    )
    return picture("gaps", "Gaps between tokens (ITL)", words, paint, _gap_sheet(gaps), heights=(height, height))


def _gaps(run: Run, scenario: str | None) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {result.variant.name: [] for result in run.variants}
    for sample in run.speed_samples:
        if sample.scenario == scenario and sample.status is SampleStatus.CLEAN and sample.variant in found:
            found[sample.variant] += [gap for gap in sample.itl_s if gap > 0]
    return found


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


def _gap_sheet(gaps: Mapping[str, Sequence[float]]) -> Sheet:
    rows = tuple(
        (
            named(name),
            number(len(found), str(len(found))),
            *(number(value, wording.duration(value)) for value in _quantiles(found)),
        )
        for name, found in gaps.items()
    )
    columns = ("gaps", "median", "90 %", "99 %", "longest")
    return Sheet(caption="Gaps between tokens", heads=heads("variant", *columns), rows=rows)


def _quantiles(found: Sequence[float]) -> list[float]:
    return [percentile(found, share) for share in (0.5, 0.9, 0.99, 1.0)]
