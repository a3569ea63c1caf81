"""Scorers as a user would write them, found by their dotted path."""

from __future__ import annotations

from suite.records import Case, Score, TrialStatus


class Polite:
    """Full score for the magic word."""

    name = "polite"
    version = 3

    def __init__(self, word: str = "please") -> None:
        self.word = word

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        found = self.word in answer
        return Score(status=TrialStatus.SCORED, value=float(found), correct=found, answer=answer, rule="polite")


def short(answer: str, case: Case, *, truncated: bool, limit: int = 10) -> Score:
    """Full score for a short answer."""
    fits = len(answer) <= limit
    return Score(status=TrialStatus.SCORED, value=float(fits), correct=fits, answer=answer, rule="length")


ready = Polite("thanks")
nonsense = 7
