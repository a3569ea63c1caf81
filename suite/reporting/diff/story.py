"""A diff of baselines as it is told: the verdict in words, what is expanded, what is folded. Decided once for all renderers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.gate.differences import SCENARIO
from suite.records import ALL, Aspect, Diff, DiffEntry, Figure, Flip, Provenance, ToleranceChange
from suite.reporting.diff.figures import Row, change_of, figure_name, row_of
from suite.reporting.diff.verdict import asks_otherwise, count_units, find_whole, is_expanded, write_headline
from suite.reporting.hints import KINDS, kind_of
from suite.reporting.hostile import one_line
from suite.reporting.wording import counted, listed, metric_name

_SHOWN = 8
"""How many names one line of folded text holds."""
_WHY = 60
"""Columns of why a case asks another question."""
_TOLD = 2
"""Figures that the sentence about one variant names of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flipped:
    """The flipped cases of one variant."""

    variant: str
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What all renderers tell, in this order."""

    headline: str
    sentences: tuple[str, ...]
    """What happened, variant by variant."""
    asked: tuple[str, ...]
    """What a reviewer should ask about, the gravest first."""
    loosened: tuple[ToleranceChange, ...]
    quality: tuple[Row, ...]
    speed: tuple[Row, ...]
    """Memory too."""
    another: tuple[str, ...]
    """Baselines of which nothing can be compared, and why."""
    causes: tuple[str, ...]
    """What else changed with it."""
    cases: tuple[str, ...]
    """Cases that were added, or ask another question."""
    reasons: tuple[str, ...]
    """Why it was accepted, with whom it may be looked up."""
    tolerances: tuple[ToleranceChange, ...]
    """Those that changed and are not looser."""
    tolerances_said: str
    flipped: tuple[Flipped, ...]
    minor: tuple[Row, ...]
    """Figures that moved within the noise, inform only, or are not judged."""
    unchanged: tuple[str, ...]
    unchanged_figures: int


def tell(diff: Diff) -> Story:
    """The story of a diff."""
    names = _Names(diff)
    shown, minor = _split(diff)
    rows = [(figure, row_of(entry, figure, name=names.of(entry))) for entry, figure in shown]
    return Story(
        headline=write_headline(diff),
        sentences=tuple(_sentences(diff, names)),
        asked=tuple(question.sentence for question in diff.questions),
        loosened=tuple(change for change in diff.tolerances if change.loosened),
        quality=tuple(row for figure, row in rows if figure.aspect is Aspect.QUALITY),
        speed=tuple(row for figure, row in rows if figure.aspect is not Aspect.QUALITY),
        another=tuple(_another(diff, names)),
        causes=(*_causes(diff, names), *diff.notes),
        cases=tuple(_cases(diff, names)),
        reasons=tuple(_reasons(diff, names)),
        tolerances=tuple(change for change in diff.tolerances if not change.loosened),
        tolerances_said=_tolerances(diff),
        flipped=tuple(Flipped(variant=names.of(entry), flips=entry.flips) for entry in diff.entries if entry.flips),
        minor=tuple(row_of(entry, figure, name=names.of(entry)) for entry, figure in minor),
        unchanged=tuple(_unchanged(diff, names)),
        unchanged_figures=count_units(diff)["unchanged"],
    )


class _Names:
    """What a variant is called: with its model or machine only where there are several."""

    def __init__(self, diff: Diff) -> None:
        self._models = len({entry.model for entry in diff.entries}) > 1
        self._machines = len({entry.machine for entry in diff.entries if entry.machine is not None}) > 1

    def bare(self, entry: DiffEntry) -> str:
        """The variant, with its model where there are several."""
        return f"{entry.model}/{entry.variant}" if self._models else entry.variant

    def of(self, entry: DiffEntry) -> str:
        """The same, with the machine of its speed where there are several."""
        return f"{self.bare(entry)} on {entry.machine}" if self._machines and entry.machine else self.bare(entry)


# ------------------------------------------------------------------------------------------------- what is shown


def _split(diff: Diff) -> tuple[list[tuple[DiffEntry, Figure]], list[tuple[DiffEntry, Figure]]]:
    """Figures that are expanded, and those that are folded. Figures of one side, or of another question, are told in words."""
    shown: list[tuple[DiffEntry, Figure]] = []
    minor: list[tuple[DiffEntry, Figure]] = []
    for entry in diff.entries:
        for figure in entry.figures if entry.state == "changed" else ():
            if figure.state not in ("otherwise", "new"):
                (shown if is_expanded(figure) else minor).append((entry, figure))
    return shown, minor


# ------------------------------------------------------------------------------------------------- the sentences


def _sentences(diff: Diff, names: _Names) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for name, entries in _by_variant(diff, names).items():
        if phrases := [phrase for entry in entries for phrase in _phrases(entry)]:
            told.setdefault(_joined(phrases), []).append(name)
    for happened, variants in told.items():
        yield f"{listed(variants, _SHOWN)} got {happened}."
    yield from _added(diff, names)
    for state, words in (("new", "new"), ("gone", "gone")):
        whole = {variant for _, variant in find_whole(diff, state)}
        yield from _one_sided(diff, names, state, words, whole)
    missing = _of_state(diff, names, "not measured")
    if missing:
        yield f"Not measured in the run: {listed(missing, _SHOWN)}."
    rest = [entry for entry in diff.entries if entry.state not in ("unchanged", "not measured")]
    quiet = all(any(_phrases(entry)) for entry in rest) and not any(
        f.state == "unclear" for e in rest for f in e.figures
    )
    if told and quiet and not diff.tolerances and not diff.notes:
        yield "Everything else is as before."


def _added(diff: Diff, names: _Names) -> Iterator[str]:
    """Figures that the earlier baselines lacked, once for all variants that got the same ones."""
    found: dict[str, dict[str, None]] = {}
    for entry in diff.entries:
        metrics = dict.fromkeys(metric_name(figure.metric) for figure in entry.figures if figure.state == "new")
        if entry.state == "changed" and metrics:
            found.setdefault(listed(list(metrics), _SHOWN), {})[names.bare(entry)] = None
    for metrics_told, variants in found.items():
        yield f"Known for the first time of {listed(list(variants), _SHOWN)}: {metrics_told}."


def _one_sided(diff: Diff, names: _Names, state: str, word: str, whole: set[str]) -> Iterator[str]:
    variants = list(dict.fromkeys(names.bare(e) for e in diff.entries if e.state == state and e.variant in whole))
    if variants:
        yield f"{_joined(variants)} {'is' if len(variants) == 1 else 'are'} {word}."
    parts = [_baseline(e, names) for e in diff.entries if e.state == state and e.variant not in whole]
    if parts:
        verb = "Accepted for the first time" if state == "new" else "No longer there"
        yield f"{verb}: {listed(parts, _SHOWN)}."


def _by_variant(diff: Diff, names: _Names) -> dict[str, list[DiffEntry]]:
    found: dict[str, list[DiffEntry]] = {}
    for entry in diff.entries:
        if entry.state == "changed":
            found.setdefault(names.bare(entry), []).append(entry)
    return found


_KINDS = (
    (Aspect.QUALITY, "worse", "worse in quality"), (Aspect.QUALITY, "better", "better in quality"),
    (Aspect.SPEED, "worse", "slower"), (Aspect.SPEED, "better", "faster"),
    (Aspect.MEMORY, "worse", "larger in memory"), (Aspect.MEMORY, "better", "smaller in memory"),
)  # fmt: skip


def _phrases(entry: DiffEntry) -> list[str]:
    """``worse in quality (mean KLD +26 %, 3 answers flipped to wrong)``, one for each way in which it drifted."""
    phrases = []
    for aspect, state, words in _KINDS:
        figures = [f for f in entry.figures if f.aspect is aspect and f.state == state and is_expanded(f)]
        if not figures:
            continue
        first = sorted(figures, key=lambda figure: figure.scope != ALL)[:_TOLD]
        told = [f"{figure_name(figure)} {change_of(figure)[0]}" for figure in first]
        flips = (
            [flip for flip in entry.flips if flip.is_correct is (state == "better")] if aspect is Aspect.QUALITY else []
        )
        if flips:
            told.append(f"{counted(len(flips), 'answer')} flipped to {'right' if state == 'better' else 'wrong'}")
        phrases.append(f"{words} ({', '.join(told)})")
    return phrases


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# --------------------------------------------------------------------------------------------- what lies beneath


def _another(diff: Diff, names: _Names) -> Iterator[str]:
    """Baselines whose question changed: once for each reason, with those that it concerns."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in diff.entries:
        if asks_otherwise(entry):
            found.setdefault((entry.aspect, _why_another(entry)), []).append(names.bare(entry))
    for (aspect, why), variants in found.items():
        yield f"{'answers' if aspect == 'quality' else 'speed'} of {listed(variants, _SHOWN)}: {why}"


