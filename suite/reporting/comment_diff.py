"""A comment about the JSON of ``quantdrift diff`` that a stranger may have written. See `suite.reporting.comment`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suite.records import (
    Aspect,
    Comparison,
    Direction,
    EntryState,
    FigureState,
    Flip,
    Gate,
    Provenance,
    Question,
    QuestionKind,
    SnapshotKind,
    Tier,
    Tolerance,
    ToleranceChange,
    Verdict,
)
from suite.reporting import wording
from suite.reporting.comment_run import CAUTION, flip_details, metric, misnamed, number
from suite.reporting.diff.json import SCHEMA
from suite.reporting.hostile import inert_code
from suite.reporting.wording import ABSENT, counted, listed

__all__ = ["SCHEMA", "DiffDocument", "comment_on_diff", "diff_faults"]

_MOST_ROWS, _MOST_POINTS = 100, 20
_NAME, _TEXT = 80, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """``base``, ``head``."""

    label: str
    kind: SnapshotKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """``tolerances``."""

    compared: bool
    judged_by: str
    changes: tuple[ToleranceChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """``baselines[].figures[]``."""

    metric: str
    scope: str
    aspect: Aspect
    unit: str
    direction: Direction
    old: float | None
    new: float | None
    state: FigureState
    beyond_noise: bool | None
    drift: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None
    gate: Gate | None
    tolerance: Tolerance | None
    p_value: float | None
    p_needed: float | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """``baselines[]``."""

    model: str
    variant: str
    aspect: Literal["quality", "speed"]
    machine: str | None
    moved_from: str | None
    state: EntryState
    edited: bool
    same: tuple[str, ...]
    answers_changed: int
    cases_added: tuple[str, ...]
    cases_gone: tuple[str, ...]
    cases_gone_wrong: int
    cases_asked_otherwise: Mapping[str, str]
    differences: tuple[str, ...]
    was: Provenance | None
    now: Provenance | None
    figures: tuple[FigureRow, ...]
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffDocument:
    """The whole file, as ``.github/DIFF.md`` says."""

    schema: int
    kind: str
    headline: str
    sentences: tuple[str, ...]
    changed: bool
    base: Side
    head: Side
    questions: tuple[Question, ...]
    tolerances: Tolerances
    notes: tuple[str, ...]
    reasons: tuple[str, ...]
    baselines: tuple[BaselineRow, ...]


_ASKED: Mapping[QuestionKind, str] = {
    "edited": "changed by hand: its content does not match its digest",
    "not accepted": "no update wrote this",
    "failed": "accepted although gates failed or could not be told",
    "contended": "a speed from a disturbed machine, or from too few launches",
    "too good": "too good to be nothing but a change of speed or quality",
    "gone": "a baseline, or figures of one, are no longer there",
    "cases gone": "cases were dropped",
    "frozen": "the first baseline was replaced, or is gone",
    "unreadable": "a file cannot be read",
}
_STATES: Mapping[FigureState, str] = {
    "worse": "**worse**", "better": "**better**", "within": "within tolerance", "unclear": "cannot tell",
    "otherwise": "another question", "untested": "not judged", "new": "new", "gone": "**gone**",
}  # fmt: skip
_NOISE = {True: "beyond", False: "within", None: ABSENT}
_WORST_FIRST: tuple[FigureState, ...] = (
    "worse", "gone", "better", "unclear", "within", "untested", "new", "otherwise",
)  # fmt: skip
_EXPANDED = frozenset({"worse", "gone", "better", "unclear"})


def diff_faults(diff: DiffDocument) -> Iterator[str]:
    """What is named as nothing of ours is."""
    told: list[tuple[str, str]] = []
    for row in diff.baselines:
        told += [("model", row.model), ("variant", row.variant)]
        told += [("machine", machine) for machine in (row.machine, row.moved_from) if machine is not None]
        told += [("metric", figure.metric) for figure in row.figures]
    yield from misnamed(told)


def comment_on_diff(diff: DiffDocument) -> Iterator[str]:
    """Lines of Markdown, built from states and numbers; every name and text of the file is inert code."""
    yield f"### Baselines: {_headline(diff)}"
    yield ""
    yield f"{inert_code(diff.base.label, _TEXT)} → {inert_code(diff.head.label, _TEXT)}"
    yield ""
    yield from _points("**Ask before approving**", [_question(question) for question in diff.questions])
    yield from _loosened(diff.tolerances)
    yield from _tables(diff)
    yield from _beneath(diff)
    yield from _flips(diff)
    yield CAUTION


def _headline(diff: DiffDocument) -> str:
    """Loud things first, in our own words, counted over metrics of variants; a metric's worst scope counts."""
    worst: dict[tuple[str, str, str | None, str], FigureState] = {}
    for row in diff.baselines:
        for figure in row.figures if row.state == "changed" else ():
            key = (row.model, row.variant, row.machine, figure.metric)
            state: FigureState = "within" if figure.gate is Gate.INFO else figure.state
            worst[key] = min(worst.get(key, state), state, key=_WORST_FIRST.index)
    found, states = Counter(worst.values()), Counter(row.state for row in diff.baselines)
    edited = sum(row.edited for row in diff.baselines)
    loosened = sum(change.loosened for change in diff.tolerances.changes)
    apart = sum(
        row.state == "changed" and {figure.state for figure in row.figures} == {"otherwise"} for row in diff.baselines
    )
    parts = [
        (found["worse"], "loss", "losses"), (loosened, "loosened setting", "loosened settings"),
        (edited, "edit by hand", "edits by hand"), (states["gone"], "baseline gone", "baselines gone"),
        (states["unreadable"], "unreadable file", "unreadable files"), (found["better"], "gain", "gains"),
        (states["new"], "new baseline", "new baselines"), (apart, "baseline not comparable", "baselines not comparable"),
        (found["unclear"], "cannot be told", "cannot be told"),
        (states["unchanged"], "baseline unchanged", "baselines unchanged"),
    ]  # fmt: skip
    told = [f"{number} {one if number == 1 else many}" for number, one, many in parts if number]
    return ", ".join(told) or "nothing to compare"


