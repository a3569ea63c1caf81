"""The end of a run, as lines of text: the table, and under it everything that is not PASS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.metrics.kinds import HELD_TO_NONE
from suite.records import Flip, Gate, Verdict
from suite.reporting import wording
from suite.reporting.doctor import doctor_lines
from suite.reporting.fidelity import fidelity_remarks
from suite.reporting.folding import Group, Point, step_lines
from suite.reporting.hostile import became, filled, one_line, plain, wrapped
from suite.reporting.layout import layout
from suite.reporting.limits import limits_remarks
from suite.reporting.losses import loss_lines
from suite.reporting.model import DomainScore, Report, Row
from suite.reporting.table import padded
from suite.reporting.wording import counted

_COLOURS = {
    Verdict.PASS: "32",
    Verdict.IMPROVED: "1;36",
    Verdict.ERROR: "1;31",
    Verdict.INVALID: "1;31",
    Verdict.REGRESSED: "1;31",
}
_UNSURE = "33"
_LOUD = "the baseline is stale: accept the gain, or it hides the next regression"
_GATES = {Gate.BLOCK: "", Gate.WARN: " (warns only)", Gate.INFO: " (informs only)"}
_MOST_POINTS, _MOST_FLIPS, _MOST_LINES, _MOST_SUSPECTS, _MOST_STEPS = 8, 6, 4, 6, 3
_ANSWER = 24


def lines(report: Report, *, width: int, color: bool) -> Iterator[str]:
    """Yield the report line by line, without line feeds.

    Rows of the table never exceed `width` columns: columns are dropped, the least important first. Sentences are broken
    at spaces, commands are not. Words carry every state; `color` only repeats it.
    """
    yield from filled(_heading(report), width)
    yield ""
    yield from _table(report, width, color)
    yield ""
    for group in report.groups:
        yield from _group(group, width, color)
        yield ""
    costs = loss_lines(report.losses, width, reference=report.reference, scenario=report.scenario)
    yield from costs
    if costs:
        yield ""
    yield from doctor_lines(report.doctor, width)
    if report.doctor:
        yield ""
    remarks = list(_remarks(report, width))
    yield from remarks
    if remarks:
        yield ""
    yield from wrapped(report.headline, width, first=" ", rest=" ")


def painted(text: str, verdict: Verdict, color: bool) -> str:
    """`text` in the colour of `verdict`, when colour is wanted."""
    if not color:
        return text
    words = text.rstrip()
    return f"\x1b[{_COLOURS.get(verdict, _UNSURE)}m{words}\x1b[0m{text[len(words) :]}"


def _heading(report: Report) -> list[str]:
    totals = report.totals
    parts = [one_line(report.model), counted(totals.variants, "variant"), counted(totals.cases, "case")]
    parts += [one_line(report.machine), f"run {one_line(report.run)}"]
    return [*(f"{part} ·" for part in parts[:-1]), parts[-1]]


def _table(report: Report, width: int, color: bool) -> Iterator[str]:
    if not report.rows:
        yield " (no variant was run)"
        return
    fitted = layout(report, width - 1)
    for number, cells in enumerate(padded(fitted)):
        if number:
            said = [column.verdicts[number - 1] if column.verdicts else None for column in fitted.kept]
            shown = [painted(c, v, color) if v else c for c, v in zip(cells, said, strict=True)]
        else:
            shown = list(cells)
        yield (" " + (" " * fitted.gap).join(shown)).rstrip()
    if fitted.dropped:
        yield from wrapped(f"(no room for: {', '.join(fitted.dropped)})", width, first=" ", rest="  ")


# ----------------------------------------------------------------------------------------------- what is not PASS


def _group(group: Group, width: int, color: bool) -> Iterator[str]:
    title, verdict = one_line(group.title), str(group.verdict)
    if group.verdict is Verdict.IMPROVED and not group.next_steps:
        title = f"{title}: {_LOUD}"
    title_lines = wrapped(title, width, first=" ", rest="   ")
    yield from (line.replace(verdict, painted(verdict, group.verdict, color), 1) for line in title_lines)
    shown, steps = _room(group)
    for point in group.points[:shown]:
        yield from wrapped(_point(point), width, first="   ", rest="     ")
    if len(group.points) > shown:
        yield f"   and {len(group.points) - shown} more, in report.md"
    for line in _tail(group.detail):
        yield f"   | {line}"
    if group.suspects:
        suspects = wording.listed([one_line(s) for s in group.suspects], _MOST_SUSPECTS)
        yield from wrapped(f"changed since the baseline: {suspects}", width, first="   ", rest="     ")
    elif group.verdict is Verdict.REGRESSED and any(point.metric not in HELD_TO_NONE for point in group.points):
        yield "   nothing that is recorded changed since the baseline"
    yield from _flips(group.flips, width)
    for step in group.next_steps[:steps]:
        for number, told in enumerate(step_lines(step)):
            first = "     " if number else "   → "
            yield from [first + told.text] if told.is_command else wrapped(told.text, width, first=first, rest="     ")


def _room(group: Group) -> tuple[int, int]:
    """How many points and next steps are shown: what cannot be told must not push what failed off the screen."""
    return (2, 1) if group.verdict is Verdict.INCONCLUSIVE else (_MOST_POINTS, _MOST_STEPS)


def _point(point: Point) -> str:
    return f"{one_line(point.text)}{_GATES[point.gate]}"


def _tail(detail: str) -> list[str]:
    """The last lines of a worker's stderr that say something."""
    return [line.rstrip() for line in plain(detail).splitlines() if line.strip()][-_MOST_LINES:]


