"""What a careful reviewer would ask about before approving changed baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from suite.gate.accept import MIN_LAUNCHES
from suite.gate.diffing_sides import ABOUT_ANSWERS, machine_flags
from suite.gate.held import listed
from suite.metrics.catalog import SPECS
from suite.metrics.speed import TAILS
from suite.records import (
    ALL,
    Aspect,
    Diff,
    DiffEntry,
    Direction,
    Figure,
    Provenance,
    Question,
    QuestionKind,
    Snapshot,
    Verdict,
)
from suite.store.layout import FROZEN

FAILED = (Verdict.ERROR, Verdict.INVALID, Verdict.REGRESSED)
"""Gates that ended so should have been mended, or accepted for a reason."""

TOO_FAST = 1.5
"""So many times as fast, with the same weights: more likely that something else was timed."""
TOO_SMALL = 2 / 3
"""Memory that fell below this share, with the same weights."""
TOO_CLOSE = 0.5
"""A divergence from the reference that fell below this share, with the same weights."""
TOO_RIGHT = 0.10
"""Credit that was gained with the same weights: tens of cases do not get right by themselves."""

_UNSTEADY = frozenset({"load_s", "cold_ttft_s", *TAILS})

LEAST_ASKED = 0.01
"""Gains of a smaller share (or of less than a point) need no explanation."""

Rule = Callable[[Figure], tuple[float, str] | None]
"""How far out a figure is, and in words; None where it is not."""

_WEIGHTS = ("sha256 of ", "revision:", "make:", "quantization:", "source:", "dtypes:", "tensor types:", "weights")
"""How a difference begins that is one of weights."""
_WRITTEN = frozenset({"changed", "new", "accepted anew"})


def find_questions(diff: Diff, base: Snapshot, head: Snapshot, faults: Sequence[str] = ()) -> tuple[Question, ...]:
    """Everything to ask about, the gravest first, each once. `faults` are those of tolerances that cannot be used."""
    found = [
        *(Question(kind="unreadable", variant="", sentence=fault) for fault in faults),
        *_unreadable(base, head),
        *(question for entry in diff.entries for question in _of_entry(entry, head)),
        *_refrozen(base, head),
    ]
    return tuple(dict.fromkeys(sorted(found, key=lambda question: _GRAVEST_FIRST.index(question.kind))))


_GRAVEST_FIRST: tuple[QuestionKind, ...] = (
    "edited", "not accepted", "unreadable", "failed", "gone", "cases gone", "too good", "contended", "frozen",
)  # fmt: skip


def _of_entry(entry: DiffEntry, head: Snapshot) -> Iterator[Question]:
    """What there is to ask about one baseline; nothing is accepted in a run."""
    if head.run is not None:
        return
    if entry.edited:
        before = ", and was before" if entry.state == "unchanged" else ""
        said = (
            f"{_named(entry)} was edited by hand: its content does not match its digest{before}; nobody measured it so"
        )
        yield _ask("edited", entry, said)
    if entry.state in _WRITTEN and entry.now is not None:
        yield from _accepted(entry, entry.now)
    yield from _gone(entry, head)
    yield from _too_good(entry)


def _accepted(entry: DiffEntry, now: Provenance) -> Iterator[Question]:
    if entry.was == now and not entry.edited and entry.state == "changed":
        said = (
            f"{_named(entry)} changed, but when, why and from which run it was accepted did not: no update wrote this"
        )
        yield _ask("not accepted", entry, said)
    if not now.reason.strip():
        yield _ask("not accepted", entry, f"{_named(entry)} was accepted without a reason")
    failed = [f"{now.gates[verdict]} {verdict}" for verdict in FAILED if now.gates.get(verdict)]
    if failed:
        said = f"{entry.variant} was accepted while gates of its failed ({', '.join(failed)} in run {now.run})"
        yield _ask("failed", entry, said)
    unknown = [flag for flag in now.flags if flag.endswith(ABOUT_ANSWERS)]
    if unknown:
        yield _ask("failed", entry, f"{_named(entry)} was accepted although {listed(unknown)}")
    if entry.aspect == "speed" and (flags := machine_flags(now)):
        said = (
            f"{_named(entry)} is from a disturbed machine: {listed(flags)}; verdicts held against it will be no better"
        )
        yield _ask("contended", entry, said)
    if entry.aspect == "speed" and now.launches < MIN_LAUNCHES:
        said = f"{_named(entry)} rests on {now.launches} launches, and {MIN_LAUNCHES} are the fewest that tell how they vary"
        yield _ask("contended", entry, said)


def _gone(entry: DiffEntry, head: Snapshot) -> Iterator[Question]:
    if entry.state == "gone":
        declared = head.matrix is not None and entry.variant in head.matrix.variants
        why = (
            "though the matrix file still declares it: its gates have nothing to be held against"
            if declared
            else "so that nothing guards it any more"
        )
        yield _ask("gone", entry, f"{_named(entry)} is gone, {why}")
    gone = [f"{figure.metric}/{figure.scope}" for figure in entry.figures if figure.state == "gone"]
    if entry.state == "changed" and gone and not any(figure.state == "otherwise" for figure in entry.figures):
        yield _ask("gone", entry, f"{_named(entry)} has lost {_counted(len(gone), 'figure')}: {listed(gone)}")
    if cases := entry.cases_gone:
        wrong = f", of which {entry.cases_gone_wrong} not answered right" if entry.cases_gone_wrong else ""
        said = f"{_named(entry)} has lost {_counted(len(cases), 'case')}{wrong}: {listed(cases)}"
        yield _ask("cases gone", entry, said)


def _too_good(entry: DiffEntry) -> Iterator[Question]:
    """An improvement that is more likely a mistake, and by what rule; the one that is furthest out of each kind."""
    if entry.state != "changed" or entry.moved_from is not None:
        return
    if not any(difference.startswith(_WEIGHTS) for difference in entry.differences):
        for said in filter(None, (_most(entry, rule) for rule in (_fast, _small, _close, _right))):
            yield _ask(
                "too good", entry, f"{entry.variant}: {said}, with the same weights; was something else measured?"
            )
    better = list(dict.fromkeys(one.metric for one in entry.figures if one.state == "better" and _is_noteworthy(one)))
    if better and not entry.differences:
        said = f"{entry.variant} improved ({listed(better)}) though nothing that is recorded changed; what did it?"
        yield _ask("too good", entry, said)


def _is_noteworthy(figure: Figure) -> bool:
    """Whether it is better by a share that anybody would explain: a computed size may change by a byte."""
    drift = figure.finding.comparison.drift if figure.finding else None
    return drift is None or abs(drift) >= LEAST_ASKED


def _most(entry: DiffEntry, rule: Rule) -> str | None:
    found = [told for figure in entry.figures if figure.old and figure.new is not None if (told := rule(figure))]
    return max(found)[1] if found else None


def _fast(figure: Figure) -> tuple[float, str] | None:
    """Speed in tokens or time, by the ratio of the values.

    Not that of tails, which a few gaps decide, nor of loads, which depend on what a cache holds; a ratio of two times, such as
    `turn_gain`, is no speed.
    """
    if figure.metric in _UNSTEADY or SPECS[figure.metric].unit not in ("tok/s", "s"):
        return None
    if figure.aspect is not Aspect.SPEED or figure.state == "otherwise":
        return None
    old, new = figure.old or 0.0, figure.new or 0.0
    if min(old, new) <= 0:
        return None
    times = new / old if SPECS[figure.metric].direction is Direction.HIGHER else old / new
    limit = f"more than {TOO_FAST:g} times is asked about"
    return (times, f"{_key(figure)} is {times:.3g} times as fast ({limit})") if times >= TOO_FAST else None


def _small(figure: Figure) -> tuple[float, str] | None:
    if figure.aspect is not Aspect.MEMORY or figure.state == "otherwise":
        return None
    share = (figure.new or 0.0) / (figure.old or 1.0)
    limit = f"less than {100 * TOO_SMALL:.0f} % is asked about"
    return (-share, f"{_key(figure)} is {100 * share:.0f} % of what it was ({limit})") if share <= TOO_SMALL else None


def _close(figure: Figure) -> tuple[float, str] | None:
    if figure.metric not in ("mean_kld", "decode_kld") or figure.state == "otherwise":
        return None
    share = (figure.new or 0.0) / (figure.old or 1.0)
    limit = f"less than {100 * TOO_CLOSE:.0f} % is asked about"
    return (-share, f"{_key(figure)} is {100 * share:.0f} % of what it was ({limit})") if share <= TOO_CLOSE else None


def _right(figure: Figure) -> tuple[float, str] | None:
    if figure.metric != "score" or figure.state == "otherwise":
        return None
    gained = (figure.new or 0.0) - (figure.old or 0.0)
    limit = f"more than {100 * TOO_RIGHT:.0f} are asked about"
    return (gained, f"{_key(figure)} rose by {100 * gained:.0f} points ({limit})") if gained >= TOO_RIGHT else None


def _unreadable(base: Snapshot, head: Snapshot) -> Iterator[Question]:
    for side in (head, base):
        for fault in side.faults:
            yield Question(kind="unreadable", variant="", sentence=f"{side.label}: {fault.sentence}")


def _refrozen(base: Snapshot, head: Snapshot) -> Iterator[Question]:
    """The first baselines, which creeping is seen beside; whatever is new has its first one now."""
    if base.run is not None or head.run is not None:
        return
    for path, was in sorted(base.frozen.items()):
        now = head.frozen.get(path)
        if now == was:
            continue
        variant = PurePosixPath(path).name.removesuffix(f"{FROZEN}.json")
        aspect = "answers" if "/quality/" in path else "speed"
        what = "is gone" if now is None else "was replaced"
        said = f"the first baseline of {variant} ({aspect}), beside which creeping is seen, {what}"
        yield Question(kind="frozen", variant=variant, sentence=said)


def _ask(kind: QuestionKind, entry: DiffEntry, sentence: str) -> Question:
    return Question(kind=kind, variant=entry.variant, sentence=sentence)


def _named(entry: DiffEntry) -> str:
    """``the answers of q4_k_m``; ``the speed of q4_k_m on epyc-2c``."""
    if entry.aspect == "quality":
        return f"the baseline of {entry.variant}'s answers"
    return f"the baseline of {entry.variant}'s speed"


def _key(figure: Figure) -> str:
    return figure.metric if figure.scope == ALL else f"{figure.metric} ({figure.scope})"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
