"""How likely the present variant finds the answer that was accepted to the same question, whatever it says itself now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from suite.engine.launching import LiveVariant
from suite.errors import VariantError, WorkerDied, WorkerTimeout
from suite.gate.answers import ids_of, mean_logprob, pair_answers, weigh_accepted
from suite.records import BaselineCase, Trial

Accepted = Mapping[str, BaselineCase]
"""Accepted answers by case."""


def weigh_trial(live: LiveVariant, trial: Trial, accepted: Accepted, prompt: Sequence[int]) -> Trial:
    """The trial with the log-probability of the accepted answer: its own, or else fed to the variant token by token.

    As it is without an accepted answer to the same question. A backend that cannot tell, or refuses, leaves it unknown.
    Raises WorkerDied and WorkerTimeout.
    """
    pair = next(iter(pair_answers([trial], accepted).pairs), None)
    if pair is None:
        return trial
    weighed = pair.weighed
    if weighed is None and (ids := _asks_to_weigh(trial, pair.was)):
        weighed = _weigh(live, prompt, ids)
    return dataclasses.replace(trial, accepted_logprob=weighed, accepted_sha256=pair.was.output_sha256)


def find_unweighed(trials: Iterable[Trial], accepted: Accepted) -> list[Trial]:
    """The trials of which the accepted answer could be weighed and was not: it came to be known, or another one, later."""
    pairs = {pair.case: pair for pair in pair_answers(tuple(trials), accepted).pairs}
    return [
        trial
        for trial in trials
        if trial.case in pairs
        and trial.accepted_sha256 != pairs[trial.case].was.output_sha256
        and _asks_to_weigh(trial, pairs[trial.case].was)
    ]


def _asks_to_weigh(trial: Trial, was: BaselineCase) -> tuple[int, ...] | None:
    """The token ids to weigh; None (or empty) where the trial tells by itself, or its backend cannot."""
    if weigh_accepted(trial, was) is not None or trial.generation is None or trial.generation.logprobs is None:
        return None
    return ids_of(was)


def _weigh(live: LiveVariant, prompt: Sequence[int], ids: Sequence[int]) -> float | None:
    try:
        return mean_logprob(live.weigh(prompt, ids))
    except (WorkerDied, WorkerTimeout):
        raise
    except VariantError:  # the accepted answer was longer than the context is now, or the like
        return None
