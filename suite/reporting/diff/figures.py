"""One figure that differs, in words: what it was, what it is, by how much, and what that amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suite.gate.decide import RATIOS, blames_machine, is_ratio, limit_of
from suite.metrics.catalog import SPECS
from suite.records import ALL, Aspect, Comparison, DiffEntry, Direction, Figure, FigureState, Finding, Gate, Verdict
from suite.reporting import wording

_WORDS: Mapping[FigureState, str] = {
    "worse": "worse",
    "better": "better",
    "within": "within tolerance",
    "unclear": "cannot tell",
    "otherwise": "another question",
    "untested": "not judged",
    "new": "new",
    "gone": "gone",
}
_GATES = {Gate.BLOCK: "", Gate.WARN: " (warns)", Gate.INFO: " (informs)"}
_NOISE = {True: "beyond", False: "within", None: wording.ABSENT}
_VERDICTS: Mapping[FigureState, Verdict] = {
    "worse": Verdict.REGRESSED,
    "better": Verdict.IMPROVED,
    "within": Verdict.PASS,
    "gone": Verdict.REGRESSED,
}
_SHARES = ("credit", "share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table. Names and reasons are as they were written: renderers escape them."""

    variant: str
    metric: str
    """``decode tok/s (short)``."""
    was: str
    now: str
    change: str
    """In the direction of the value: ``+26 %``."""
    interval: str
    """On the same scale: ``+19 … +33``."""
    noise: str
    """``beyond``, ``within``, or nothing where nobody can tell."""
    tolerance: str
    verdict: str
    """``worse``, ``cannot tell (warns)``."""
    why: str
    """Why it cannot be told or compared; else empty."""
    colour: Verdict
    """The verdict whose colour repeats the words."""


def row_of(entry: DiffEntry, figure: Figure, *, name: str) -> Row:
    """The figure as a row; `name` is what the variant is called in this diff."""
    finding = figure.finding
    change, interval = change_of(figure)
    judged = finding is not None and figure.state not in ("otherwise", "untested")
    gate = _GATES[finding.gate] if finding is not None and judged else ""
    return Row(
        variant=name,
        metric=figure_name(figure),
        was=wording.value(figure.metric, figure.old),
        now=wording.value(figure.metric, figure.new),
        change=change,
        interval=interval,
        noise=_NOISE[figure.beyond_noise],
        tolerance=wording.tolerance(finding.tolerance, finding.comparison) if finding and judged else wording.ABSENT,
        verdict=f"{_WORDS[figure.state]}{gate}",
        why=why_of(entry, figure),
        colour=_VERDICTS.get(figure.state, Verdict.INCONCLUSIVE),
    )


def figure_name(figure: Figure) -> str:
    """``mean KLD``, ``decode tok/s (short)``."""
    name = wording.metric_name(figure.metric)
    return name if figure.scope == ALL else f"{name} ({figure.scope})"


def change_of(figure: Figure) -> tuple[str, str]:
    """By how much the value rose or fell, and the interval of that; ABSENT where it is not known."""
    comparison = figure.finding.comparison if figure.finding else None
    if comparison is None or figure.state in ("otherwise", "untested"):
        return _bare_change(figure), wording.ABSENT
    if comparison.drift is None:
        return wording.ABSENT, wording.ABSENT
    unit = unit_of(figure, comparison)
    change = f"{_signed(_natural(figure, comparison.drift), unit)} {unit}"
    if comparison.interval is None:
        return change, wording.ABSENT
    ends = sorted(_natural(figure, end) for end in comparison.interval)
    return change, " … ".join(_signed(end, unit) for end in ends)


def unit_of(figure: Figure, comparison: Comparison | None = None) -> str:
    """Of a change: ``%`` of the old value, ``points`` of a share, or the metric's own."""
    relative = is_ratio(comparison) if comparison else figure.aspect is not Aspect.QUALITY or figure.metric in RATIOS
    unit = SPECS[figure.metric].unit
    return "%" if relative or unit == "x" else "points" if unit in _SHARES else unit


def _bare_change(figure: Figure) -> str:
    """The change of a figure that is held against nothing."""
    if figure.old is None or figure.new is None or figure.state == "otherwise":
        return wording.ABSENT
    unit = unit_of(figure)
    if unit != "%":
        return f"{_signed(figure.new - figure.old, unit)} {unit}"
    return f"{_signed((figure.new - figure.old) / figure.old, unit)} %" if figure.old else wording.ABSENT


def _natural(figure: Figure, drift: float) -> float:
    """From "positive is worse" to "positive is more"."""
    return drift if SPECS[figure.metric].direction is Direction.LOWER else 0.0 - drift


def _signed(number: float, unit: str) -> str:
    shown = abs(number) * (100 if unit in ("%", "points") else 1)
    digits = f"{shown:.2g}" if shown < 10 else f"{shown:.0f}"
    if unit == "nats":
        digits = f"{shown:.3f}"
    sign = "" if float(digits) == 0 else "+" if number > 0 else "−"
    return f"{sign}{digits}"


def why_of(entry: DiffEntry, figure: Figure) -> str:
    """Why a figure cannot be told or compared, in a few words; the whole sentence is in the JSON."""
    finding = figure.finding
    if finding is None or figure.state not in ("unclear", "otherwise"):
        return ""
    comparison = finding.comparison
    if figure.state == "otherwise":
        return f"it was measured on {entry.moved_from}" if entry.moved_from else comparison.reason
    return _doubt(finding, comparison)


def _doubt(finding: Finding, comparison: Comparison) -> str:
    if comparison.flags:
        return "the machine was disturbed"
    if finding.tolerance is not None and finding.p_needed is not None:
        limit = limit_of(comparison, finding.tolerance)
        if blames_machine(comparison, limit, finding.p_needed):
            return "the machine itself is not as fast as it was"
    if comparison.assumed:
        return "this machine was never calibrated"
    if comparison.aspect is Aspect.QUALITY and comparison.p_value is not None:
        return "so few changed answers may be luck"
    return "the noise spans the tolerance"