def _question(question: Question) -> str:
    variant = f"{inert_code(question.variant, _NAME)}: " if question.variant else ""
    return f"{variant}{_ASKED[question.kind]}: {inert_code(question.sentence, _TEXT)}"


def _loosened(tolerances: Tolerances) -> Iterator[str]:
    ordered = sorted(tolerances.changes, key=lambda change: not change.loosened)
    if not ordered:
        return
    yield "**Loosened: the same drift passes more easily now**" if ordered[0].loosened else "**Settings that changed**"
    yield ""
    yield _line(["setting", "was", "now", ""])
    yield _line("---" for _ in range(4))
    for change in ordered[:_MOST_ROWS]:
        quoted = [inert_code(text, _NAME) for text in (change.key, change.old, change.new)]
        yield _line([*quoted, "**looser**" if change.loosened else ""])
    yield ""
    yield from _more(len(ordered))


def _tables(diff: DiffDocument) -> Iterator[str]:
    figures = [(row, figure) for row in diff.baselines if row.state == "changed" for figure in row.figures]
    figures.sort(key=lambda pair: _WORST_FIRST.index(pair[1].state))
    loud = [pair for pair in figures if pair[1].state in _EXPANDED and pair[1].gate is not Gate.INFO]
    quiet = [pair for pair in figures if pair not in loud]
    for title, quality in (("Quality", True), ("Speed and memory", False)):
        chosen = [pair for pair in loud if (pair[1].aspect is Aspect.QUALITY) is quality]
        if chosen:
            yield f"**{title}**"
            yield ""
            yield from _table(chosen)
    if quiet:
        yield f"<details><summary>{counted(len(quiet), 'more figure')} moved within the noise, or only inform</summary>"
        yield ""
        yield from _table(quiet)
        yield "</details>"
        yield ""


