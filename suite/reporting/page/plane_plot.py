"""Draws the quality-speed plane."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import FONT, GHOST, GRID, INK, MUTED, PAPER, SERIES, place
from suite.reporting.page.plane import Quantity, Spot, frontier_of
from suite.reporting.page.sheet import Cell, Picture, Sheet, bounds, heads, named, number, picture, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST, _SMALLEST = 13.0, 4.0
"""Radii in pixels; the area of a dot is its memory."""
_TITLES = {"score": "Points of score lost", "mean_kld": "Divergence (KLD, nats a token)"}
_ACCENT = SERIES[0][0]
_USUAL = 0.95


def draw_plane(spots: Sequence[Spot], quantity: Quantity, reference: str) -> Picture:
    """The plane for one way of telling quality; `spots` are not empty."""
    title = f"{_TITLES[quantity]} against decode speed-up"
    words = (_alternative(spots, quantity, reference), describe(spots))

    def paint(figure: Figure, width: int) -> None:
        _paint(figure, width, spots, quantity)

    return picture(f"plane-{quantity}", title, words, paint, _sheet(spots, quantity), heights=(430, 360))


def describe(spots: Sequence[Spot]) -> str:
    """The frontier, who is dominated by whom, and what the bars hold, in words."""
    parts = [f"Pareto frontier: {wording.listed([one_line(s.variant) for s in frontier_of(spots)], 12)}."]
    beaten = [_beaten(spot) for spot in spots if spot.beaten_by]
    parts.append(f"Dominated (hollow): {'; '.join(beaten)}." if beaten else "None is dominated by another one.")
    parts.append(_levels(spots))
    parts += [
        f"The speed-up of {one_line(s.variant)} tells nothing apart: {one_line(s.doubt, 160)}."
        for s in spots
        if s.doubt
    ]
    return " ".join(parts)


def _levels(spots: Sequence[Spot]) -> str:
    """What the bars hold: more where launches were judged again."""
    wider: dict[float, list[str]] = {}
    for spot in spots:
        if spot.speedup_interval is not None and spot.confidence > _USUAL:
            wider.setdefault(spot.confidence, []).append(one_line(spot.variant))
    told = [f"{_level(level)} for the speed-up of {wording.listed(names)}" for level, names in sorted(wider.items())]
    again = f"; {', '.join(told)}, whose launches were judged more than once" if told else ""
    return f"Bars hold {_level(_USUAL)}{again}."


def _level(confidence: float) -> str:
    return f"{100 * confidence:.3g} %"


def _beaten(spot: Spot) -> str:
    by = wording.listed([one_line(name) for name in spot.beaten_by], 4)
    return f"{one_line(spot.variant)} by {by}{'' if spot.surely else ', within the error bars'}"


def _alternative(spots: Sequence[Spot], quantity: Quantity, reference: str) -> str:
    told = [f"{one_line(s.variant)} {s.speedup:.2f} times, {_loss(quantity)(s.loss)}" for s in spots]
    return f"Scatter plot, decode speed-up over {one_line(reference)} and loss of each variant: {'; '.join(told)}."


def _loss(quantity: Quantity) -> Callable[[float], str]:
    if quantity == "mean_kld":
        return lambda value: f"{wording.nats(value)} nats"
    return lambda value: f"{value:.1f} points".replace("-", "−")


def _sheet(spots: Sequence[Spot], quantity: Quantity) -> Sheet:
    word = _loss(quantity)
    rows = tuple(
        (
            named(spot.variant),
            number(spot.speedup, f"{spot.speedup:.2f}×"),
            Cell(text=_speed_bounds(spot)),
            number(spot.loss, word(spot.loss)),
            Cell(text=bounds(spot.loss_interval, lambda value: word(value).split()[0])),
            number(spot.memory_bytes, wording.size(spot.memory_bytes)),
            Cell(text=wording.ABSENT if spot.before is None else f"{spot.before[0]:.2f}×, {word(spot.before[1])}"),
            said("reference" if spot.reference and not spot.beaten_by else _beaten_cell(spot)),
        )
        for spot in spots
    )
    others = ("speed-up", "interval", "loss", "95 % of the loss", "peak memory", "at the baseline", "position")
    return Sheet(caption=_TITLES[quantity], heads=heads("variant", *others, text=["position"]), rows=rows)


def _speed_bounds(spot: Spot) -> str:
    """``2.31 … 2.44 (97.5 %)``, or a dash."""
    if spot.speedup_interval is None:
        return wording.ABSENT
    return f"{bounds(spot.speedup_interval, lambda value: f'{value:.2f}')} ({_level(spot.confidence)})"


def _beaten_cell(spot: Spot) -> str:
    return f"dominated by {', '.join(spot.beaten_by)}" if spot.beaten_by else "on the frontier"


# --------------------------------------------------------------------------------------------------------- drawing


def _paint(figure: Figure, width: int, spots: Sequence[Spot], quantity: Quantity) -> None:
    height = 72 * figure.get_size_inches()[1]
    axes = place(figure, 50, 14, width - 62, height - 60)
    axes.grid(visible=True, color=GRID, linewidth=1)
    _limits(axes, spots)
    axes.set_xlabel("decode speed-up over the reference (×)")
    axes.set_ylabel(f"{_TITLES[quantity].lower().replace('kld', 'KLD')}, less is up")
    axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (2, 3)))
    _draw_frontier(axes, spots)
    _draw_movement(axes, spots)
    largest = max((s.memory_bytes or 0 for s in spots), default=0)
    for spot in spots:
        _draw_spot(axes, spot, _radius(spot, largest))
    _name(axes, spots, largest)


def _limits(axes: Axes, spots: Sequence[Spot]) -> None:
    """All positions, and bars as far as they do not squeeze the positions into a corner; less loss is up."""
    xs = [x for s in spots for x in (s.speedup, *(s.speedup_interval or ()), *((s.before or ())[:1]))]
    ys = [y for s in spots for y in (s.loss, *(s.loss_interval or ()), *((s.before or ())[1:]))]
    (left, right), (low, high) = _clip(xs, [s.speedup for s in spots]), _clip(ys, [s.loss for s in spots])
    width, height = max(right - left, 0.2), max(high - low, 1e-4)
    axes.set_xlim(max(left - 0.1 * width, 0), right + 0.12 * width)
    axes.set_ylim(high + 0.1 * height, low - 0.12 * height)


def _clip(values: Sequence[float], centres: Sequence[float]) -> tuple[float, float]:
    spread = max(max(centres) - min(centres), 1e-9)
    return max(min(values), min(centres) - 3 * spread), min(max(values), max(centres) + 3 * spread)


def _draw_frontier(axes: Axes, spots: Sequence[Spot]) -> None:
    xs, ys = zip(*_boundary(axes, spots), strict=True)
    axes.plot(xs, ys, color=_ACCENT, linewidth=1.4, alpha=0.75, zorder=1.5)


def _boundary(axes: Axes, spots: Sequence[Spot]) -> list[tuple[float, float]]:
    """Between what is dominated and what is not: at each speed-up the least loss that reaches it."""
    frontier = frontier_of(spots)
    bottom, x = axes.get_ylim()[0], axes.get_xlim()[0]
    path = [(x, frontier[0].loss)]
    for spot in frontier:
        path += [(x, spot.loss), (spot.speedup, spot.loss)]
        x = spot.speedup
    return [*path, (x, bottom)]


def _draw_movement(axes: Axes, spots: Sequence[Spot]) -> None:
    for spot in spots:
        if spot.before is not None:
            axes.plot([spot.before[0], spot.speedup], [spot.before[1], spot.loss], color=GHOST, linewidth=1.4, zorder=2)
            axes.scatter(*spot.before, s=26, color=GHOST, zorder=2.1)


def _draw_spot(axes: Axes, spot: Spot, radius: float) -> None:
    for interval, fixed, across in (
        (spot.speedup_interval, spot.loss, True),
        (spot.loss_interval, spot.speedup, False),
    ):
        if interval is not None:
            ends = ([*interval], [fixed, fixed]) if across else ([fixed, fixed], [*interval])
            axes.plot(*ends, color=INK, linewidth=1.1, alpha=0.45, zorder=2.5)
    axes.scatter(
        [spot.speedup],
        [spot.loss],
        s=(2 * radius) ** 2 * (0.8 if spot.reference else 1),
        marker="D" if spot.reference else "o",
        facecolor=PAPER if spot.beaten_by else _ACCENT,
        edgecolor=_ACCENT,
        linewidth=1.8,
        zorder=3,
    )


def _radius(spot: Spot, largest: float) -> float:
    if not spot.memory_bytes or not largest:
        return 6.0
    return max(_LARGEST * math.sqrt(spot.memory_bytes / largest), _SMALLEST)


# ---------------------------------------------------------------------------------------------------------- labels

_Box = tuple[float, float, float, float]
_PLACES = tuple((math.cos(turn * math.pi / 8), math.sin(turn * math.pi / 8)) for turn in range(16))


def _name(axes: Axes, spots: Sequence[Spot], largest: float) -> None:
    """A name beside each dot, where it covers the least: other names, dots, bars, the frontier."""
    centres = {s.variant: _pixels(axes, s.speedup, s.loss) for s in spots}
    dots = {s.variant: _around(centres[s.variant], _radius(s, largest) + 2) for s in spots}
    bars = [bar for spot in spots for bar in _bars(axes, spot)]
    frame = axes.get_window_extent()
    inside = (frame.x0, frame.y0, frame.x1, frame.y1)
    taken: list[_Box] = [*dots.values(), *bars, *_steps(axes, spots)]
    for spot in sorted(spots, key=lambda s: s.variant):
        text = one_line(spot.variant, 24)
        reach = _radius(spot, largest) + 4
        best = min(
            ((distance, place) for distance in (reach, reach + 14, reach + 28) for place in _PLACES),
            key=lambda found: _cost(_box(centres[spot.variant], text, found), taken, inside) + 2 * found[0],
        )
        box = _box(centres[spot.variant], text, best)
        taken.append(box)
        if best[0] > reach:
            _lead(axes, centres[spot.variant], box)
        x, y = axes.transData.inverted().transform(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
        clear = {
            "facecolor": PAPER,
            "edgecolor": "none",
            "pad": 0.8,
            "alpha": 0.8,
        }  # a bar behind a name would strike it out
        axes.text(x, y, text, ha="center", va="center", fontsize=FONT + 0.5, fontweight="bold", zorder=5, bbox=clear)


def _pixels(axes: Axes, x: float, y: float) -> tuple[float, float]:
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


def _lead(axes: Axes, centre: Sequence[float], box: _Box) -> None:
    x, y = min(max(centre[0], box[0]), box[2]), min(max(centre[1], box[1]), box[3])
    ends = [axes.transData.inverted().transform(point) for point in ((x, y), (centre[0], centre[1]))]
    axes.plot([e[0] for e in ends], [e[1] for e in ends], color=MUTED, linewidth=0.8, zorder=2.6)


def _box(centre: Sequence[float], text: str, found: tuple[float, tuple[float, float]]) -> _Box:
    """Where `text` lies when its near edge is `found[0]` pixels from the centre in the direction `found[1]`."""
    wide, high = 0.62 * FONT * len(text) / 2 + 2, 0.62 * FONT
    distance, (dx, dy) = found
    x, y = centre[0] + dx * (distance + wide), centre[1] + dy * (distance + high)
    return (x - wide, y - high, x + wide, y + high)


def _around(centre: Sequence[float], radius: float) -> _Box:
    return (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)


def _bars(axes: Axes, spot: Spot) -> list[_Box]:
    """Its error bars, two pixels thick."""
    across, up = spot.speedup_interval or (spot.speedup,) * 2, spot.loss_interval or (spot.loss,) * 2
    ends = [(across[0], spot.loss), (across[1], spot.loss), (spot.speedup, up[0]), (spot.speedup, up[1])]
    left, right, low, high = (_pixels(axes, *end) for end in ends)
    bottom, top = sorted((low[1], high[1]))
    return [(left[0], left[1] - 1, right[0], left[1] + 1), (low[0] - 1, bottom, low[0] + 1, top)]


def _steps(axes: Axes, spots: Sequence[Spot]) -> list[_Box]:
    """The pieces of the frontier's line, four pixels thick."""
    path = [_pixels(axes, *point) for point in _boundary(axes, spots)]
    return [
        (min(a[0], b[0]) - 2, min(a[1], b[1]) - 2, max(a[0], b[0]) + 2, max(a[1], b[1]) + 2)
        for a, b in itertools.pairwise(path)
        if a != b
    ]


def _cost(box: _Box, taken: Sequence[_Box], inside: _Box) -> float:
    covered = sum(_overlap(box, other) for other in taken)
    outside = (box[2] - box[0]) * (box[3] - box[1]) - _overlap(box, inside)
    return covered + 20 * outside


def _overlap(one: _Box, other: _Box) -> float:
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
