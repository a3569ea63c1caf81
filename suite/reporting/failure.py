"""One screen for a gate that fails: the message of its pytest item."""

from __future__ import annotations

from collections.abc import Iterator

from suite.gate.decide import is_estimated
from suite.metrics.kinds import HELD_TO_NONE
from suite.records import Aspect, Comparison, Finding, Flip, Scenario, Tier, Verdict
from suite.reporting import wording
from suite.reporting.hostile import apart, one_line, quoted, wrapped

_WIDTH = 100
_LABEL = 11
_ANSWER = 60
_MOST_FLIPS = 12
_TIERS = {
    Tier.STORED: "stored (the accepted baseline)",
    Tier.DUET: "duet (side by side in this run)",
    Tier.FOREIGN: "foreign (another machine: never a failure)",
    Tier.NONE: "none (nothing to compare with)",
}


def explain(finding: Finding, *, scenario: Scenario | None = None) -> str:
    """What was compared, by how much it drifted, what to suspect and what to do, as one screen of text.

    `scenario` adds its token counts. Text from models and libraries is made safe for a terminal.
    """
    return "\n".join(_screen(finding, scenario))


def _screen(finding: Finding, scenario: Scenario | None) -> Iterator[str]:
    yield from wrapped(f"{finding.verdict}: {one_line(finding.sentence)}", _WIDTH, rest="  ")
    yield ""
    yield f"  {_subject(finding, scenario)}"
    yield from _numbers(finding)
    comparison = finding.comparison
    if comparison.reason and comparison.reason != finding.sentence:
        yield _line("reason", one_line(comparison.reason))
    if comparison.contended:
        yield _line("contended", one_line(comparison.contended))
    for flag in comparison.flags:
        yield _line("flag", one_line(flag))
    if comparison.unsteady:
        yield _line("left out", f"answers differ from one run to the next: {wording.listed(comparison.unsteady)}")
    threads = tuple(case for case in comparison.left_out if case not in comparison.unsteady)
    if threads:
        yield _line("left out", f"answers depend on the number of threads: {wording.listed(threads)}")
    yield from _suspects(finding)
    yield from _flips(comparison.flips)
    steps = [one_line(step) for step in finding.next_step.splitlines() if step.strip()]
    for number, step in enumerate(steps):
        yield _line("" if number else "next", step)


def _subject(finding: Finding, scenario: Scenario | None) -> str:
    parts = [one_line(finding.variant), wording.metric_name(finding.metric)]
    if scenario is not None:
        parts.append(f"scenario {one_line(scenario.name)} ({scenario.described})")
    elif finding.scope != "all":
        parts.append(f"{_kind(finding)} {one_line(finding.scope)}")
    return " · ".join(parts)


def _kind(finding: Finding) -> str:
    """What the scope of a finding is; the id of a case holds a slash."""
    if finding.comparison.aspect is not Aspect.QUALITY:
        return "scenario"
    return "case" if "/" in finding.scope else "domain"


def _numbers(finding: Finding) -> Iterator[str]:
    comparison = finding.comparison
    unit = "paired case" if comparison.aspect is Aspect.QUALITY else "launch"
    counted = wording.counted(comparison.n, unit) if unit != "launch" else _launches(comparison.n)
    if comparison.baseline is not None and finding.metric not in HELD_TO_NONE:
        launches = f"({_launches(comparison.n_baseline)})" if comparison.n_baseline else ""
        accepted = f"{one_line(comparison.accepted)} {launches}".strip()
        yield _line("baseline", wording.value(finding.metric, comparison.baseline), accepted)
    if comparison.observed is not None:
        yield _line("now", wording.value(finding.metric, comparison.observed), counted if comparison.n else "")
    if comparison.drift is not None:
        yield _line("drift", wording.drift(comparison), wording.drift_interval(comparison))
        tolerance = wording.tolerance(finding.tolerance, comparison)
        yield _line("tolerance", tolerance, wording.detectable(comparison))
        if test := wording.tested(finding):
            yield _line("test", f"{_null(comparison)}: {test}")
        yield _line("tier", _TIERS[comparison.tier])


def _null(comparison: Comparison) -> str:
    """What the test holds against chance, in words."""
    if comparison.aspect is Aspect.QUALITY and not is_estimated(comparison):
        return "exact, one-sided, of no loss"
    return "t, one-sided, of no more than the tolerance"


def _launches(number: int) -> str:
    return f"{number} launch" if number == 1 else f"{number} launches"


def _suspects(finding: Finding) -> Iterator[str]:
    suspects = [one_line(suspect) for suspect in finding.comparison.suspects]
    if not suspects and finding.verdict is Verdict.REGRESSED and finding.metric not in HELD_TO_NONE:
        suspects = ["nothing that is recorded changed since the baseline"]
    for number, suspect in enumerate(suspects):
        yield _line("" if number else "suspects", suspect)


def _flips(flips: tuple[Flip, ...]) -> Iterator[str]:
    """Flipped cases, lost ones first, with both answers."""
    chosen = sorted(flips, key=lambda flip: (flip.is_correct, flip.case))
    for number, flip in enumerate(chosen[:_MOST_FLIPS]):
        became = "now right" if flip.is_correct else "now wrong"
        was, now = apart(flip.was, flip.now, _ANSWER)
        yield _line("" if number else "flips", f"{one_line(flip.case)} is {became}")
        yield _line("", f"  was {quoted(was, _ANSWER)}")
        yield _line("", f"  now {quoted(now, _ANSWER)}")
    if len(chosen) > _MOST_FLIPS:
        yield _line("", f"and {len(chosen) - _MOST_FLIPS} more; all are in run.json and report.md")


def _line(label: str, *parts: str) -> str:
    return f"  {label:<{_LABEL}}{'   '.join(part for part in parts if part)}"
