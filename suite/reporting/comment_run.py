"""A comment about a run that a stranger may have written. See `suite.reporting.comment`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from suite.metrics.catalog import SPECS
from suite.records import Finding, Flip, Run, Verdict
from suite.reporting import wording
from suite.reporting.folding import Group, is_gate
from suite.reporting.hostile import inert_code
from suite.reporting.model import Report, Row, build_report
from suite.reporting.wording import ABSENT, counted

_NAMES = {
    "run": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"),
    "time": re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.+Z-]{5,30}"),
    "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!-]{0,49}"),
    "model": re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}"),
    "machine": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"),
    "variant": re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}(@old)?"),
    "metric": re.compile(r"[a-z][a-z0-9_]{0,63}"),
}
_COMMIT = re.compile(r"[0-9a-f]{7}")
_RULES = ("strict", "require baselines", "quick")
"""Settings of the run that decide what fails. That it accepted something is left out: a stranger does not accept."""
_MOST_VARIANTS, _MOST_FINDINGS, _MOST_FLIPS, _MOST_DOMAINS, _MOST_POINTS = 100, 100, 50, 8, 20
_NAME, _TEXT, _ANSWER = 80, 300, 160

CAUTION = (
    "<sub>Numbers and verdicts are as the job that measured reported them. `Code` is quoted as it came; commands are left "
    "out.</sub>"
)


def name_faults(run: Run) -> Iterator[str]:
    """What is named as nothing of ours is."""
    told: list[tuple[str, str]] = [
        ("run", run.id), ("time", run.created), ("version", run.suite_version), ("model", run.model),
        ("machine", run.environment.machine),
    ]  # fmt: skip
    for result in (*run.variants, *run.against):
        told.append(("variant", result.variant.name))
        told += [("metric", measured.metric) for measured in result.measurements]
    for finding in run.findings:
        told += [("variant", finding.variant), ("metric", finding.metric)]
    yield from misnamed(told)
    if len(run.variants) > _MOST_VARIANTS:
        yield f"has {len(run.variants)} variants, and at most {_MOST_VARIANTS} are shown"


def misnamed(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Of pairs of what is named and its name, a sentence for each name that is none."""
    yield from (f"{name[:100]!r} is no name of a {what}" for what, name in told if not _NAMES[what].fullmatch(name))


def comment_on_run(run: Run) -> Iterator[str]:
    """Lines of Markdown, built from numbers; every name and text of the run is inert code."""
    report = build_report(_without_samples(run))
    yield f"### {_headline(report)}"
    yield ""
    yield " ".join(_blamed(report))
    yield ""
    yield from (f"> {inert_code(note, _TEXT)}\n" for note in report.notes[:3])
    if report.rows:
        yield from _variants(report)
    yield from _remarks(run, report)
    yield from _findings(report)
    yield from _reasons(report)
    yield from _flips(report)
    yield CAUTION


def _without_samples(run: Run) -> Run:
    """The run without what numbers are computed from: nothing is computed from a stranger's, they are shown as they are."""
    variants = tuple(
        replace(
            result,
            measurements=tuple(replace(m, samples=(), launches=()) for m in result.measurements),
            launches=(),
            suspects={},
        )
        for result in run.variants
    )
    kept = {name: value for name, value in run.settings.items() if name in _RULES}
    return replace(run, variants=variants, settings=kept, forced=(), losses=(), creep=(), speed_samples=())


def _headline(report: Report) -> str:
    """What failed, or how much held, in our own words."""
    totals, broken = report.totals, sum(row.failure is not None for row in report.rows)
    if totals.failed:
        return f"{totals.failed} of {counted(totals.gates, 'gate')} failed"
    if broken:
        return f"{counted(broken, 'variant')} could not be measured"
    if totals.errors:
        return f"{counted(totals.errors, 'answer')} ended in {'an error' if totals.errors == 1 else 'errors'}"
    if not totals.gates:
        return "Nothing was judged: the run has no gates"
    held = totals.verdicts.get(Verdict.PASS, 0) + totals.verdicts.get(Verdict.IMPROVED, 0)
    if held == totals.gates:
        return f"All {totals.gates} gates held" if held > 1 else "The one gate held"
    return f"Nothing failed, but only {held} of {counted(totals.gates, 'gate')} held"


def _blamed(report: Report) -> Iterator[str]:
    """What it was, then each verdict that is not PASS with its variants."""
    totals = report.totals
    yield (
        f"{inert_code(report.model, _NAME)} on {inert_code(report.machine, _NAME)}: {counted(totals.variants, 'variant')}, "
        f"{counted(totals.cases, 'case')}, {counted(totals.trials, 'answer')}; run {inert_code(report.run, 100)}."
    )
    named: dict[Verdict, dict[str, None]] = {}
    for group in report.groups:
        named.setdefault(group.verdict, {}).update(dict.fromkeys(group.variants))
    for verdict, variants in named.items():
        told = [inert_code(name, _NAME) for name in variants]
        yield f"{_word(verdict)}: {wording.listed(told, 8)}."


# ------------------------------------------------------------------------------------------------------- the tables


def _variants(report: Report) -> Iterator[str]:
    domains = report.domains[:_MOST_DOMAINS]
    heads = ["variant", "decode tok/s", "speed-up", "peak RSS", "KLD", *(inert_code(name, 40) for name in domains)]
    yield _line([*heads, "quality", "speed"])
    yield _line(["---", *("---:" for _ in heads[1:]), "---", "---"])
    yield from (_line(_variant(row, len(domains))) for row in report.rows)
    yield ""


