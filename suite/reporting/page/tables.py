"""The tables of the page: the variants, what they cost, and everything that was compared."""

from __future__ import annotations

from suite.records import ALL, Finding, Loss
from suite.reporting import wording
from suite.reporting.layout import speedup, ungraded
from suite.reporting.model import Report, Row
from suite.reporting.page.sheet import Cell, Head, Sheet, bounds, heads, named, number, said
from suite.reporting.page.sheet import verdict as verdict_cell

_MOST_COMPARED = 400
_COSTS = ("score", "output_tokens")
"""What the table of costs tells in numbers."""
_WORST_FIRST = ("over budget", "cannot tell", "not measured", "within budget")


def variants_sheet(report: Report) -> Sheet:
    """One row a variant, sortable."""
    device = any(row.peak_device_bytes is not None for row in report.rows)
    divergence = any(row.kld is not None for row in report.rows)
    columns = ["quality", "speed", "size", "bpw", "prefill tok/s", "decode tok/s", "speed-up", "TTFT", "peak RSS"]
    columns += [*(["peak device"] if device else []), *(["KLD"] if divergence else [])]
    columns += [*(wording_of(domain) for domain in report.domains), "ungraded"]
    return Sheet(
        caption="Variants",
        heads=heads("variant", *columns, text=["quality", "speed"]),
        rows=tuple(_variant(row, device, divergence) for row in report.rows),
        sortable=True,
    )


def wording_of(domain: str) -> str:
    """A domain's name, safe."""
    return named(domain).text


def _variant(row: Row, device: bool, divergence: bool) -> tuple[Cell, ...]:
    bpw = wording.ABSENT if row.bpw is None else f"{row.bpw:.1f}{' !' if row.mismatch else ''}"
    ratio = 1.0 if row.reference else row.speedup.ratio if row.speedup else None
    return (
        named(row.variant, wording_of(row.backend)),
        verdict_cell(row.quality),
        verdict_cell(row.speed),
        number(row.size_bytes, wording.size(row.size_bytes)),
        number(row.bpw, bpw),
        number(row.prefill_tok_s, wording.rate(row.prefill_tok_s)),
        number(row.decode_tok_s, wording.rate(row.decode_tok_s)),
        number(ratio, speedup(row)),
        number(row.ttft_s, wording.duration(row.ttft_s)),
        number(row.peak_rss_bytes, wording.size(row.peak_rss_bytes)),
        *([number(row.peak_device_bytes, wording.size(row.peak_device_bytes))] if device else []),
        *([number(row.kld, wording.short_nats(row.kld))] if divergence else []),
        *(number(score.score, wording.score(score.score)) for score in row.scores),
        number(_ungraded(row), ungraded(row)),
    )


def _ungraded(row: Row) -> float | None:
    return sum(score.ungraded for score in row.scores) if any(score.cases for score in row.scores) else None


def costs_sheet(report: Report) -> Sheet | None:
    """What each variant costs against the reference; None where that is not known, as in a run that asked for no answers."""
    if not any(loss.budget or (loss.value is not None and loss.metric in _COSTS) for loss in report.losses):
        return None
    variants = dict.fromkeys(loss.variant for loss in report.losses)
    rows = tuple(_cost(name, {(x.metric, x.scope): x for x in report.losses if x.variant == name}) for name in variants)
    columns = ("lost", "gained", "net loss", "95 %", "answer length", "budget")
    return Sheet(
        caption=f"Against {wording_of(report.reference) if report.reference else 'the reference of the stored trace'}",
        heads=heads("variant", *columns, text=["budget"]),
        rows=rows,
        stacked=True,
    )


def _cost(name: str, losses: dict[tuple[str, str], Loss]) -> tuple[Cell, ...]:
    score, length = losses.get(("score", ALL)), losses.get(("output_tokens", ALL))
    known = score is not None and score.value is not None
    budgets = [loss for loss in losses.values() if loss.budget is not None]
    said_of: dict[str, list[str]] = {}
    for loss in budgets:
        where = "" if loss.scope == ALL else f" ({wording_of(loss.scope)})"
        said_of.setdefault(loss.answer, []).append(f"{wording.metric_name(loss.metric)}{where}")
    order = [word for word in _WORST_FIRST if word in said_of]
    return (
        named(name),
        number(score.lost, str(score.lost)) if score and known else Cell(text=wording.ABSENT),
        number(score.gained, str(score.gained)) if score and known else Cell(text=wording.ABSENT),
        number(score.value, _points(score.value)) if score and score.value is not None else Cell(text=wording.ABSENT),
        Cell(text=bounds(score.interval if score else None, _points)),
        Cell(text=f"{length.value:.2f}×" if length and length.value is not None else wording.ABSENT),
        said("; ".join(f"{word}: {wording.listed(said_of[word])}" for word in order) or "no budget"),
    )


def _points(share: float) -> str:
    return f"{100 * share + 0.0:.1f}".replace("-", "−")


def open_costs(report: Report) -> tuple[str, ...]:
    """The sentences of budgets that are broken or cannot be told."""
    told = [x for x in report.losses if x.budget is not None and x.answer in ("over budget", "cannot tell")]
    told.sort(key=lambda loss: loss.answer != "over budget")
    return tuple(f"{loss.answer.upper()}: {named(loss.sentence).text}" for loss in told)


def compared_sheet(report: Report) -> tuple[Sheet | None, int]:
    """Every comparison that was judged, worst first, and how many had no room."""
    judged = report.compared
    if not judged:
        return None, 0
    columns = [
        "metric",
        "scope",
        "baseline",
        "now",
        "drift",
        "95 % of the drift",
        "tolerance",
        "could have seen",
        "gate",
    ]
    shown = judged[:_MOST_COMPARED]
    sheet = Sheet(
        caption="Everything that was compared",
        heads=(*heads("variant", *columns, text=["metric", "scope", "gate"]), Head(text="verdict", number=False)),
        rows=tuple(_compared(finding) for finding in shown),
        sortable=True,
    )
    return sheet, len(judged) - len(shown)


def _compared(finding: Finding) -> tuple[Cell, ...]:
    comparison = finding.comparison
    interval = wording.bare_interval(comparison)
    seen = (
        wording.detectable(comparison).removeprefix("could have seen ")
        if comparison.mde is not None
        else wording.ABSENT
    )
    return (
        named(finding.variant),
        said(wording.metric_name(finding.metric)),
        said(finding.scope),
        number(comparison.baseline, wording.value(finding.metric, comparison.baseline)),
        number(comparison.observed, wording.value(finding.metric, comparison.observed)),
        number(comparison.drift, wording.drift(comparison)),
        Cell(text=interval or wording.ABSENT),
        Cell(text=wording.tolerance(finding.tolerance, comparison)),
        number(comparison.mde, seen),
        said(str(finding.gate)),
        verdict_cell(finding.verdict),
    )
