"""Annotations of a pull request's files: GitHub workflow commands on standard output, at most one a variant.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions; how they are escaped is in `toCommandValue` and
`escapeProperty` of https://github.com/actions/toolkit (packages/core/src/command.ts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suite.gate.failing import is_accepted
from suite.records import Aspect, Finding, Gate, Run, Verdict
from suite.reporting.hostile import cut, one_line, plain
from suite.reporting.model import build_report, find_broken, judge_failing, worst
from suite.reporting.wording import counted, listed

MOST = 10
"""Annotations of one kind that GitHub shows for one step."""

Kind = Literal["error", "warning", "notice"]
Locate = Callable[[str, Aspect], str | None]
"""Variant and aspect → its baseline file below the root of the repository; None where there is none."""

_SENTENCES = 3
_TITLE, _SENTENCE, _FILE = 120, 600, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """What is said of one variant."""

    kind: Kind
    variant: str
    verdict: Verdict
    aspect: Aspect
    lines: tuple[str, ...]


def annotate(run: Run, locate: Locate) -> Iterator[str]:
    """One workflow command a line, the gravest first.

    ``error`` for a variant that fails the run, ``warning`` for one that REGRESSED by a gate that only warns, ``notice`` for one
    that IMPROVED: its baseline is stale. The tenth of a kind names those that follow it, which GitHub would not show.
    """
    found = list(_annotations(run))
    for kind in ("error", "warning", "notice"):
        own = [annotation for annotation in found if annotation.kind == kind]
        for number, annotation in enumerate(own[:MOST], start=1):
            rest = own[MOST:] if number == MOST else []
            yield _command(annotation, rest, locate(annotation.variant, annotation.aspect))


def _annotations(run: Run) -> Iterator[_Annotation]:
    """At most one for each variant, in the order of the run."""
    report = build_report(run)
    failing, _ = judge_failing(run, report.findings)
    broken = {row.variant: row.failure for row in find_broken(run, report.rows) if row.failure}
    for result in run.variants:
        name = result.variant.name
        own = [finding for finding in failing if finding.variant == name]
        if name in broken:
            failure = broken[name]
            step = [finding.next_step for finding in own if finding.next_step][:1]
            verdict, lines = failure.verdict, (failure.reason, *step)
            yield _Annotation(kind="error", variant=name, verdict=verdict, aspect=Aspect.QUALITY, lines=lines)
        elif own:
            yield _of_findings("error", own)
        else:
            yield from _of_held(name, report.findings, run.settings.get("update"))


def _of_held(variant: str, findings: Sequence[Finding], update: str | None) -> Iterator[_Annotation]:
    """What deserves a word although it fails nothing, unless the run's update takes it; the graver of the two."""
    loud: Mapping[Kind, tuple[Verdict, frozenset[Gate]]] = {
        "warning": (Verdict.REGRESSED, frozenset({Gate.WARN})),
        "notice": (Verdict.IMPROVED, frozenset({Gate.BLOCK, Gate.WARN})),
    }
    for kind, (verdict, gates) in loud.items():
        own = [f for f in findings if f.variant == variant and f.verdict is verdict and f.gate in gates]
        own = [finding for finding in own if not is_accepted(finding, update)]
        if own:
            yield _of_findings(kind, own)
            return


def _of_findings(kind: Kind, findings: Sequence[Finding]) -> _Annotation:
    """Of findings of one variant, worst first: the first few sentences, and the first next step."""
    first = findings[0]
    lines = [finding.sentence.removeprefix(f"{first.variant}: ") for finding in findings[:_SENTENCES]]
    if len(findings) > _SENTENCES:
        lines.append(f"and {counted(len(findings) - _SENTENCES, 'gate')} more")
    lines += [finding.next_step for finding in findings if finding.next_step][:1]
    return _Annotation(
        kind=kind,
        variant=first.variant,
        verdict=worst(finding.verdict for finding in findings),
        aspect=first.comparison.aspect,
        lines=tuple(lines),
    )


def _command(annotation: _Annotation, rest: Sequence[_Annotation], file: str | None) -> str:
    properties = {"file": cut(one_line(file), _FILE)} if file else {}
    properties["title"] = one_line(f"{annotation.variant} is {annotation.verdict}", _TITLE)
    told = [text for line in annotation.lines for text in _shortened(line)]
    if rest:
        names = listed([f"{one_line(other.variant)} {other.verdict}" for other in rest], 20)
        told.append(f"and {counted(len(rest), 'more variant')}, which GitHub does not show: {names}")
    return command(annotation.kind, "\n".join(told), properties)


def _shortened(text: str) -> list[str]:
    lines = [one_line(line) for line in plain(text).split("\n")]
    return [cut(line, _SENTENCE) for line in lines if line][:_SENTENCES]


def command(kind: Kind, message: str, properties: Mapping[str, str]) -> str:
    """``::error file=…,title=…::message`` in one line, whatever is in it; only what GitHub decodes again is escaped."""
    told = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    return f"::{kind}{f' {told}' if told else ''}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
