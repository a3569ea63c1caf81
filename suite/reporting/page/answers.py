"""Answers side by side with the reference's: flipped ones first, the first difference marked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suite.records import Run, Trial
from suite.reporting import wording
from suite.reporting.hostile import one_line, plain
from suite.reporting.parting import Change, Parting, find_changes

MOST_CHARACTERS = 240_000
"""Of answers on one page; what is beyond is counted, and is in run.json."""
_LONGEST = 1_600
_BEFORE = 260
_WORD = re.compile(r"\s+|\w+|.", re.DOTALL)
_VISIBLE = {"\n": "↵\n", " ": "␣"}
_ENDS = "■ ends here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two answers, safe to be escaped and shown."""

    who: str
    grade: str
    shared: str
    mark: str
    """The first difference, with white space made visible; "" when the answers are the same."""
    rest: str
    missing: str = ""
    """Why there is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One case."""

    case: str
    became: str
    """``lost``, ``gained``, or "" when it did not flip."""
    where: str
    """Where they part and how close the choice was."""
    sides: tuple[Side, Side]

    @property
    def characters(self) -> int:
        """What it takes on the page."""
        return sum(len(side.shared) + len(side.mark) + len(side.rest) for side in self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Those of one variant that differ from the reference's."""

    variant: str
    reference: str
    lost: int
    gained: int
    differ: int
    same: int
    flipped: tuple[Pair, ...]
    others: tuple[Pair, ...]
    left_out: int
    """How many that differ had no room."""


def compare_answers(run: Run) -> tuple[Answers, ...]:
    """What each variant answers otherwise than the reference; flips of all variants take their room before anything else.

    Empty without a reference whose answers are in the run.
    """
    reference = run.matrix.reference
    if reference is None or not any(trial.variant == reference.name for trial in run.trials):
        return ()
    names = [r.variant.name for r in run.variants if r.variant.name != reference.name]
    changes = {name: find_changes(run, name, reference.name) for name in names}
    changes = {name: found for name, found in changes.items() if found}
    room = _Room(MOST_CHARACTERS)
    flipped = {name: _pairs((c for c in found if c.flipped), room) for name, found in changes.items()}
    others = {
        name: _pairs((c for c in found if not c.flipped and c.parting is not None), room)
        for name, found in changes.items()
    }
    return tuple(_answers(name, reference.name, found, flipped[name], others[name]) for name, found in changes.items())


class _Room:
    """Characters that are left on the page."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def take(self, pair: Pair) -> bool:
        """Whether there is room for it; then it is taken."""
        fits = pair.characters <= self._left
        self._left -= pair.characters if fits else 0
        return fits


def _pairs(changes: Iterable[Change], room: _Room) -> tuple[Pair, ...]:
    return tuple(pair for pair in map(_pair, changes) if room.take(pair))


def _answers(
    name: str, reference: str, changes: Sequence[Change], flipped: tuple[Pair, ...], others: tuple[Pair, ...]
) -> Answers:
    differ = sum(change.flipped or change.parting is not None for change in changes)
    return Answers(
        variant=name,
        reference=reference,
        lost=sum(change.flipped and change.was_correct for change in changes),
        gained=sum(change.flipped and change.is_correct for change in changes),
        differ=differ,
        same=len(changes) - differ,
        flipped=flipped,
        others=others,
        left_out=differ - len(flipped) - len(others),
    )


def _pair(change: Change) -> Pair:
    parting = change.parting
    shared = parting.shared if parting else None
    return Pair(
        case=one_line(change.case),
        became=("gained" if change.is_correct else "lost") if change.flipped else "",
        where=_where(parting),
        sides=(
            _side(change.reference, shared, parting.reference_text if parting else ""),
            _side(change.trial, shared, parting.text if parting else ""),
        ),
    )


def _side(trial: Trial, shared: str | None, rest: str) -> Side:
    """`shared` is None where the two do not part: the text is shown whole then, without a mark."""
    made = {"who": one_line(trial.variant), "grade": _grade(trial)}
    if trial.generation is None:
        return Side(**made, shared="", mark="", rest="", missing=one_line(trial.error or "no answer"))
    if shared is None:
        return Side(**made, shared=_cut(plain(trial.generation.text)), mark="", rest="")
    before, after = plain(shared), plain(rest)
    mark = _WORD.match(after)
    first = mark[0] if mark else ""
    return Side(
        **made,
        shared=before if len(before) <= _BEFORE else f"… {before[-_BEFORE:].lstrip()}",
        mark="".join(_VISIBLE.get(c, c) for c in first) if first.isspace() else first or _ENDS,
        rest=_cut(after[len(first) :]),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"


def _grade(trial: Trial) -> str:
    score = trial.score
    if score.correct is None:
        return str(score.status)
    answer = f", taken as “{one_line(score.answer, 60)}”" if score.answer else ""
    return f"{'right' if score.correct else 'wrong'}{answer}"


def _where(parting: Parting | None) -> str:
    if parting is None:
        return "the same, token for token"
    told = [f"parts at token {parting.position}"]
    if parting.reference_logprob is not None:
        here = f", {_p(parting.reference_token_here)} here" if parting.reference_token_here is not None else ""
        told.append(f"the reference’s token has p {_p(parting.reference_logprob)} there{here}")
    if parting.logprob is not None:
        there = f", {_p(parting.logprob_there)} there" if parting.logprob_there is not None else ""
        told.append(f"its own has p {_p(parting.logprob)} here{there}")
    if parting.lead is not None:
        told.append(f"a lead of {wording.lead(parting.lead)} nats")
    if parting.near_tie:
        told.append("a near tie")
    if parting.unknown:
        told.append(f"how close it was is not known: {one_line(parting.unknown)}")
    return "; ".join(told)


def _p(logprob: float | None) -> str:
    return wording.ABSENT if logprob is None else wording.score(math.exp(min(logprob, 0.0)))
