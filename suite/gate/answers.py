"""One answer in the form in which it is accepted, so that old and new are compared like with like."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.metrics.quality import Outcome
from suite.records import BaselineCase, Trial, TrialStatus

CREDIT_GRAIN = 5e-4
"""Credits closer than this are equal: baselines store four significant digits."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One case answered then and now, by the same question."""

    case: str
    domain: str
    was: BaselineCase
    now: BaselineCase
    family: str | None = None
    weighed: float | None = None
    """Mean log-probability per token that the *accepted* answer has now, nats; None when nobody can tell."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """A variant's answers beside the accepted ones."""

    pairs: tuple[Pair, ...]
    changed: Mapping[str, tuple[str, ...]]
    """Case → ``field: old → new`` for each field that makes it another question."""
    added: tuple[str, ...]
    """Cases that nothing was accepted for."""


def answer_of(trial: Trial) -> BaselineCase:
    """The trial's answer as it would be accepted."""
    tokens = trial.generation.token_ids if trial.generation else ()
    logprob = mean_logprob(trial.generation.logprobs) if trial.generation else None
    score = trial.score
    return BaselineCase(
        version=trial.case_version,
        scorer=trial.scorer,
        prompt_sha256=trial.prompt_sha256,
        status=score.status,
        score=score.value,
        correct=score.correct,
        answer=score.answer,
        output_sha256=hash_tokens(tokens),
        output_tokens=len(tokens),
        output_ids=" ".join(map(str, tokens)) if logprob is not None else None,
        logprob=logprob,
    )


def ids_of(answer: BaselineCase) -> tuple[int, ...] | None:
    """The token ids of an accepted answer; None when they were not kept, or are not those that were hashed."""
    try:
        ids = tuple(int(word) for word in (answer.output_ids or "").split())
    except ValueError:  # edited by hand
        return None
    return ids if hash_tokens(ids) == answer.output_sha256 else None


def mean_logprob(logprobs: Sequence[float] | None) -> float | None:
    """Mean log-probability per token, nats; None for none, as of an empty answer."""
    return math.fsum(logprobs) / len(logprobs) if logprobs else None


def weigh_accepted(trial: Trial, was: BaselineCase) -> float | None:
    """Mean log-probability per token that the variant of `trial` gives the accepted answer `was`; None when it is not known.

    From the trial's own answer when that is the accepted one, else from what the variant was made to weigh.
    """
    generation = trial.generation
    if generation is not None and hash_tokens(generation.token_ids) == was.output_sha256:
        return mean_logprob(generation.logprobs)
    return trial.accepted_logprob if trial.accepted_sha256 == was.output_sha256 else None


def hash_tokens(token_ids: Sequence[int]) -> str:
    """SHA-256, hexadecimal, of the token ids in decimal with a comma between them."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode("ascii")).hexdigest()


def outcome_of_answer(domain: str, answer: BaselineCase) -> Outcome:
    """The answer as the quality metrics see it: no credit unless it was scored."""
    scored = answer.status is TrialStatus.SCORED
    return Outcome(
        domain=domain,
        status=answer.status,
        credit=(answer.score or 0.0) if scored else 0.0,
        correct=scored and answer.correct is True,
        tokens=answer.output_tokens,
    )


def pair_answers(trials: Sequence[Trial], accepted: Mapping[str, BaselineCase]) -> Pairing:
    """Pair each trial with the accepted answer to the same question; trials that ended in an error are left out."""
    pairs: list[Pair] = []
    changed: dict[str, tuple[str, ...]] = {}
    added: list[str] = []
    for trial in trials:
        if trial.score.status is TrialStatus.ERROR:
            continue
        now, was = answer_of(trial), accepted.get(trial.case)
        if was is None:
            added.append(trial.case)
        elif differences := _question_differences(was, now):
            changed[trial.case] = differences
        else:
            pairs.append(Pair(trial.case, trial.domain, was, now, trial.family, weigh_accepted(trial, was)))
    return Pairing(tuple(pairs), changed, tuple(added))


def is_same_answer(pair: Pair) -> bool:
    """Token for token the same, and graded the same."""
    was, now = (outcome_of_answer(pair.domain, answer) for answer in (pair.was, pair.now))
    return (
        pair.was.output_sha256 == pair.now.output_sha256
        and was.status is now.status
        and was.correct is now.correct
        and abs(was.credit - now.credit) <= CREDIT_GRAIN
    )


def _question_differences(was: BaselineCase, now: BaselineCase) -> tuple[str, ...]:
    fields = (
        ("version", was.version, now.version),
        ("scorer", was.scorer, now.scorer),
        ("prompt_sha256", was.prompt_sha256, now.prompt_sha256),
    )
    return tuple(f"{name}: {old} → {new}" for name, old, new in fields if old != new)
