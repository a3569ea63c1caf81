"""Where an answer parts from the reference's, and how close the choice was there.

Positions are those of the answers' tokens, the first is 0, as in `run.json`. What is known of a position comes from the pass
through the reference trace, as far as the trace is of the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from suite.metrics.quality import outcome_of
from suite.records import Departure, Forced, Generation, Run, Trial, TrialStatus

NEAR_TIE = 0.1
"""Nats: two tokens of which one leads by less are as likely as each other to within ten per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The first token at which two answers differ."""

    position: int
    shared: str
    """The text of both before it."""
    reference_text: str
    """The reference's from there on; "" where it ends."""
    text: str
    """The variant's."""
    reference_token: int | None
    """None: the answer has ended."""
    token: int | None
    reference_logprob: float | None = None
    """Of the reference's token, as the reference has it; nats. None where nobody told."""
    reference_token_here: float | None = None
    """Of the same token, as the variant has it."""
    logprob: float | None = None
    """Of the variant's token, as the variant has it."""
    logprob_there: float | None = None
    """Of the same token, as the reference has it; None too where that is far down."""
    lead: float | None = None
    """By how many nats the variant prefers its token to the reference's."""
    unknown: str = ""
    """Why the lead is not known."""

    @property
    def near_tie(self) -> bool | None:
        """Whether it was one to the reference or, where that is not known, to the variant; None where neither is known."""
        lead = self.lead if self.reference_lead is None else self.reference_lead
        return None if lead is None else lead < NEAR_TIE

    @property
    def reference_lead(self) -> float | None:
        """By how many nats the reference prefers its token to the variant's."""
        if self.reference_logprob is None or self.logprob_there is None:
            return None
        return self.reference_logprob - self.logprob_there


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One case as the reference and a variant answered it."""

    case: str
    reference: Trial
    trial: Trial
    was_correct: bool
    is_correct: bool
    parting: Parting | None
    """None when the answers are the same, token for token, or one is missing."""

    @property
    def flipped(self) -> bool:
        """Whether it is right on one side and wrong on the other."""
        return self.was_correct is not self.is_correct


def find_changes(run: Run, variant: str, reference: str) -> tuple[Change, ...]:
    """Every case that both answered, the lost ones first, then the gained ones, then the rest; by name.

    Answers that ended in an error are left out: they are no answers.
    """
    theirs = {trial.case: trial for trial in run.trials if trial.variant == reference and _is_answer(trial)}
    forced: dict[str, list[Forced]] = {}
    for one in run.forced:
        if one.variant in (variant, reference):
            forced.setdefault(one.case, []).append(one)
    found = [
        _change(theirs[trial.case], trial, forced.get(trial.case, []))
        for trial in run.trials
        if trial.variant == variant and trial.case in theirs and _is_answer(trial)
    ]
    return tuple(sorted(found, key=lambda change: (not change.flipped, change.is_correct, change.case)))


def _is_answer(trial: Trial) -> bool:
    return trial.score.status is not TrialStatus.ERROR


def _change(reference: Trial, trial: Trial, forced: Sequence[Forced]) -> Change:
    both = reference.generation is not None and trial.generation is not None
    return Change(
        case=trial.case,
        reference=reference,
        trial=trial,
        was_correct=outcome_of(reference).correct,
        is_correct=outcome_of(trial).correct,
        parting=part(reference, trial, forced) if both else None,
    )


def part(reference: Trial, trial: Trial, forced: Iterable[Forced]) -> Parting | None:
    """Where two answers to one case part; None when they are the same, or one is missing.

    `forced` holds what both variants made of the trace of this case.
    """
    theirs, mine = reference.generation, trial.generation
    if theirs is None or mine is None:
        return None
    position = _first_difference(theirs.token_ids, mine.token_ids)
    if position is None:
        return None
    at = _shared_length(theirs.text, mine.text)
    parting = Parting(
        position=position,
        shared=theirs.text[:at],
        reference_text=theirs.text[at:],
        text=mine.text[at:],
        reference_token=_at(theirs.token_ids, position),
        token=_at(mine.token_ids, position),
    )
    found = list(forced)
    own = [one for one in found if one.variant == trial.variant]
    unknown = _doubt(reference, trial, [one for one in found if one.variant == reference.variant], own, position)
    return _weigh(parting, own, mine) if not unknown else replace(parting, unknown=unknown)


def _doubt(reference: Trial, trial: Trial, theirs: Sequence[Forced], own: Sequence[Forced], position: int) -> str:
    """Why the trace tells nothing of a position; "" when it does."""
    if reference.prompt_sha256 != trial.prompt_sha256:
        return "the prompts have other token ids"
    if not own:
        return "it was not taken through the reference trace of this case"
    length = len(own[0].kld)
    answered = len(reference.generation.token_ids) if reference.generation else 0
    moved = any(d.position <= position for one in theirs if one.path == "batched" for d in one.departures)
    if length > answered + 1 or moved:
        return "the reference trace is of another answer than the one that the reference gave in this run"
    return f"the trace ends before it, at position {length}" if position >= length else ""


def _weigh(parting: Parting, own: Sequence[Forced], mine: Generation) -> Parting:
    """With the probabilities at its position: from the path that chose the same token as the answer did, if one does."""
    at = parting.position
    covering = [one for one in sorted(own, key=lambda one: one.path == "batched") if at not in one.broken]
    if not covering:
        return replace(parting, unknown="its logits there are no numbers")
    for one in covering:  # the decode path first: answers are decoded
        departure = _departure(one, at)
        if departure is not None and parting.token in (None, departure.token):
            here = one.logprobs[at]
            return replace(
                parting,
                token=departure.token,
                reference_logprob=one.reference_logprobs[at],
                reference_token_here=here,
                logprob=departure.logprob,
                logprob_there=departure.reference_logprob,
                lead=departure.lead,
            )
    logprob = mine.logprobs[at] if mine.logprobs is not None and at < len(mine.logprobs) else None
    here = covering[0].logprobs[at]
    return replace(
        parting,
        reference_logprob=covering[0].reference_logprobs[at],
        reference_token_here=here,
        logprob=logprob,
        lead=None if logprob is None else logprob - here,
        unknown="" if logprob is not None else _other_path(_departure(covering[0], at), covering[0].path),
    )


def _other_path(departure: Departure | None, path: str) -> str:
    chosen = "the reference's token" if departure is None else f"token {departure.token}"
    way = "evaluated in batches" if path == "batched" else "evaluated token by token"
    return f"{way}, it prefers {chosen} there: its prefill and decode kernels do not agree"


def _departure(one: Forced, position: int) -> Departure | None:
    return next((departure for departure in one.departures if departure.position == position), None)


def _at(ids: Sequence[int], position: int) -> int | None:
    return ids[position] if position < len(ids) else None


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    pairs = enumerate(zip_longest(one, other))
    return next((position for position, (left, right) in pairs if left != right), None)


def _shared_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((at for at, (left, right) in enumerate(pairs) if left != right), shorter)