def _variant(row: Row, domains: int) -> list[str]:
    speedup = f"{row.speedup.ratio:.2f}×" if row.speedup else ABSENT
    return [
        inert_code(row.variant, _NAME),
        number(wording.rate(row.decode_tok_s)),
        "reference" if row.reference else number(speedup),
        number(wording.size(row.peak_rss_bytes)),
        number(wording.nats(row.kld)),
        *(number(wording.score(score.score)) for score in row.scores[:domains]),
        _word(row.quality),
        _word(row.speed),
    ]


def _remarks(run: Run, report: Report) -> Iterator[str]:
    remarks = [f"Speeds are those of scenario {inert_code(report.scenario, _NAME)}."] if report.scenario else []
    if run.settings.get("quick") == "yes":
        remarks.append(
            f"Quick: one scenario, launches of each variant: {number(str(run.matrix.protocol.launches))}; small changes of "
            "speed cannot be seen."
        )
    ungraded = sum(score.ungraded for row in report.rows for score in row.scores)
    if ungraded:
        remarks.append(
            f"{ungraded} of {counted(report.totals.trials, 'answer')} could not be graded, and earn no credit."
        )
    yield from (f"- {remark}" for remark in remarks)
    yield from [""] if remarks else []


def _findings(report: Report) -> Iterator[str]:
    gates = [finding for finding in report.findings if is_gate(finding)]
    compared = [finding for finding in gates if finding.comparison.baseline is not None]
    open_ones = [finding for finding in compared if finding.verdict is not Verdict.PASS]
    if open_ones:
        yield "**Not PASS**"
        yield ""
        yield from _finding_table(open_ones)
    held = [finding for finding in compared if finding.verdict is Verdict.PASS]
    if held:
        yield f"<details><summary>{counted(len(held), 'gate')} held</summary>"
        yield ""
        yield from _finding_table(held)
        yield "</details>"
        yield ""


def _finding_table(findings: Sequence[Finding]) -> Iterator[str]:
    heads = ["variant", "metric", "scope", "baseline", "now", "drift", "95 % of the drift", "tolerance", "verdict"]
    yield _line(heads)
    yield _line("---" for _ in heads)
    yield from (_line(_finding(finding)) for finding in findings[:_MOST_FINDINGS])
    yield ""
    if len(findings) > _MOST_FINDINGS:
        yield f"{len(findings) - _MOST_FINDINGS} more are in run.json."
        yield ""


def _finding(finding: Finding) -> list[str]:
    comparison = finding.comparison
    interval = wording.bare_interval(comparison)
    warns = "" if finding.gate == "block" else f" ({finding.gate}s)"
    return [
        inert_code(finding.variant, _NAME),
        metric(finding.metric),
        inert_code(finding.scope, _NAME),
        number(wording.value(finding.metric, comparison.baseline)),
        number(wording.value(finding.metric, comparison.observed)),
        number(wording.drift(comparison)),
        number(interval or ABSENT),
        number(wording.tolerance(finding.tolerance, comparison)),
        f"{_word(finding.verdict)}{warns}",
    ]


def _reasons(report: Report) -> Iterator[str]:
    """Why gates have nothing to compare, and what changed since the baseline: free text, so quoted."""
    points = [point for group in report.groups for point in _points(group)]
    yield from (f"- {point}" for point in points[:_MOST_POINTS])
    if len(points) > _MOST_POINTS:
        yield f"- and {len(points) - _MOST_POINTS} more in run.json"
    yield from [""] if points else []


def _points(group: Group) -> Iterator[str]:
    told = wording.listed([inert_code(name, _NAME) for name in group.variants], 8)
    if group.verdict not in (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE):
        yield from (f"{told} {_word(group.verdict)}: {inert_code(point.text, _TEXT)}" for point in group.points)
    if group.suspects:
        suspects = wording.listed([inert_code(suspect, _ANSWER) for suspect in group.suspects], 6)
        yield f"changed since the baseline of {told}: {suspects}"


def _flips(report: Report) -> Iterator[str]:
    found = {(f.variant, flip.case): flip for f in report.findings for flip in f.comparison.flips}
    if found:
        lost = sum(flip.was_correct for flip in found.values())
        yield from flip_details([(variant, flip) for (variant, _), flip in found.items()], lost)


def flip_details(flips: Sequence[tuple[str, Flip]], lost: int) -> Iterator[str]:
    """A folded table of flipped answers, those that were lost first; `lost` of all of them were."""
    yield f"<details><summary>{counted(len(flips), 'answer')} flipped, {lost} to wrong</summary>"
    yield ""
    yield _line(["variant", "case", "was", "now", ""])
    yield _line("---" for _ in range(5))
    for variant, flip in sorted(flips, key=lambda item: (item[1].is_correct, item[0], item[1].case))[:_MOST_FLIPS]:
        became = "now right" if flip.is_correct else "now wrong"
        yield _line(
            [inert_code(variant, _NAME), inert_code(flip.case, _NAME), _answer(flip.was), _answer(flip.now), became]
        )
    yield ""
    if len(flips) > _MOST_FLIPS:
        yield f"{len(flips) - _MOST_FLIPS} more are in the JSON."
        yield ""
    yield "</details>"
    yield ""


def number(text: str) -> str:
    """A number as we word it; one of so many digits that GitHub could take it for a commit is code."""
    return inert_code(text, _TEXT) if _COMMIT.search(text) else text


def metric(name: str) -> str:
    """Our name for a metric of ours; one that is not known stays code."""
    return wording.metric_name(name) if name in SPECS else inert_code(name, _NAME)


def _answer(text: str | None) -> str:
    return "no answer" if text is None else inert_code(text, _ANSWER)


def _word(verdict: Verdict) -> str:
    word = str(verdict).replace("_", "\\_")
    return word if verdict is Verdict.PASS else f"**{word}**"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
