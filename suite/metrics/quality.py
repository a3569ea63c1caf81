"""Quality of one variant: graded answers → measurements for each domain and for ``all``.

An answer that is truncated, empty or unparsable earns no credit, and is counted in a metric of its own, so that a lower
score can be told from a token budget that ran out. An answer that the worker failed to give is no answer: with one of
those, nothing in its scope is measured.

Looping is measured from token ids, which not every baseline stores: it is compared within a run, never with what was accepted.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from suite.records import Measurement, Trial, TrialStatus

LONGEST_BLOCK = 32
"""Tokens of the longest block whose repetition is looked for: a sentence, or a few lines of a list."""

FEWEST_BLOCKS, FEWEST_LOOPED = 4, 24
"""A loop repeats its block so often, and covers so many tokens: ``ha ha ha`` is not one yet."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer, reduced to what the metrics need."""

    domain: str
    status: TrialStatus
    credit: float
    """0..1; 0 unless the answer was scored."""
    correct: bool
    tokens: int
    loops: bool | None = None
    """Whether it ends in a repetition loop; None where no token ids are known, as in a baseline."""


def outcome_of(trial: Trial) -> Outcome:
    """The trial as an outcome."""
    scored = trial.score.status is TrialStatus.SCORED
    tokens = trial.generation.token_ids if trial.generation else ()
    return Outcome(
        domain=trial.domain,
        status=trial.score.status,
        credit=(trial.score.value or 0.0) if scored else 0.0,
        correct=scored and trial.score.correct is True,
        tokens=len(tokens),
        loops=ends_in_loop(tokens),
    )


def ends_in_loop(token_ids: Sequence[int]) -> bool:
    """Whether the tail repeats one block of 1 to 32 tokens at least 4 times in full, and over at least 24 tokens.

    A block that is cut off at the very end still counts into the tokens. An answer that repeats itself and then goes on
    is no loop: it found its way out.
    """
    return any(
        _repeated(token_ids, block) >= max(FEWEST_BLOCKS * block, FEWEST_LOOPED)
        for block in range(1, min(LONGEST_BLOCK, len(token_ids) // FEWEST_BLOCKS) + 1)
    )


def _repeated(token_ids: Sequence[int], block: int) -> int:
    """Length of the longest tail in which every token is the one a `block` before it."""
    earlier = reversed(token_ids[:-block])
    same = takewhile(operator.truth, map(operator.eq, reversed(token_ids), earlier))
    return block + sum(1 for _ in same)


def _rate(status: TrialStatus) -> Callable[[Outcome], float]:
    return lambda outcome: float(outcome.status is status)


PER_OUTCOME: Mapping[str, Callable[[Outcome], float]] = {
    "score": lambda outcome: outcome.credit,
    "exact": lambda outcome: float(outcome.correct),
    "output_tokens": lambda outcome: float(outcome.tokens),
    "truncated": _rate(TrialStatus.TRUNCATED),
    "empty": _rate(TrialStatus.EMPTY),
    "unparsable": _rate(TrialStatus.UNPARSABLE),
}
"""Metric identifier → its value for one answer; the metric is the mean. All that an accepted answer can tell too."""

MEASURED: Mapping[str, Callable[[Outcome], float]] = {
    **PER_OUTCOME,
    "looping": lambda outcome: float(outcome.loops is True),
}
"""The same, with what only a present answer tells."""


def mean_of(metric: str, outcomes: Sequence[Outcome]) -> float:
    """Mean of one metric over the outcomes, at least one."""
    return math.fsum(MEASURED[metric](outcome) for outcome in outcomes) / len(outcomes)


def by_scope(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of ``all``, and of each domain in alphabetical order; empty when there are none."""
    everything = list(outcomes)
    scopes = {"all": everything} if everything else {}
    for domain in sorted({outcome.domain for outcome in everything}):
        scopes[domain] = [outcome for outcome in everything if outcome.domain == domain]
    return scopes


def measure_quality(trials: Sequence[Trial]) -> tuple[Measurement, ...]:
    """Measurements of one variant's answers, by metric, then ``all`` and each domain. Samples: one an answer."""
    scopes = by_scope(outcome_of(trial) for trial in trials)
    return tuple(_measure(metric, scope, outcomes) for metric in MEASURED for scope, outcomes in scopes.items())


def _measure(metric: str, scope: str, outcomes: Sequence[Outcome]) -> Measurement:
    failed = sum(outcome.status is TrialStatus.ERROR for outcome in outcomes)
    answered = [outcome for outcome in outcomes if outcome.status is not TrialStatus.ERROR]
    samples = tuple(MEASURED[metric](outcome) for outcome in answered)
    if failed:
        reason = f"{failed} of {len(outcomes)} cases ended in an error"
        return Measurement(
            metric=metric, scope=scope, value=None, samples=samples, status="not_measured", reason=reason
        )
    return Measurement(metric=metric, scope=scope, value=mean_of(metric, answered), samples=samples)
