"""Scores that a user's own tests give to answers of a variant: trials like those of the cases, under names of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection

from suite.engine.answering import OWN_TEST, make_trial
from suite.errors import UsageError
from suite.records import Case, Generation, Score, ScorerSpec, Trial, TrialStatus


class OwnTrials:
    """Enters them. `cases` are the ids that are taken; `record` writes a trial down."""

    def __init__(self, cases: Collection[str], record: Callable[[object], None]) -> None:
        self._cases = cases
        self._record = record
        self._claimed: dict[tuple[str, str], str] = {}
        """Variant and trial → the test that entered it."""

    def claim(self, variant: str, trial: str, test: str) -> None:
        """Reserve the trial ``domain/name`` of a variant for one test, which may enter it again.

        Raises UsageError when another test entered it already: one of the two scores would be lost.
        """
        owner = self._claimed.setdefault((variant, trial), test)
        if owner != test:
            raise UsageError(f"'{trial}' was recorded by {owner} already; give record() another name= or domain=")

    def record(self, variant: str, name: str, *, score: float, domain: str, generation: Generation | None) -> Trial:
        """Enter a score as a trial of ``domain/name``. Raises UsageError when a case has that id already."""
        if f"{domain}/{name}" in self._cases:
            raise UsageError(
                f"'{domain}/{name}' is a case of the matrix; record the score under another domain or name"
            )
        case = Case(
            id=f"{domain}/{name}", domain=domain, version=1, prompt="", target="", scorer=ScorerSpec(name=OWN_TEST),
            max_new_tokens=len(generation.token_ids) if generation else 0,
        )  # fmt: skip
        graded = Score(
            status=TrialStatus.SCORED,
            value=score,
            correct=score >= 1.0,
            answer=generation.text if generation else None,
            rule=OWN_TEST,
        )
        trial = make_trial(variant, case, (), graded, generation)
        self._record(trial)
        return trial
