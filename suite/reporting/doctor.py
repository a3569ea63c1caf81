"""The doctor's check list for people: whole for ``quantdrift doctor``, its findings alone in a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from suite.records import SCHEMA_VERSION, Diagnosis, Health, Run
from suite.reporting.hostile import markdown, markdown_code, one_line, wrapped
from suite.reporting.wording import counted, listed

_MOST_LINES = 5
"""Findings that the end of a run shows: it is about the verdicts."""
_MOST_VARIANTS = 6
_STATUS = 15
_WIDE = 100
"""Columns from which status, title and evidence stand side by side."""
_TITLE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """What was said in the same words of one or several variants."""

    title: str
    variants: tuple[str, ...]
    """Empty for the whole run."""
    status: Health
    evidence: str
    remedy: str


def fold_items(items: Iterable[Diagnosis]) -> tuple[Ailment, ...]:
    """One for each rule, status, evidence and remedy, in order of first appearance, with all its variants."""
    together: dict[tuple[str, Health, str, str], list[Diagnosis]] = {}
    for item in items:
        together.setdefault((item.rule, item.status, item.evidence, item.remedy), []).append(item)
    return tuple(
        Ailment(
            title=same[0].title,
            variants=tuple(item.variant for item in same if item.variant is not None),
            status=same[0].status,
            evidence=same[0].evidence,
            remedy=same[0].remedy,
        )
        for same in together.values()
    )


# ------------------------------------------------------------------------------------------ a section of a report


def doctor_lines(ailments: Sequence[Ailment], width: int) -> Iterator[str]:
    """The section at the end of a run: at most five findings, and where to read the others."""
    if not ailments:
        return
    alike = _alike(ailments)
    found = sum(max(len(one.variants), 1) for one in ailments)
    kinds = f" of {counted(len(alike), 'kind')}" if found > len(alike) else ""
    yield from wrapped(
        f"Doctor: {counted(found, 'finding')}{kinds}, none of which fails the run", width, first=" ", rest="   "
    )
    for same in alike[:_MOST_LINES]:
        yield from wrapped(_sentence(same), width, first="   ", rest="     ")
    more = len(alike) - _MOST_LINES
    yield f"   {f'and {more} more' if more > 0 else 'the whole check list'}: quantdrift doctor"


def _alike(ailments: Iterable[Ailment]) -> list[list[Ailment]]:
    """Those that follow one another and have the same title, status and remedy."""
    return [list(same) for _, same in groupby(ailments, key=lambda one: (one.title, one.status, one.remedy))]


def _sentence(alike: Sequence[Ailment]) -> str:
    """Of those with the same remedy, the evidence of the first."""
    first, names = alike[0], [name for ailment in alike for name in ailment.variants]
    who = f" of {_named(names)}" if names else ""
    example = f", e.g. {_named(first.variants)}" if len(alike) > 1 else ""
    return f"{first.title}{who}{example}: {one_line(first.evidence)} → {one_line(first.remedy)}"


def _named(variants: Sequence[str]) -> str:
    return listed([one_line(name) for name in variants], _MOST_VARIANTS)


def doctor_markdown(ailments: Sequence[Ailment]) -> Iterator[str]:
    """The section of ``report.md``; nothing without findings."""
    if not ailments:
        return
    yield "## Doctor"
    yield ""
    yield "What may make it slow, or not what it seems. It fails no run; `quantdrift doctor` shows the whole check list."
    yield ""
    for ailment in ailments:
        who = f" of {', '.join(markdown_code(name) for name in ailment.variants)}" if ailment.variants else ""
        yield f"- {markdown(ailment.title)}{who}: {markdown(ailment.evidence)} → {markdown(ailment.remedy)}"
    yield ""


# ------------------------------------------------------------------------------------------- the whole check list


def checklist_lines(run: Run, items: Sequence[Diagnosis], *, width: int, everything: bool) -> Iterator[str]:
    """Findings, or all items, for a terminal; then how many of each there are."""
    yield from wrapped(
        f"{one_line(run.model)} · run {one_line(run.id)} · {one_line(run.environment.machine)}", width, first=" "
    )
    yield ""
    last = ("", Health.PASS)
    for same in _alike(_shown(items, everything)):
        yield from _together(same, last, width)
        last = same[0].title, same[0].status
    if last[0]:
        yield ""
    yield from wrapped(_summary(items, everything), width, first=" ", rest="   ")


def _shown(items: Sequence[Diagnosis], everything: bool) -> tuple[Ailment, ...]:
    return fold_items(item for item in items if everything or item.status is Health.FINDING)


def _together(alike: Sequence[Ailment], last: tuple[str, Health], width: int) -> Iterator[str]:
    """Side by side where there is room; a title that the `last` one had is not said again, and the remedy once."""
    title, status = alike[0].title, alike[0].status
    wide = width >= _WIDE
    indent = " " * (1 + _STATUS + 1 + _TITLE + 1 if wide else 3)
    head = f" {status.value:<{_STATUS}} {'' if wide and title == last[0] else title:<{_TITLE}} "
    if not wide and (title, status) != last:
        yield head.rstrip()
    for number, one in enumerate(alike):
        told = f"{_named(one.variants)}: {one_line(one.evidence)}" if one.variants else one_line(one.evidence)
        yield from wrapped(told, width, first=head if wide and not number else indent, rest=indent)
    if alike[0].remedy:
        yield from wrapped(f"→ {one_line(alike[0].remedy)}", width, first=indent, rest=f"{indent}  ")


def _summary(items: Sequence[Diagnosis], everything: bool) -> str:
    counts = Counter(item.status for item in items)
    told = ", ".join(f"{counts[status]} {status}" for status in Health if counts[status]) or "nothing was looked at"
    hidden = not everything and counts.total() > counts[Health.FINDING]
    return f"{told}; --all shows the evidence of all" if hidden else told


def checklist_markdown(run: Run, items: Sequence[Diagnosis], *, everything: bool) -> str:
    """The check list as a document, ending in a line feed."""
    lines = [f"# Doctor: {markdown(run.model)}, run {markdown_code(run.id)}", "", markdown(_summary(items, True)), ""]
    ailments = _shown(items, everything)
    if ailments:
        lines += ["| status | item | variants | evidence | remedy |", "| --- | --- | --- | --- | --- |"]
    for one in ailments:
        who = ", ".join(markdown_code(name) for name in one.variants) or "the run"
        status = one.status.value.replace("_", "\\_")
        cells = [status, markdown(one.title), who, markdown(one.evidence), markdown(one.remedy) if one.remedy else ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).rstrip("\n") + "\n"


def checklist_json(run: Run, items: Sequence[Diagnosis]) -> str:
    """Every item, whatever its status: ``items[]`` with rule, title, variant (null: the run), status, evidence, remedy.

    In ASCII, since it may go to a terminal: what a run says of itself is escaped.
    """
    document = {
        "schema": SCHEMA_VERSION,
        "kind": "doctor",
        "run": run.id,
        "model": run.model,
        "items": [asdict(i) for i in items],
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
