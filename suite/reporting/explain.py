"""Why a variant answers otherwise than the reference: what flipped, where, how close it was, and what may be to blame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.metrics.fidelity import PATH_DISTANCE
from suite.records import ALL, Flip, Forced, Run, Trial, VariantResult
from suite.reporting import wording
from suite.reporting.fidelity import describe_legs, legs_of
from suite.reporting.hints import Hint, besides_weights, other_prompts, since_baseline
from suite.reporting.hostile import columns, cut, one_line, plain, quoted, wrapped
from suite.reporting.parting import Change, Parting, find_changes
from suite.reporting.positions import broken_lines, case_lines, departure_lines, places_of, worst_lines

_FEW, _MANY = 3, 20
"""Flips, and rows of a table, that are shown of each variant when all are, and when one is asked for."""
_ROWS = 5
_LEGEND = (
    "Positions count the tokens of an answer from 0. p ref, p here: probability of the reference's token, by the reference and "
    "by the variant; prefers: the variant's likeliest token, where it is another one; its p and lead (nats): by the variant. "
    "KLD in nats, a lower bound."
)
_SHARED = 34
"""Columns of the text before a parting, at most."""
_NARROWEST = 20
"""Columns of an answer, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be explained."""

    variant: str | None = None
    """None: every variant but the reference."""
    case: str | None = None
    """None: every case that flipped."""
    width: int = 80

    @property
    def flips(self) -> int:
        """How many flips of a variant are shown whole."""
        return _FEW if self.variant is None else 10**6

    @property
    def rows(self) -> int:
        """How many rows a table has at most."""
        return _ROWS if self.variant is None and self.case is None else _MANY


def explain_lines(run: Run, asked: Asked) -> Iterator[str]:
    """Yield the explanation line by line, without line feeds; text of models is made safe for a terminal."""
    reference = run.matrix.reference.name if run.matrix.reference else None
    present = reference is not None and any(trial.variant == reference for trial in run.trials)
    yield from wrapped(f"{one_line(run.model)} · run {one_line(run.id)}", asked.width)
    if not present:
        yield from wrapped(
            "The reference answered nothing in this run, so there are no answers of it to hold others against.",
            asked.width,
        )
    for result in run.variants:
        if asked.variant in (None, result.variant.name) and (result.variant.name != reference or asked.variant):
            yield ""
            yield from _Screen(run, result, reference if present else None, asked).lines()
    if run.forced:
        yield ""
        yield from wrapped(_LEGEND, asked.width)


class _Screen:
    """The explanation of one variant."""

    def __init__(self, run: Run, result: VariantResult, reference: str | None, asked: Asked) -> None:
        self._run = run
        self._result = result
        self._name = result.variant.name
        self._reference = reference if reference != self._name else None
        self._is_reference = result.variant.reference
        self._asked = asked
        self._forced = tuple(one for one in run.forced if one.variant == self._name and asked.case in (None, one.case))

    def lines(self) -> Iterator[str]:
        """Numbers first, then causes, then answers, then positions."""
        name = one_line(self._name)
        if self._is_reference:
            yield f"{name} is the reference"
        else:
            yield f"{name} against {one_line(self._reference or 'the reference trace')}"
        if failure := self._result.failure:
            yield from self._said(f"{failure.verdict}: {one_line(failure.reason)}")
        if self._asked.case is None:
            yield from self._numbers()
            yield from self._causes()
        yield from broken_lines(self._forced, self._asked.width)
        yield from self._answers()
        yield from self._positions()

    def _said(self, text: str, indent: str = "  ") -> list[str]:
        return wrapped(one_line(text), self._asked.width, first=indent, rest=f"{indent}  ")

    # ------------------------------------------------------------------------------------------------- numbers

    def _numbers(self) -> Iterator[str]:
        values = {m.metric: m.value for m in self._result.measurements if m.scope == ALL}
        kld, same = values.get("mean_kld"), values.get("same_top_1")
        batched = [one for one in self._forced if one.path == "batched"]
        count = sum(len(one.kld) - len(one.broken) for one in batched)
        if kld is None:
            yield from self._said(self._unmeasured(batched, count))
            return
        text = f"mean KLD {wording.nats(kld)} nats over {count} positions of {wording.counted(len(batched), 'answer')}"
        yield from self._said(text + (f"; same likeliest token at {100 * same:.1f} %" if same is not None else ""))
        legs = next((legs for legs in legs_of(self._run) if legs.variant == self._name), None)
        if legs is not None:
            yield from self._said(f"made of: {one_line(describe_legs(legs))}")
        if (distance := values.get(PATH_DISTANCE)) is not None and distance > 0:
            yield from self._said(f"its own prefill and decode paths are {wording.nats(distance)} nats apart")

    def _unmeasured(self, batched: Sequence[Forced], count: int) -> str:
        """Why there is no mean with an interval; a part of the cases has a mean of its own all the same."""
        if not count:
            return "fidelity was not measured of it in this run"
        mean = math.fsum(value for one in batched for at, value in enumerate(one.kld) if at not in one.broken) / count
        answers = wording.counted(len(batched), "answer")
        return f"KLD {wording.nats(mean)} nats over {count} positions of {answers}: too few to be held against anything"

    # -------------------------------------------------------------------------------------------------- causes

    def _causes(self) -> Iterator[str]:
        changes = since_baseline(self._run, self._result)
        if changes is None:
            yield from self._said("causes: nothing was accepted yet that it could be compared with")
        elif not changes.hints:
            yield from self._said(
                f"causes: nothing that is recorded changed since the baseline ({one_line(changes.accepted)})"
            )
        else:
            only = ", and only weights did" if changes.only_weights else ""
            yield from self._said(f"causes: changed since the baseline ({one_line(changes.accepted)}){only}:")
            yield from self._hints(changes.hints)
        other = self._peer()
        hints = besides_weights(self._result, other) if other is not None else ()
        if other is not None and hints:
            yield from self._said(f"besides its weights it differs from {one_line(other.variant.name)} in:")
            yield from self._hints(hints)
        if self._reference is not None and (said := other_prompts(self._run, self._name, self._reference)):
            yield from self._said(one_line(said))

    def _hints(self, hints: Sequence[Hint]) -> Iterator[str]:
        for hint in hints:
            yield from self._said(f"{hint.kind}: {one_line(hint.text)}", "    ")

    def _peer(self) -> VariantResult | None:
        """The variant that this one differs from by its weights alone, if all is well; else the reference."""
        named = next((one.peer for one in self._forced if one.peer is not None), self._reference)
        return next((r for r in self._run.variants if r.variant.name == named and named != self._name), None)

    # ------------------------------------------------------------------------------------------------- answers

    def _answers(self) -> Iterator[str]:
        if self._asked.case is None:
            yield from self._since_baseline()
        if self._reference is None:
            yield from self._alone()
            return
        changes = find_changes(self._run, self._name, self._reference)
        if self._asked.case is not None:
            chosen = [change for change in changes if change.case == self._asked.case]
            if not chosen:
                yield from self._said("it was not answered by both")
        else:
            chosen = [change for change in changes if change.flipped]
            yield from self._summary(changes)
        for change in chosen[: self._asked.flips]:
            yield ""
            yield from self._change(change)
        if left := chosen[self._asked.flips :]:
            yield ""
            names = wording.listed([one_line(change.case) for change in left], 8)
            yield from self._said(f"and {len(left)} more: {names}; all of them with --variant {self._name}")

    def _alone(self) -> Iterator[str]:
        """What it answered itself to the case that is asked for, where there is nothing to hold it against."""
        for trial in self._run.trials:
            if trial.variant == self._name and trial.case == self._asked.case:
                yield from self._said(f"{one_line(trial.case)}: {_graded(trial)}")
                text = _visible(trial.generation.text) if trial.generation else ""
                yield f"    {cut(text, max(self._asked.width - 4, _NARROWEST))}"

    def _summary(self, changes: Sequence[Change]) -> Iterator[str]:
        if not changes:
            yield from self._said("answers: no case was answered by both")
            return
        lost = sum(change.flipped and change.was_correct for change in changes)
        gained = sum(change.flipped and change.is_correct for change in changes)
        same = sum(change.parting is None for change in changes)
        yield from self._said(
            f"answers: {lost} flipped to wrong, {gained} to right, of {len(changes)}; {same} are the same token for token"
        )

    def _since_baseline(self) -> Iterator[str]:
        flips: dict[str, Flip] = {
            flip.case: flip
            for finding in self._run.findings
            if finding.variant == self._name
            for flip in finding.comparison.flips
        }
        for word, right in (("wrong", False), ("right", True)):
            cases = sorted(case for case, flip in flips.items() if flip.is_correct is right)
            if cases:
                names = wording.listed([one_line(case) for case in cases], 8)
                yield from self._said(f"since the baseline {len(cases)} flipped to {word}: {names}")

    def _change(self, change: Change) -> Iterator[str]:
        words = {True: "right", False: "wrong"}
        became = f"{words[change.was_correct]} → {words[change.is_correct]}"
        yield from self._said(
            f"{change.case}: {became if change.flipped else f'{words[change.is_correct]} on both sides'}"
        )
        names = [one_line(str(self._reference)), one_line(self._name)]
        label = max(columns(name) for name in names)
        for name, trial in zip(names, (change.reference, change.trial), strict=True):
            room = max(self._asked.width - 6 - label, _NARROWEST)
            yield f"    {_pad(name, label)}  {cut(_graded(trial), room)}"
        if change.parting is None:
            yield "    the answers are the same, token for token"
        else:
            yield from self._parting(change.parting, names, label)

    def _parting(self, parting: Parting, names: Sequence[str], label: int) -> Iterator[str]:
        where = f"    they part at position {parting.position}"
        room = self._asked.width - columns(f"{where}, after ") - columns('"…"')
        shared = _tail(parting.shared, max(min(_SHARED, room), 1))
        yield f"{where}, after {shared}" if shared else where
        tokens = (parting.reference_token, parting.token)
        texts = (parting.reference_text, parting.text)
        for name, token, text in zip(names, tokens, texts, strict=True):
            number = f"token {token}" if token is not None else "no token"
            room = max(self._asked.width - 8 - label - len(number), _NARROWEST)
            yield f"    {_pad(name, label)}  {number}  {_head(text, room)}"
        yield from self._said(_closeness(parting, names), "    ")

    # ----------------------------------------------------------------------------------------------- positions

    def _positions(self) -> Iterator[str]:
        forced: Sequence[Forced] = self._forced
        places, rows, width = places_of(forced), self._asked.rows, self._asked.width
        if not places:
            return
        yield ""
        if self._asked.case is not None:
            yield from case_lines(places, rows, width)
            yield from worst_lines(places, _ROWS, width)
            return
        if self._asked.variant is not None or any(place.departure for place in places):
            yield from worst_lines(places, rows, width)
        yield from departure_lines(places, rows, width)


def _closeness(parting: Parting, names: Sequence[str]) -> str:
    """Both tokens with probabilities, and whether it was a near tie."""
    reference, name = names
    told = []
    if parting.reference_logprob is not None:
        here = f", {_p(parting.reference_token_here)} by {name}"
        told.append(f"{_token(parting.reference_token)}: p {_p(parting.reference_logprob)} by {reference}{here}")
    if parting.logprob is not None:
        there = f"{_p(parting.logprob_there)} by {reference}, " if parting.logprob_there is not None else ""
        told.append(f"{_token(parting.token)}: p {there}{_p(parting.logprob)} by {name}")
    if parting.lead is not None:
        tie = "a near tie" if parting.near_tie else "no near tie"
        by = "" if parting.reference_lead is None else f"{wording.lead(parting.reference_lead)} nat by {reference}, "
        told.append(f"lead {by}{wording.lead(parting.lead)} nat{f' by {name}' if by else ''}: {tie}")
    elif parting.unknown:
        told.append(f"how close it was is not known: {parting.unknown}")
    return "; ".join(told)


def _token(token: int | None) -> str:
    return "the end" if token is None else f"token {token}"


def _p(logprob: float | None) -> str:
    return wording.ABSENT if logprob is None else f"{math.exp(min(logprob, 0.0)):.3f}"


def _graded(trial: Trial) -> str:
    """What was extracted of an answer, or why nothing was."""
    if trial.score.answer is not None:
        return quoted(trial.score.answer, 10**4)
    return f"no answer found ({trial.score.status})"


def _visible(text: str) -> str:
    """Safe text on one line, in which line feeds show."""
    return plain(text).replace("\n", "⏎")


def _head(text: str, room: int) -> str:
    """The beginning of a text, in quotation marks, in `room` columns."""
    shown = _visible(text)
    return f'"{cut(shown, max(room - 2, 1))}"' if shown else "its answer ends here"


def _tail(text: str, room: int) -> str:
    """The end of a text, in quotation marks."""
    shown = _visible(text)
    if not shown:
        return ""
    kept = shown[-room:]
    while columns(kept) > room:
        kept = kept[1:]
    return f'"{"…" if len(kept) < len(shown) else ""}{kept}"'


def _pad(text: str, width: int) -> str:
    return text + " " * (width - columns(text))
