"""A small panel for each scenario, where there are more of them than colours and markers tell apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from suite.metrics.speed import launch_values
from suite.records import Measurement
from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import GHOST, MUTED, PAPER, label_rows, place, room_for, series
from suite.reporting.page.sheet import NARROW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = ("prefill_tok_s", "decode_tok_s")
MOST_PANELS = 6
"""Scenarios in one picture: under each other, as on a telephone and on paper, they fit a printed page."""

_ROW, _HEAD, _TITLE, _TICKS = 15, 26, 24, 30
_MARGIN, _BETWEEN = 20, 28
"""Room for half a number below the right end of an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What is drawn of speed."""

    variants: tuple[str, ...]
    scenarios: tuple[str, ...]
    speeds: Mapping[tuple[str, str, str], Measurement]
    """By variant, metric, scenario."""
    baselines: Mapping[tuple[str, str, str], float]

    def only(self, scenarios: Sequence[str]) -> Timed:
        """The same of some scenarios, with all variants."""
        return replace(
            self,
            scenarios=tuple(scenarios),
            speeds={key: found for key, found in self.speeds.items() if key[2] in scenarios},
            baselines={key: found for key, found in self.baselines.items() if key[2] in scenarios},
        )


def draw_speed(axes: Axes, at: float, key: tuple[str, str, str], timed: Timed, which: int) -> None:
    """One value with its launches and its baseline, as far as known, in the colour and marker of number `which`."""
    found, baseline = timed.speeds.get(key), timed.baselines.get(key)
    colour, marker = series(which)
    if found is not None:
        launches = list(launch_values(found).values())
        axes.scatter(launches, [at] * len(launches), s=90, marker="|", color=colour, linewidth=1.4, zorder=2.5)
        value = [found.value or 0]
        axes.scatter(value, [at], s=52, marker=marker, color=colour, edgecolor=PAPER, linewidth=0.8, zorder=3)
    if baseline is not None:
        axes.scatter([baseline], [at], s=64, facecolor="none", edgecolor=GHOST, linewidth=1.6, zorder=2)


def panels_height(timed: Timed, width: int) -> int:
    """Pixels that the panels of a picture of that width take."""
    return _HEAD + math.ceil(len(timed.scenarios) / _across(width)) * _block(timed)


def paint_panels(figure: Figure, width: int, timed: Timed) -> None:
    """Prefill and decode of a scenario side by side, each on a scale of its own; two scenarios abreast where there is room."""
    across = _across(width)
    names = [one_line(name, 14 if across == 1 else 24) for name in timed.variants]
    left, column = room_for(names), width / across
    each = (column - left - _BETWEEN - _MARGIN) / len(METRICS)
    height = panels_height(timed, width)
    for which, scenario in enumerate(timed.scenarios):
        line, at = divmod(which, across)
        top = _HEAD + line * _block(timed) + _TITLE
        for panel, metric in enumerate(METRICS):
            x = at * column + left + panel * (each + _BETWEEN)
            axes = place(figure, x, top, each, _ROW * len(names))
            label_rows(axes, names if panel == 0 else [""] * len(names))
            if panel == 0:
                axes.set_title(one_line(scenario, 28), pad=6, fontweight="bold")
            if line == 0:
                figure.text(x / width, 1 - 14 / height, wording.metric_name(metric), color=MUTED)
            _paint_panel(axes, timed, metric, scenario)


def _paint_panel(axes: Axes, timed: Timed, metric: str, scenario: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    keys = [(variant, metric, scenario) for variant in timed.variants]
    if not any(key in timed.speeds for key in keys):
        axes.set_xticks([])
        axes.text(0, 0.5, "not timed", transform=axes.transAxes, va="center", color=MUTED)
        return
    for row, key in enumerate(keys):
        draw_speed(axes, row, key, timed, 0)
    axes.set_xlim(0, axes.get_xlim()[1])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _across(width: int) -> int:
    return 1 if width == NARROW else 2


def _block(timed: Timed) -> int:
    """A scenario's title, rows and numbers."""
    return _TITLE + _ROW * len(timed.variants) + _TICKS
