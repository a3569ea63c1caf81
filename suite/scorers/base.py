"""The seam of scorers: an answer and its case in, a `Score` out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from suite.records import Case, Score, TrialStatus


class Scorer(Protocol):
    """Grades one answer. Build one with the options of a case; it keeps no state between answers."""

    @property
    def name(self) -> str:
        """Identifier that is written beside every score."""
        ...

    @property
    def version(self) -> int:
        """Raise it whenever the same answer could get another score: scores of two versions are not compared."""
        ...

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer`, which is not blank and holds no thoughts any more.

        `truncated` says that the token budget ran out: then only what clearly stands may be scored, everything else is
        TRUNCATED. An answer in which nothing can be found is UNPARSABLE. Neither has a value.
        """
        ...


@runtime_checkable
class ChecksCases(Protocol):
    """A scorer that can tell, before any model is loaded, that a case does not fit it."""

    def faults(self, case: Case) -> tuple[str, ...]:
        """One sentence for each thing in `case` that this scorer cannot work with; empty when it fits."""
        ...


def scored(value: float, *, correct: bool, answer: str, rule: str, explanation: str = "") -> Score:
    """A graded answer: `value` in 0..1."""
    return Score(
        status=TrialStatus.SCORED, value=value, correct=correct, answer=answer, rule=rule, explanation=explanation
    )


def verdict_of_match(matches: bool, *, answer: str, rule: str, target: str) -> Score:
    """All or nothing: 1 when `answer` matches `target`, else 0, with the sentence that says so."""
    explanation = "" if matches else f"expected {target!r}, found {answer!r}"
    return scored(float(matches), correct=matches, answer=answer, rule=rule, explanation=explanation)


def not_found(*, truncated: bool, wanted: str) -> Score:
    """The state of an answer in which no rule fired: TRUNCATED when the budget ran out, else UNPARSABLE."""
    if truncated:
        return Score(
            status=TrialStatus.TRUNCATED, explanation=f"the token budget ran out before {wanted} clearly stood"
        )
    return Score(status=TrialStatus.UNPARSABLE, explanation=f"no rule found {wanted} in the answer")