def _flips(flips: Sequence[Flip], width: int) -> Iterator[str]:
    for word, chosen in (
        ("flipped to wrong", [flip for flip in flips if not flip.is_correct]),
        ("flipped to right", [flip for flip in flips if flip.is_correct]),
    ):
        if chosen:
            told = wording.listed([_flip(flip) for flip in chosen], _MOST_FLIPS)
            yield from wrapped(f"{len(chosen)} {word}: {told}", width, first="   ", rest="     ")


def _flip(flip: Flip) -> str:
    return f"{one_line(flip.case)} ({became(flip.was, flip.now, _ANSWER)})"


# ------------------------------------------------------------------------------------------------------- remarks


def _remarks(report: Report, width: int) -> Iterator[str]:
    for text in _sentences(report):
        yield from wrapped(text, width, first=" ", rest="   ")


def _sentences(report: Report) -> Iterator[str]:
    if report.scenario and any(row.decode_tok_s is not None for row in report.rows):
        yield f"speeds are those of scenario {one_line(report.scenario)}"
    yield from (one_line(remark) for remark in fidelity_remarks(report.fidelity))
    yield from (one_line(remark) for remark in limits_remarks(report.limits, report.scenario))
    incomplete = [row for row in report.rows if any(score.ungraded for score in row.scores)]
    without = [f"{one_line(row.variant)} {_ungraded(row)}" for row in incomplete]
    if without:
        yield f"answers that could not be graded (they earn no credit): {'; '.join(without)}"
    yield from (one_line(sentence) for sentence in report.unmeasured)
    yield from (one_line(remark) for remark in report.remarks)
    yield from (f"note: {one_line(note)}" for note in report.notes)


def _ungraded(row: Row) -> str:
    return ", ".join(f"{one_line(score.domain)} {_counts(score)}" for score in row.scores if score.ungraded)


def _counts(score: DomainScore) -> str:
    counts = (
        (score.truncated, "truncated"),
        (score.empty, "empty"),
        (score.unparsable, "unparsable"),
        (score.errors, "lost"),
    )
    return " + ".join(f"{number} {word}" for number, word in counts if number)
