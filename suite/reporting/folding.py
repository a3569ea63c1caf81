"""Order findings worst first, and fold them into the few groups that a person can read.

A first run has forty gates without a baseline, and a crashed worker fails all gates of its variant: each is told once,
with a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from suite.gate.failing import is_accepted
from suite.records import VERDICTS_WORST_FIRST, Aspect, Finding, Flip, Gate, VariantResult, Verdict
from suite.reporting.hostile import one_line, plain
from suite.reporting.wording import counted, listed, metric_name

_SHOWN = (
    Verdict.ERROR,
    Verdict.INVALID,
    Verdict.REGRESSED,
    Verdict.IMPROVED,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_COMPARABLE,
    Verdict.UNBASELINED,
    Verdict.NOT_MEASURED,
)
"""The order of the groups: IMPROVED is loud, so it stands before what merely could not be told."""

_DETAILED = frozenset({Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE})
"""Told finding by finding; all others have the same reason for many gates."""

_DOUBT = ", cannot tell: "
"""What stands before the reason in a sentence."""

_MOST_REASONS = 6
"""Of one verdict, that are told apart whatever the number of variants."""

_NAMED = 2
"""How many gates with one reason are told apart; more are only counted."""

_GATES = tuple(Gate)
_ASPECTS = tuple(Aspect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line of a group."""

    metric: str | None
    """None when the line speaks of all gates of the group."""
    scope: str | None
    text: str
    """A whole sentence without the variant, which the title of the group names."""
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One line of a next step, safe to show as it is but for markup."""

    text: str
    is_command: bool
    """Whether it is to be copied: it stands behind one that ends in a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Findings that are told together: one variant's, or many variants' with one reason."""

    verdict: Verdict
    variants: tuple[str, ...]
    gates: int
    points: tuple[Point, ...]
    suspects: tuple[str, ...] = ()
    flips: tuple[Flip, ...] = ()
    next_steps: tuple[str, ...] = ()
    detail: str = ""
    """Several lines: the tail of a worker's stderr."""
    accepted: bool = False
    """Whether the update of this run takes it as the new normal, so that there is no next step."""

    @property
    def title(self) -> str:
        """``q4_k_m is REGRESSED``; ``fp16, int8 are UNBASELINED (16 gates)``."""
        names = listed(self.variants, limit=8)
        title = f"{names} {'is' if len(self.variants) == 1 else 'are'} {self.verdict}"
        title += ", being accepted" if self.accepted else ""
        return title if self.verdict in _DETAILED or not self.gates else f"{title} ({counted(self.gates, 'gate')})"


def step_lines(step: str) -> list[StepLine]:
    """What a next step says, line by line."""
    lines = [one_line(line) for line in plain(step).splitlines() if line.strip()]
    return [
        StepLine(text=line, is_command=before.endswith(":")) for before, line in zip(["", *lines], lines, strict=False)
    ]


def worst_first(findings: Sequence[Finding], order: Sequence[str]) -> tuple[Finding, ...]:
    """Findings by verdict, then what fails before what warns, then variants in the order of the matrix."""
    rank = {variant: position for position, variant in enumerate(order)}

    def key(finding: Finding) -> tuple[int, int, int, int, str, str]:
        return (
            VERDICTS_WORST_FIRST.index(finding.verdict),
            _GATES.index(finding.gate),
            rank.get(finding.variant, len(rank)),
            _ASPECTS.index(finding.comparison.aspect),
            finding.metric,
            finding.scope,
        )

    return tuple(sorted(findings, key=key))


def is_gate(finding: Finding) -> bool:
    """Whether a finding can fail or warn; those that only inform are in the tables alone."""
    return finding.gate is not Gate.INFO


def fold(findings: Sequence[Finding], results: Sequence[VariantResult], update: str | None = None) -> tuple[Group, ...]:
    """Groups of every gate that is not PASS, in the order in which they are shown; `update` is the mode of the run's."""
    failed = {result.variant.name: result.failure for result in results if result.failure}
    groups: list[Group] = []
    for verdict in _SHOWN:
        mine = [finding for finding in findings if finding.verdict is verdict and is_gate(finding)]
        if verdict in _DETAILED:
            groups.extend(_mark_accepted(_by_variant(verdict, mine), mine, update))
            continue
        reasons = {name: failure.reason for name, failure in failed.items() if failure.verdict is verdict}
        details = {name: failure.detail for name, failure in failed.items() if failure.verdict is verdict}
        groups.extend(_by_reason(verdict, mine, reasons, details))
    return tuple(_without_names(group) if len(group.variants) == len(results) else group for group in groups)


