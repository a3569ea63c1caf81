"""The determinism control: which cases can testify that a variant's answers got worse.

Another number of threads adds the same numbers in another order, so logits move by a little and now and then an answer
with them. A case that is graded otherwise under another number of threads says nothing about what changed in the software.
Only cases whose grade changed are worth asking again, and those that cannot hold their grade are left out of the test,
whichever way they flipped.
"""

from __future__ import annotations

from collections.abc import Sequence

from suite.gate.answers import CREDIT_GRAIN, Pair, answer_of, outcome_of_answer, pair_answers
from suite.records import QualityBaseline, Trial, TrialStatus


def which_to_ask_again(trials: Sequence[Trial], baseline: QualityBaseline | None) -> tuple[str, ...]:
    """Cases of one variant whose grade differs from the accepted one, in the order of the trials.

    Only answers to the same question count: cases without an accepted answer, or whose version, scorer or prompt
    changed since, cannot be compared anyway. Nothing is asked again without a baseline.
    """
    pairing = pair_answers(trials, baseline.cases if baseline else {})
    return tuple(pair.case for pair in pairing.pairs if is_graded_otherwise(pair))


def find_silent(trials: Sequence[Trial], control: Sequence[Trial]) -> tuple[str, ...]:
    """Cases that cannot testify: their control answer is graded otherwise than the present one.

    `control` holds the same cases of the same variant under another number of threads. A case without a control answer,
    or whose control ended in an error, keeps its voice: nothing was shown against it.
    """
    asked = {trial.case: answer_of(trial) for trial in control if trial.score.status is not TrialStatus.ERROR}
    return tuple(pair.case for pair in pair_answers(trials, asked).pairs if is_graded_otherwise(pair))


def is_graded_otherwise(pair: Pair) -> bool:
    """Another status, right instead of wrong (or the reverse), or a credit that differs by more than is stored."""
    was, now = (outcome_of_answer(pair.domain, answer) for answer in (pair.was, pair.now))
    return was.status is not now.status or was.correct is not now.correct or abs(was.credit - now.credit) > CREDIT_GRAIN
