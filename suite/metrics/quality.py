"""Quality of one variant: graded answers → measurements for each domain and for ``all``.

An answer that is truncated, empty or unparsable earns no credit, and is counted in a metric of its own, so that a lower
score can be told from a token budget that ran out. An answer that the worker failed to give is no answer: with one of
those, nothing in its scope is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.records import Measurement, Trial, TrialStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer, reduced to what the metrics need."""

    domain: str
    status: TrialStatus
    credit: float
    """0..1; 0 unless the answer was scored."""
    correct: bool
    tokens: int


def outcome_of(trial: Trial) -> Outcome:
    """The trial as an outcome."""
    scored = trial.score.status is TrialStatus.SCORED
    return Outcome(
        domain=trial.domain,
        status=trial.score.status,
        credit=(trial.score.value or 0.0) if scored else 0.0,
        correct=scored and trial.score.correct is True,
        tokens=len(trial.generation.token_ids) if trial.generation else 0,
    )


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
"""Metric identifier → its value for one answer; the metric is the mean."""


def mean_of(metric: str, outcomes: Sequence[Outcome]) -> float:
    """Mean of one metric over the outcomes, at least one."""
    return math.fsum(PER_OUTCOME[metric](outcome) for outcome in outcomes) / len(outcomes)


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
    return tuple(_measure(metric, scope, outcomes) for metric in PER_OUTCOME for scope, outcomes in scopes.items())


def _measure(metric: str, scope: str, outcomes: Sequence[Outcome]) -> Measurement:
    failed = sum(outcome.status is TrialStatus.ERROR for outcome in outcomes)
    answered = [outcome for outcome in outcomes if outcome.status is not TrialStatus.ERROR]
    samples = tuple(PER_OUTCOME[metric](outcome) for outcome in answered)
    if failed:
        reason = f"{failed} of {len(outcomes)} cases ended in an error"
        return Measurement(
            metric=metric, scope=scope, value=None, samples=samples, status="not_measured", reason=reason
        )
    return Measurement(metric=metric, scope=scope, value=mean_of(metric, answered), samples=samples)
