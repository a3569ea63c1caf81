"""How close each variant comes to what its device gave in the same run: the model of it, and its tables. Measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.metrics.limits import MBU, MFU, kv_disagreement, limits_of
from suite.metrics.roofline import Roofline, middle
from suite.metrics.speed import speedup_interval
from suite.records import Limits, Measurement, Run, VariantResult
from suite.reporting import wording
from suite.reporting.hostile import markdown, markdown_code, one_line, wrapped
from suite.reporting.table import Column, fit, padded

NEAR = 0.5
"""Share of a bound that must be reached for it to be what holds a variant up."""
_NOTE = (
    "Bytes a token are the weights that are read for it, and the keys and values that it looks back on, as a mean over the "
    "scenario; the roofline is bandwidth / bytes a token. MBU is the share of the bandwidth that decoding reached, MFU the "
    "share of the arithmetic rate that prefill reached; each launch is held against its own readings, taken between its "
    "samples by as many threads on the same CPUs. Brackets hold 95 %, over launches."
)
Shown = tuple[float, tuple[float, float] | None]
"""A share and its 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """One variant in one scenario."""

    variant: str
    scenario: str
    token_bytes: float
    kv_bytes: float
    """The part of it that is keys and values."""
    bandwidth_bytes_s: float | None
    roofline_tok_s: float | None
    decode_tok_s: float | None
    """None where too few tokens were decoded to tell."""
    mbu: Shown | None
    mfu: Shown | None
    decode_bound: str
    prefill_bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReport:
    """The section: its rows in the order of the run, and what else is to be said."""

    rows: tuple[LimitRow, ...]
    notes: tuple[str, ...]
    """What was not measured and why, and what the rates are of."""
    disagreements: tuple[str, ...]
    """KV caches that are not as large as the shape of their model says."""


def measured_limits(run: Run) -> LimitReport:
    """What bounds each variant of a run; without rows where no device was asked."""
    rows = [row for result in run.variants for row in _rows(result, run)]
    asked = [result for result in run.variants if any(launch.limits for launch in result.launches)]
    notes = tuple(_notes(run, asked)) if asked else ()
    return LimitReport(rows=tuple(rows), notes=notes, disagreements=tuple(_kv_notes(run)))


def _rows(result: VariantResult, run: Run) -> Iterator[LimitRow]:
    found = {(m.metric, m.scope): m for m in result.measurements}
    for limits in limits_of(result, run.speed_samples):
        scope, timed = limits.timed.scenario, limits.timed
        decode, prefill = (_value(found, metric, scope) for metric in ("decode_tok_s", "prefill_tok_s"))
        bandwidth = limits.decode.read_bytes / limits.decode.memory_s if limits.decode.memory_s else None
        yield LimitRow(
            variant=result.variant.name,
            scenario=scope,
            token_bytes=limits.decode.read_bytes,
            kv_bytes=limits.kv_bytes,
            bandwidth_bytes_s=bandwidth,
            roofline_tok_s=limits.roofline_tok_s,
            decode_tok_s=decode if timed.decodes else None,
            mbu=_share(found.get((MBU, scope))),
            mfu=_share(found.get((MFU, scope))),
            decode_bound=_bound(limits.decode, 1 / decode if decode and timed.decodes else None),
            prefill_bound=_bound(limits.prefill, timed.work.evaluated_tokens / prefill if prefill else None),
        )


def _value(found: Mapping[tuple[str, str], Measurement], metric: str, scope: str) -> float | None:
    measured = found.get((metric, scope))
    return measured.value if measured else None


def _share(found: Measurement | None) -> Shown | None:
    return None if found is None or found.value is None else (found.value, speedup_interval(found.samples))


def _bound(best: Roofline, seconds: float | None) -> str:
    """``memory``, ``arithmetic``, or that neither is near: then it is overhead, or kernels that do not use what there is."""
    longer = max(best.memory_s or 0.0, best.arithmetic_s or 0.0)
    if best.bound is None or seconds is None or seconds <= 0:
        return wording.ABSENT
    return best.bound if longer / seconds >= NEAR else f"neither ({best.bound} first)"


def _kv_notes(run: Run) -> Iterator[str]:
    for result in run.variants:
        disagreement = kv_disagreement(run, result.variant.name)
        if disagreement is not None:
            yield disagreement.sentence


def _notes(run: Run, asked: Sequence[VariantResult]) -> Iterator[str]:
    untold = [
        r.variant.name
        for r in run.variants
        if r.launches and (not r.artifact or not r.artifact.demand)
        if not any(launch.limits and launch.limits.reason for launch in r.launches)  # told below
    ]
    if untold:
        yield f"no limits of {wording.listed(untold)}: no header of weights tells what a token reads"
    without = [r.variant.name for r in asked if r.artifact and r.artifact.demand and not r.artifact.demand.kv_known]
    if without:
        yield f"keys and values of {wording.listed(without)} are not counted: its shape is not told, so MBU is a lower bound"
    given = middle(launch.limits for result in asked for launch in result.launches if launch.limits is not None)
    if given is not None and given.flop_s and (given.device or given.flop_type == "declared"):
        yield _tell_rate(given)
    reasons: dict[str, list[str]] = {}
    for result in asked:
        for reason in {launch.limits.reason for launch in result.launches if launch.limits and launch.limits.reason}:
            reasons.setdefault(reason, []).append(result.variant.name)
    yield from (f"{wording.listed(names)}: {reason}" for reason, names in reasons.items())