def _why_another(entry: DiffEntry) -> str:
    """What makes it another question; of answers that of all cases, which says what the domains' do."""
    if entry.moved_from is not None:
        return f"from machine {entry.moved_from} to {entry.machine}"
    figures = [figure for figure in entry.figures if figure.state == "otherwise" and figure.finding]
    whole = [figure for figure in figures if figure.scope == ALL and entry.aspect == "quality"] or figures
    reasons = [figure.finding.comparison.reason for figure in whole if figure.finding]
    parts = dict.fromkeys(one_line(part, _WHY) for reason in reasons for part in reason.split("; "))
    return "; ".join([*list(parts)[:_SHOWN], *(["…"] if len(parts) > _SHOWN else [])])


def _causes(diff: Diff, names: _Names) -> Iterator[str]:
    """What is recorded and differs, each once, with the variants that it concerns; weights last, as in `KINDS`."""
    found: dict[str, dict[str, None]] = {}
    for entry in diff.entries:
        if entry.state not in ("changed", "accepted anew"):
            continue
        for difference in entry.differences:
            if difference.startswith(SCENARIO):
                continue  # told of what cannot be compared
            found.setdefault(difference, {})[names.bare(entry)] = None
    order = sorted(found, key=lambda text: (KINDS.index(kind_of(text.partition(":")[0])), text))
    for text in order:
        yield f"{kind_of(text.partition(':')[0])} of {listed(list(found[text]), _SHOWN)}: {text}"


