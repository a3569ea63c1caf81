"""``report.md``: the report for a pull request, a step summary or an archive. Model output is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from suite.records import Finding, Verdict
from suite.reporting import wording
from suite.reporting.doctor import doctor_markdown
from suite.reporting.fidelity import fidelity_markdown
from suite.reporting.folding import Group
from suite.reporting.hostile import cut, markdown, markdown_code, one_line, plain
from suite.reporting.layout import speedup, ungraded
from suite.reporting.limits import limits_markdown
from suite.reporting.losses import loss_markdown
from suite.reporting.model import Report, Row
from suite.reporting.scenarios import scenario_markdown
from suite.reporting.servers import servers_markdown

_MOST_FINDINGS = 200
_MOST_FLIPS = 100
_ANSWER = 200


def render(report: Report) -> str:
    """The whole report as one Markdown document, ending in a line feed."""
    return "\n".join(_document(report)) + "\n"


def _document(report: Report) -> Iterator[str]:
    yield f"# {markdown(report.model)}: {markdown(report.headline)}"
    yield ""
    yield (
        f"{wording.counted(report.totals.variants, 'variant')}, {wording.counted(report.totals.cases, 'case')}, "
        f"machine {markdown_code(report.machine)}, run {markdown_code(report.run)} of {markdown(report.created)}, "
        f"quantdrift {markdown(report.suite_version)}."
    )
    yield ""
    yield from (f"> {markdown(note)}\n" for note in report.notes)
    yield from _table(report)
    yield from _remarks(report)
    yield from _groups(report)
    if report.scenarios:
        yield scenario_markdown(report.scenarios)
    if report.losses:
        yield loss_markdown(report.losses, reference=report.reference)
    if report.fidelity:
        yield fidelity_markdown(report.fidelity, report.domains)
    yield from doctor_markdown(report.doctor)
    limits = limits_markdown(report.limits)
    if limits:
        yield limits
    yield from servers_markdown(report.servers)
    yield from _judged(report)
    yield from _answers(report)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# ------------------------------------------------------------------------------------------------------ the table


def _table(report: Report) -> Iterator[str]:
    device = any(row.peak_device_bytes is not None for row in report.rows)
    fidelity = any(row.kld is not None for row in report.rows)
    domains = [markdown(domain) for domain in report.domains]
    numbers = ["size", "bpw", "prefill tok/s", "decode tok/s", "speed-up", "TTFT", "peak RSS"]
    numbers += [*(["peak device memory"] if device else []), *(["KLD"] if fidelity else []), *domains, "ungraded"]
    yield _row(["variant", *numbers, "quality", "speed"])
    yield _row(["---", *("---:" for _ in numbers), "---", "---"])
    for row in report.rows:
        yield _row(_cells(row, device, fidelity))
    yield ""


def _cells(row: Row, device: bool, fidelity: bool) -> list[str]:
    return [
        markdown_code(row.variant),
        wording.size(row.size_bytes),
        wording.ABSENT if row.bpw is None else f"{row.bpw:.2f}",
        wording.rate(row.prefill_tok_s),
        wording.rate(row.decode_tok_s),
        speedup(row),
        wording.duration(row.ttft_s),
        wording.size(row.peak_rss_bytes),
        *([wording.size(row.peak_device_bytes)] if device else []),
        *([wording.nats(row.kld)] if fidelity else []),
        *(wording.score(score.score) for score in row.scores),
        ungraded(row),
        _emphasized(row.quality),
        _emphasized(row.speed),
    ]


def _emphasized(verdict: Verdict) -> str:
    word = str(verdict).replace("_", "\\_")
    return word if verdict is Verdict.PASS else f"**{word}**"


def _remarks(report: Report) -> Iterator[str]:
    remarks = [f"Speeds are those of scenario {markdown_code(report.scenario)}."] if report.scenario else []
    remarks += [f"{markdown_code(row.variant)}: {markdown(row.mismatch)}" for row in report.rows if row.mismatch]
    remarks += [markdown(sentence) for sentence in (*report.unmeasured, *report.remarks)]
    for row in report.rows:
        for score in row.scores:
            if score.ungraded:
                remarks.append(
                    f"{markdown_code(row.variant)}, {markdown(score.domain)}: of {score.cases} answers "
                    f"{score.truncated} truncated, {score.empty} empty, {score.unparsable} unparsable, "
                    f"{score.errors} lost; they earn no credit."
                )
    yield from (f"- {remark}" for remark in remarks)
    yield from [""] if remarks else []


# ----------------------------------------------------------------------------------------------- what is not PASS


def _groups(report: Report) -> Iterator[str]:
    if not report.groups:
        return
    yield "## What is not PASS"
    yield ""
    for group in report.groups:
        yield from _group(group)


def _group(group: Group) -> Iterator[str]:
    yield f"### {markdown(group.title)}"
    yield ""
    for point in group.points:
        yield f"- {markdown(point.text)}"
    if group.suspects:
        yield f"- changed since the baseline: {'; '.join(markdown_code(suspect) for suspect in group.suspects)}"
    yield ""
    commands = [line.strip() for step in group.next_steps for line in plain(step).splitlines() if line.strip()]
    yield from _block("Next:", commands)
    yield from _block("The end of its standard error:", plain(group.detail).splitlines())


def _block(title: str, lines: list[str]) -> Iterator[str]:
    """An indented code block: nothing inside can end it, unlike a fence."""
    if lines:
        yield title
        yield ""
        yield from (f"    {line}" for line in lines)
        yield ""


# ------------------------------------------------------------------------------------------ numbers and answers


def _judged(report: Report) -> Iterator[str]:
    judged = report.compared
    if not judged:
        return
    yield "## What was compared"
    yield ""
    heads = [
        "variant",
        "metric",
        "scope",
        "baseline",
        "now",
        "drift",
        "95 % of the drift",
        "tolerance",
        "could have seen",
        "p (needed)",
        "tier",
        "gate",
    ]
    yield _row([*heads, "verdict"])
    yield _row("---" for _ in [*heads, "verdict"])
    yield from (_finding(finding) for finding in judged[:_MOST_FINDINGS])
    if len(judged) > _MOST_FINDINGS:
        yield ""
        yield f"{len(judged) - _MOST_FINDINGS} more are in run.json."
    yield ""


def _finding(finding: Finding) -> str:
    comparison = finding.comparison
    interval = wording.bare_interval(comparison)
    return _row(
        [
            markdown_code(finding.variant),
            wording.metric_name(finding.metric),
            markdown(finding.scope),
            wording.value(finding.metric, comparison.baseline),
            wording.value(finding.metric, comparison.observed),
            wording.drift(comparison),
            interval or wording.ABSENT,
            wording.tolerance(finding.tolerance, comparison),
            wording.detectable(comparison).removeprefix("could have seen ") if comparison.mde is not None else "–",
            _test(finding),
            str(comparison.tier),
            str(finding.gate),
            _emphasized(finding.verdict),
        ]
    )


def _test(finding: Finding) -> str:
    if finding.p_value is None or finding.p_needed is None:
        return wording.ABSENT
    return f"{finding.p_value:.2g} (≤ {finding.p_needed:.2g})"


def _answers(report: Report) -> Iterator[str]:
    found = {(f.variant, flip.case): flip for f in report.findings for flip in f.comparison.flips}
    if not found:
        return
    yield "## Flipped answers"
    yield ""
    yield _row(["variant", "case", "was", "now", ""])
    yield _row("---" for _ in range(5))
    chosen = sorted(found.items(), key=lambda item: (item[1].is_correct, item[0]))
    for (variant, case), flip in chosen[:_MOST_FLIPS]:
        became = "now right" if flip.is_correct else "now wrong"
        yield _row([markdown_code(variant), markdown_code(case), _answer(flip.was), _answer(flip.now), became])
    if len(chosen) > _MOST_FLIPS:
        yield ""
        yield f"{len(chosen) - _MOST_FLIPS} more are in run.json."
    yield ""


def _answer(text: str | None) -> str:
    return "no answer" if text is None else markdown_code(cut(one_line(text), _ANSWER))