def _tell_rate(given: Limits) -> str:
    rate = f"{(given.flop_s or 0.0) / 1e9:.3g} GFLOP/s"
    if given.flop_type == "declared":
        return f"MFU is a share of the rate that the matrix file declares, {rate}"
    threads = f", {wording.counted(given.threads, 'thread')}" if given.threads else ""
    return (
        f"MFU is a share of what products of {one_line(given.flop_type)} matrices reached here, {rate} "
        f"({one_line(given.device)}{threads}); kernels of narrower types can go beyond it"
    )


# -------------------------------------------------------------------------------------------- cells and tables


HEADS = (
    "variant",
    "scenario",
    "bytes/token",
    "bandwidth",
    "roofline",
    "reached",
    "MBU (95 %)",
    "MFU (95 %)",
    "decode bound by",
    "prefill bound by",
)
WORDS = frozenset({"variant", "scenario", "decode bound by", "prefill bound by"})
"""Heads of columns that are no numbers."""


def percent(share: Shown | None) -> str:
    """``61 % [58, 64]``, or a dash."""
    if share is None:
        return wording.ABSENT
    value, interval = share
    bounds = f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]" if interval else ""
    return f"{100 * value:.0f} %{bounds}"


def cells(row: LimitRow) -> tuple[str, ...]:
    """One row as text, in the order of `HEADS`; names as they are."""
    return (
        row.variant,
        row.scenario,
        wording.size(row.token_bytes),
        wording.ABSENT if row.bandwidth_bytes_s is None else f"{wording.size(row.bandwidth_bytes_s)}/s",
        wording.rate(row.roofline_tok_s),
        wording.rate(row.decode_tok_s),
        percent(row.mbu),
        percent(row.mfu),
        row.decode_bound,
        row.prefill_bound,
    )


def limits_markdown(report: LimitReport) -> str:
    """A section of a Markdown document; empty when there is nothing to tell."""
    return "\n".join(_section(report)) if report.rows or report.notes or report.disagreements else ""


def _section(report: LimitReport) -> Iterator[str]:
    yield "## Limits"
    yield ""
    if report.rows:
        yield _row(HEADS)
        yield _row("---" if head in WORDS else "---:" for head in HEADS)
        for row in report.rows:
            variant, scenario, *others = cells(row)
            yield _row([markdown_code(variant), markdown(scenario), *others])
        yield ""
        yield _NOTE
        yield ""
    notes = (*report.disagreements, *report.notes)
    yield from (f"- {markdown(note)}" for note in notes)
    yield from [""] if notes else []


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def limits_lines(report: LimitReport, width: int) -> Iterator[str]:
    """The table for a terminal, and its notes; one line that says so when there is nothing."""
    if not report.rows:
        yield from wrapped("no limits: no device was asked what it gives in this run", width, first=" ", rest="   ")
    else:
        columns = list(zip(*(cells(row) for row in report.rows), strict=True))
        fitted = fit(
            [
                Column(heading=head, cells=[one_line(text) for text in column], keep=_KEEP[head], left=head in WORDS)
                for head, column in zip(HEADS, columns, strict=True)
            ],
            width - 1,
        )
        for texts in padded(fitted):
            yield (" " + (" " * fitted.gap).join(texts)).rstrip()
        if fitted.dropped:
            yield from wrapped(f"(no room for: {', '.join(fitted.dropped)})", width, first=" ", rest="  ")
    for note in (*report.disagreements, *report.notes):
        yield from wrapped(one_line(note), width, first=" ", rest="   ")


_KEEP: Mapping[str, int] = {head: rank for rank, head in enumerate((
    "bandwidth", "prefill bound by", "bytes/token", "decode bound by", "MFU (95 %)", "roofline", "reached", "scenario",
    "MBU (95 %)", "variant",
))}  # fmt: skip
"""Importance of each column: where there is no room, the first of these goes first."""


def limits_remarks(report: LimitReport, scenario: str | None) -> tuple[str, ...]:
    """What the end of a run says of it: one sentence on the shares in the scenario of the table, and KV caches that are off."""
    shares = [
        f"{row.variant} {100 * row.mbu[0]:.0f} %"
        for row in report.rows
        if row.scenario == scenario and row.mbu is not None
    ]
    if not shares:
        return report.disagreements
    rates = [row.bandwidth_bytes_s for row in report.rows if row.bandwidth_bytes_s is not None]
    ends = dict.fromkeys(f"{wording.size(rate)}/s" for rate in (min(rates), max(rates))) if rates else {}
    span = " to ".join(ends)
    told = wording.listed(shares, 12)
    where = "all limits: quantdrift report --format limits"
    sentence = f"share of the memory bandwidth ({span}) that decoding reached: {told} ({where})"
    return (sentence, *report.disagreements)