def _cases(diff: Diff, names: _Names) -> Iterator[str]:
    """Cases that came, or ask another question; one line for what is the same of several variants."""
    found: dict[str, list[str]] = {}
    for entry in diff.entries:
        told = (
            [f"{counted(len(entry.cases_added), 'case')} added: {listed(entry.cases_added, 4)}"]
            if entry.cases_added
            else []
        )
        if entry.cases_asked_otherwise and entry.state == "changed" and not asks_otherwise(entry):
            asked = [f"{case} ({one_line(why, _WHY)})" for case, why in entry.cases_asked_otherwise.items()]
            told.append(f"{counted(len(asked), 'case')} asked otherwise, and not compared: {listed(asked, 4)}")
        if entry.answers_changed > len(entry.flips):
            more = entry.answers_changed - len(entry.flips)
            told.append(f"{counted(more, 'answer')} changed and kept being right or wrong")
        for text in told:
            found.setdefault(text, []).append(names.bare(entry))
    for text, variants in found.items():
        yield f"{listed(variants, _SHOWN)}: {text}"


def _reasons(diff: Diff, names: _Names) -> Iterator[str]:
    """Why what is written was accepted, once for each reason."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for entry in diff.entries:
        if entry.state in ("changed", "accepted anew", "new") and entry.now is not None and diff.head_kind != "run":
            found.setdefault((entry.now.reason, _looked_up(entry.now)), {})[names.bare(entry)] = None
    for (reason, where), variants in found.items():
        yield f'{listed(list(variants), _SHOWN)}: "{reason}" ({where})'


def _looked_up(now: Provenance) -> str:
    commit = f", commit {now.commit}" if now.commit else ""
    return f"accepted {now.accepted[:10]}, run {now.run}{commit}"


def _tolerances(diff: Diff) -> str:
    judged = f"Held against {diff.judged_by}." if diff.judged_by else ""
    if not diff.tolerances_compared:
        return f"Tolerances: not compared, for a matrix file is missing or cannot be used. {judged}".rstrip()
    if not diff.tolerances:
        return "Tolerances: unchanged."
    loosened = sum(change.loosened for change in diff.tolerances)
    return f"Tolerances: {len(diff.tolerances)} changed, {loosened} of them loosened. {judged}".rstrip()


def _unchanged(diff: Diff, names: _Names) -> Iterator[str]:
    for state, words in (("unchanged", "unchanged"), ("accepted anew", "accepted anew, with the same figures")):
        for aspect in ("quality", "speed"):
            found = [names.of(entry) for entry in diff.entries if entry.state == state and entry.aspect == aspect]
            if found:
                yield f"{'answers' if aspect == 'quality' else 'speed and memory'} {words}: {listed(found, 20)}"
    for (aspect, metrics), variants in _same(diff, names).items():
        yield f"{'answers' if aspect == 'quality' else 'speed and memory'} of {listed(variants, _SHOWN)}: {metrics}"


def _same(diff: Diff, names: _Names) -> dict[tuple[str, str], list[str]]:
    """The metrics of changed baselines of which no scope moved → the variants of which the same ones are."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in diff.entries:
        if entry.state == "changed":
            moved = {figure.metric for figure in entry.figures}
            same = dict.fromkeys(key.partition("/")[0] for key in entry.same)
            if kept := [metric_name(metric) for metric in same if metric not in moved]:
                found.setdefault((entry.aspect, listed(kept, 20)), []).append(names.of(entry))
    return found


def _of_state(diff: Diff, names: _Names, state: str) -> list[str]:
    return [_baseline(entry, names) for entry in diff.entries if entry.state == state]


def _baseline(entry: DiffEntry, names: _Names) -> str:
    """``answers of q4_k_m``, ``speed of q4_k_m``."""
    return f"{'answers' if entry.aspect == 'quality' else 'speed'} of {names.of(entry)}"


def tolerance_text(change: ToleranceChange) -> str:
    """``policy.itl_s: 10 % (block) → 15 % (block)``."""
    return f"{change.key}: {change.old} → {change.new}"
