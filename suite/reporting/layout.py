"""Which columns the terminal table has, wide and compact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from suite.records import Verdict
from suite.reporting import wording
from suite.reporting.hostile import one_line
from suite.reporting.model import Report, Row
from suite.reporting.table import Column, Fitted, fit

_ABBREVIATED = 5


def layout(report: Report, width: int) -> Fitted:
    """The wide table when all of it fits, else the compact one with what fits of it.

    The compact table has one verdict for quality and speed together, no interval beside the speed-up, and short
    headings.
    """
    wide = fit(_columns(report, compact=False), width)
    return fit(_columns(report, compact=True), width) if wide.dropped else wide


def _columns(report: Report, *, compact: bool) -> list[Column]:
    rows = report.rows
    size = _short_size if compact else wording.size

    def column(heading: str, short: str, keep: int, cell: Callable[[Row], str]) -> Column:
        return Column(heading=short if compact else heading, cells=[cell(row) for row in rows], keep=keep)

    device = any(row.peak_device_bytes is not None for row in rows)
    columns = [
        Column(heading="variant", cells=[one_line(row.variant) for row in rows], keep=100, left=True),
        column("size", "size", 50, lambda row: size(row.size_bytes)),
        column("bpw", "bpw", 30, _bpw),
        column("prefill tok/s", "prefill", 60, lambda row: wording.rate(row.prefill_tok_s)),
        column("decode tok/s", "decode", 80, lambda row: wording.rate(row.decode_tok_s)),
        column("speed-up", "vs ref", 75, _short_speedup if compact else speedup),
        column("TTFT", "TTFT", 20, lambda row: wording.duration(row.ttft_s)),
        column("peak RSS", "mem", 40, lambda row: size(row.peak_rss_bytes)),
    ]
    if device:
        columns.append(column("peak device", "device", 45, lambda row: size(row.peak_device_bytes)))
    if any(row.kld is not None for row in rows):
        columns.append(column("KLD", "KLD", 72, lambda row: wording.short_nats(row.kld)))
    columns += [_domain(report, position, compact) for position in range(len(report.domains))]
    columns.append(column("ungraded", "ungraded", 10, ungraded))
    return columns + _verdicts(rows, compact)


def speedup(row: Row) -> str:
    """``2.38× ±0.03``; without the interval when there were fewer than two launches."""
    if row.reference:
        return "reference"
    if row.speedup is None:
        return wording.ABSENT
    half = row.speedup.half_width
    return f"{row.speedup.ratio:.2f}×" + (f" ±{half:.2f}" if half is not None else "")


def ungraded(row: Row) -> str:
    """Answers that could not be graded, of all answers: ``3/74``."""
    answers = sum(score.cases for score in row.scores)
    return f"{sum(score.ungraded for score in row.scores)}/{answers}" if answers else wording.ABSENT


def _bpw(row: Row) -> str:
    """Bits per weight, marked when the label claims something else."""
    if row.bpw is None:
        return wording.ABSENT
    return f"{row.bpw:.1f}{'!' if row.mismatch else ''}"


def _domain(report: Report, position: int, compact: bool) -> Column:
    name = one_line(report.domains[position])
    short = compact and len(name) > _ABBREVIATED
    cells = [wording.score(row.scores[position].score) for row in report.rows]
    return Column(heading=f"{name[: _ABBREVIATED - 1]}." if short else name, cells=cells, keep=70 - min(position, 9))


def _verdicts(rows: Sequence[Row], compact: bool) -> list[Column]:
    def column(heading: str, keep: int, verdicts: list[Verdict]) -> Column:
        return Column(heading=heading, cells=verdicts, keep=keep, left=True, verdicts=verdicts)

    if compact:
        return [column("verdict", 99, [row.verdict for row in rows])]
    return [column("quality", 98, [row.quality for row in rows]), column("speed", 99, [row.speed for row in rows])]


def _short_speedup(row: Row) -> str:
    if row.reference:
        return "ref."
    return wording.ABSENT if row.speedup is None else f"{row.speedup.ratio:.2f}×"


def _short_size(number: float | None) -> str:
    """``145M``, ``4.92G``."""
    return wording.size(number).replace(" MB", "M").replace(" GB", "G").replace(" kB", "k")
