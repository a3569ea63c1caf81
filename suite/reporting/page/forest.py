"""A finding's picture: how far it drifted, how sure that is, and what was tolerated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.gate.decide import is_ratio
from suite.metrics.catalog import SPECS
from suite.records import Finding, Tier, Verdict
from suite.reporting import wording
from suite.reporting.folding import is_gate
from suite.reporting.hostile import one_line
from suite.reporting.page.drawing import BAD, GOOD, GRID, INK, MUTED, PAPER, UNSURE, label_rows, place
from suite.reporting.page.sheet import NARROW, Cell, Picture, Sheet, heads, named, said, whole_picture
from suite.reporting.page.sheet import verdict as verdict_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 26
_MOST = 24
_SHARES = ("credit", "share")
_COLOURS = {Verdict.REGRESSED: (BAD, "X"), Verdict.IMPROVED: (GOOD, "^")}
_SHOWN = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One finding, in per cent or points; positive is worse."""

    finding: Finding
    drift: float
    interval: tuple[float, float] | None
    tolerance: float | None

    @property
    def name(self) -> str:
        """Variant, metric and scope."""
        found = self.finding
        return f"{one_line(found.variant)} · {wording.metric_name(found.metric)} · {one_line(found.scope)}"


def draw_drifts(findings: Sequence[Finding]) -> Picture | None:
    """Drift with its interval beside the tolerance, of what regressed, improved or cannot be told; None where that is none.

    Drifts of log-probabilities and of counts have units of their own and are left to the sentences.
    """
    every = sorted(_lines(findings), key=lambda line: _SHOWN.index(line.finding.verdict))
    lines = every[:_MOST]
    if not lines:
        return None

    def paint(figure: Figure, width: int) -> None:
        _paint(figure, width, lines)

    told = "; ".join(f"{line.name} {line.finding.verdict}, {wording.drift(line.finding.comparison)}" for line in lines)
    words = (
        f"Forest plot, drift from the baseline with its interval: {told}.",
        "Drift from the accepted baseline, in per cent of it, or points of score; to the right is worse. Bars hold 95 %. "
        "The upright stroke is the tolerance: a finding regresses when it is beyond it for sure."
        + (f" {len(every) - len(lines)} more are in the table below." if len(every) > len(lines) else ""),
    )
    wide, narrow = 40 + _ROW * len(lines) + 44, 40 + 2 * _ROW * len(lines) + 44
    return whole_picture("drifts", "Drift and tolerance", words, paint, _sheet(lines), heights=(wide, narrow))


def _lines(findings: Iterable[Finding]) -> Iterable[_Line]:
    for finding in findings:
        scale = _scale(finding)
        drift = finding.comparison.drift
        if finding.verdict not in _SHOWN or not is_gate(finding) or drift is None or scale is None:
            continue
        interval = finding.comparison.interval
        yield _Line(
            finding=finding,
            drift=scale * drift,
            interval=None if interval is None else (scale * interval[0], scale * interval[1]),
            tolerance=_tolerance(finding),
        )


def _scale(finding: Finding) -> float | None:
    """To per cent, or to points; None for units that share no axis with them."""
    if is_ratio(finding.comparison):
        return 100.0
    spec = SPECS.get(finding.metric)
    return 100.0 if spec is not None and spec.unit in _SHARES else None


def _tolerance(finding: Finding) -> float | None:
    limit = finding.tolerance
    if limit is None:
        return None
    if not is_ratio(finding.comparison):
        return 100 * limit.absolute
    side_by_side = finding.comparison.tier is Tier.DUET and limit.duet is not None
    return 100 * (limit.duet if side_by_side and limit.duet is not None else limit.relative)


def _sheet(lines: Sequence[_Line]) -> Sheet:
    rows = tuple(
        (
            named(line.finding.variant),
            said(wording.metric_name(line.finding.metric)),
            said(line.finding.scope),
            Cell(text=wording.drift(line.finding.comparison), sort=line.drift),
            Cell(text=_interval(line.finding)),
            Cell(text=wording.tolerance(line.finding.tolerance, line.finding.comparison)),
            verdict_cell(line.finding.verdict),
        )
        for line in lines
    )
    columns = ("metric", "scope", "drift", "95 % of the drift", "tolerance", "verdict")
    return Sheet(caption="Drift", heads=heads("variant", *columns, text=["metric", "scope", "verdict"]), rows=rows)


def _interval(finding: Finding) -> str:
    told = wording.drift_interval(finding.comparison)
    return told.removeprefix("95 %: ").removesuffix(" (+ is worse)") or wording.ABSENT


# --------------------------------------------------------------------------------------------------------- drawing


def _paint(figure: Figure, width: int, lines: Sequence[_Line]) -> None:
    narrow = width == NARROW
    names = ["" if narrow else line.name for line in lines]
    left = 12 if narrow else min(14 + 6.6 * max(len(name) for name in names), 0.5 * width)
    high = (2 if narrow else 1) * _ROW * len(lines)
    axes = place(figure, left, 34, width - left - 14, high)
    label_rows(axes, names)
    _limits(axes, lines)
    axes.axvline(0, color=MUTED, linewidth=1.2)
    for at, line in enumerate(lines):
        _draw(axes, at, line)
        if narrow:
            axes.text(
                axes.get_xlim()[0], at - 0.34, one_line(line.name, 50), fontsize=10.5, va="center", color=INK, zorder=4,
                bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
            )  # fmt: skip
            axes.axhline(at + 0.5, color=GRID, linewidth=1)
    axes.set_xlabel("drift, % of the baseline or points of score")
    for words, side, towards in (("← better", -8, "right"), ("worse →", 8, "left")):
        axes.annotate(
            words, (0, 1), xytext=(side, 10), xycoords=("data", "axes fraction"), textcoords="offset points", ha=towards,
            color=MUTED,
        )  # fmt: skip


def _limits(axes: Axes, lines: Sequence[_Line]) -> None:
    """Everything, but one wide interval does not flatten the others: what runs out of the picture has no end there."""
    ends = [end for line in lines for end in (line.drift, *(line.interval or ()), line.tolerance or 0.0)]
    inner = [abs(value) for line in lines for value in (line.drift, line.tolerance or 0.0)]
    most = max(3 * max(inner, default=1.0), 1.0)
    low, high = max(min([*ends, 0.0]), -most), min(max([*ends, 0.0]), most)
    room = 0.05 * max(high - low, 1.0)
    axes.set_xlim(low - room, high + room)


def _draw(axes: Axes, at: int, line: _Line) -> None:
    colour, marker = _COLOURS.get(line.finding.verdict, (UNSURE, "o"))
    if line.interval is not None:
        axes.plot([*line.interval], [at, at], color=colour, linewidth=2.4, zorder=2, alpha=0.75)
    if line.tolerance is not None:
        axes.plot([line.tolerance, line.tolerance], [at - 0.3, at + 0.3], color=INK, linewidth=1.6, zorder=2.5)
    axes.scatter([line.drift], [at], s=54, marker=marker, color=colour, zorder=3)