def _mark_accepted(groups: list[Group], findings: Sequence[Finding], update: str | None) -> list[Group]:
    """Groups of one verdict, which an update takes or leaves whole; one that is taken needs no next step."""
    if not findings or not all(is_accepted(finding, update) for finding in findings):
        return groups
    return [replace(group, accepted=True, next_steps=()) for group in groups]


def _without_names(group: Group) -> Group:
    """A group of all variants: its next step need not name them."""
    names = f" --matrix-variants {','.join(group.variants)}"
    return replace(group, next_steps=tuple(step.replace(names, "") for step in group.next_steps))


def _by_variant(verdict: Verdict, findings: Sequence[Finding]) -> list[Group]:
    variants = dict.fromkeys(finding.variant for finding in findings)
    return [_detailed(verdict, name, [f for f in findings if f.variant == name]) for name in variants]


def _detailed(verdict: Verdict, variant: str, findings: Sequence[Finding]) -> Group:
    texts = _told_once([finding.sentence.removeprefix(f"{variant}: ") for finding in findings])
    points = tuple(
        Point(metric=f.metric, scope=f.scope, text=text, gate=f.gate) for f, text in zip(findings, texts, strict=True)
    )
    flips = {flip.case: flip for finding in findings for flip in finding.comparison.flips}
    return Group(
        verdict=verdict,
        variants=(variant,),
        gates=len(findings),
        points=points,
        suspects=_unique(suspect for f in findings for suspect in f.comparison.suspects),
        flips=tuple(sorted(flips.values(), key=lambda flip: (flip.is_correct, flip.case))),
        next_steps=_unique(finding.next_step for finding in findings),
    )


def _told_once(sentences: Sequence[str]) -> list[str]:
    """Why something cannot be told is not said again right behind a sentence that says it."""
    before, shortened = "", []
    for sentence in sentences:
        said, mark, why = sentence.partition(_DOUBT)
        shortened.append(f"{said}, cannot tell for the same reason" if mark and why == before else sentence)
        before = why
    return shortened


def _by_reason(
    verdict: Verdict, findings: Sequence[Finding], reasons: dict[str, str], details: dict[str, str]
) -> list[Group]:
    """One group for each reason; a variant's own failure is the reason of all its gates.

    When gates give more reasons than anybody reads, the first reason of each variant has to do for all of its.
    """
    told = {id(f): reasons.get(f.variant) or f.comparison.reason or f.sentence for f in findings}
    variants = dict.fromkeys([*(f.variant for f in findings), *reasons])
    if len(set(told.values())) > max(len(variants), _MOST_REASONS):
        of_each = {name: dict.fromkeys(told[id(f)] for f in findings if f.variant == name) for name in variants}
        first = {
            name: f"{next(iter(own))}{', or another reason' if len(own) > 1 else ''}"
            for name, own in of_each.items()
            if own
        }
        told = {id(f): first[f.variant] for f in findings}
    members: dict[str, tuple[dict[str, None], list[Finding]]] = {}
    for finding in findings:
        names, group = members.setdefault(told[id(finding)], ({}, []))
        names[finding.variant] = None
        group.append(finding)
    for name, reason in reasons.items():
        members.setdefault(reason, ({}, []))[0][name] = None
    return [
        _reasoned(verdict, tuple(names), reason, group, next((details[n] for n in names if details.get(n)), ""))
        for reason, (names, group) in members.items()
    ]


def _reasoned(
    verdict: Verdict, variants: tuple[str, ...], reason: str, findings: Sequence[Finding], detail: str
) -> Group:
    steps = _unique(_for_all(finding, variants) for finding in findings)
    what = list(dict.fromkeys((finding.metric, finding.scope) for finding in findings))
    named = [Point(metric=m, scope=s, text=f"{metric_name(m)} ({s}): {reason}", gate=Gate.BLOCK) for m, s in what]
    whole = Point(metric=None, scope=None, text=reason, gate=Gate.BLOCK)
    return Group(
        verdict=verdict,
        variants=variants,
        gates=len(findings),
        points=tuple(named) if 0 < len(named) <= _NAMED else (whole,),
        next_steps=steps[:1],
        detail=detail,
    )


def _for_all(finding: Finding, variants: Sequence[str]) -> str:
    """The next step of one variant's finding, for all variants of the group: names are separated by commas."""
    one = f"--matrix-variants {finding.variant}"
    return finding.next_step.replace(one, f"--matrix-variants {','.join(variants)}")


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