def _table(figures: Sequence[tuple[BaselineRow, FigureRow]]) -> Iterator[str]:
    heads = ["variant", "metric", "scope", "was", "now", "drift", "95 % of the drift", "noise", "tolerance", ""]
    yield _line(heads)
    yield _line("---" for _ in heads)
    yield from (_line(_figure(row, figure)) for row, figure in figures[:_MOST_ROWS])
    yield ""
    yield from _more(len(figures))


def _figure(row: BaselineRow, figure: FigureRow) -> list[str]:
    compared = Comparison(
        variant=row.variant,
        metric=figure.metric,
        scope=figure.scope,
        aspect=figure.aspect,
        tier=Tier.STORED,
        drift=figure.drift,
        interval=figure.interval,
    )
    interval = wording.bare_interval(compared)
    return [
        inert_code(row.variant, _NAME),
        metric(figure.metric),
        inert_code(figure.scope, _NAME),
        number(wording.value(figure.metric, figure.old)),
        number(wording.value(figure.metric, figure.new)),
        number(wording.drift(compared)) if figure.drift is not None else ABSENT,
        number(interval or ABSENT),
        _NOISE[figure.beyond_noise],
        number(wording.tolerance(figure.tolerance, compared)) if figure.tolerance else ABSENT,
        _STATES[figure.state] + (" (warns)" if figure.gate is Gate.WARN else ""),
    ]


def _beneath(diff: DiffDocument) -> Iterator[str]:
    """What else changed, and why: once each, with the variants that it concerns."""
    changed = [row for row in diff.baselines if row.state != "unchanged"]
    blocks: list[tuple[str, list[tuple[str, str]]]] = [
        ("Not as it was", [(row.variant, f"{row.aspect}: {row.state}") for row in changed if row.state != "changed"]),
        ("Moved from another machine", [(row.variant, row.moved_from) for row in changed if row.moved_from]),
        ("Changed with it", [(row.variant, text) for row in changed for text in row.differences]),
        ("Cases gone", [(row.variant, case) for row in changed for case in row.cases_gone]),
        ("Cases added", [(row.variant, case) for row in changed for case in row.cases_added]),
        (
            "Asked otherwise",
            [(row.variant, f"{k}: {v}") for row in changed for k, v in row.cases_asked_otherwise.items()],
        ),
        ("Reason given", [(row.variant, row.now.reason) for row in changed if row.now and diff.head.kind != "run"]),
    ]
    for title, told in blocks:
        yield from _points(f"{title}:", _grouped(told))
    yield from _points("Noted:", [inert_code(note, _TEXT) for note in diff.notes])
    same = sum(len(row.same) for row in diff.baselines)
    if same:
        yield f"{counted(same, 'figure')} unchanged. {'' if diff.tolerances.changes else 'Settings: unchanged.'}".rstrip()
        yield ""


def _grouped(told: Iterable[tuple[str, str]]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for variant, text in told:
        found.setdefault(text, {})[variant] = None
    return [
        f"{listed([inert_code(variant, _NAME) for variant in variants], 8)}: {inert_code(text, _TEXT)}"
        for text, variants in found.items()
    ]


def _flips(diff: DiffDocument) -> Iterator[str]:
    flips = [(row.variant, flip) for row in diff.baselines for flip in row.flips]
    if flips:
        yield from flip_details(flips, sum(flip.was_correct for _, flip in flips))


def _points(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield title
        yield ""
        yield from (f"- {text}" for text in texts[:_MOST_POINTS])
        if len(texts) > _MOST_POINTS:
            yield f"- and {len(texts) - _MOST_POINTS} more in the JSON"
        yield ""


def _more(number: int) -> Iterator[str]:
    if number > _MOST_ROWS:
        yield f"{number - _MOST_ROWS} more are in the JSON."
        yield ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
