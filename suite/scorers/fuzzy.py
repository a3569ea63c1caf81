"""Fuzzy text: the answer resembles the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from suite.records import Case, Score
from suite.scorers.anchors import find_anchored
from suite.scorers.base import not_found, scored

_METHODS = {"ratio": fuzz.ratio, "token_sort": fuzz.token_sort_ratio}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzy:
    """The value is the similarity of answer and target, 0..1; correct from ``threshold`` on.

    Similarity is rapidfuzz's ``ratio`` (normalised indel distance), or ``token_sort`` when the order of words does
    not matter, of the lower-cased texts without punctuation. An anchored answer comes first, then the ``first-line``
    of several, else the ``whole`` answer. A truncated answer is scored through a closed anchor only.

    What does *not* match: a right answer in other words, because letters are compared, not meanings; an answer hidden
    in a long text. rapidfuzz's partial and set ratios are not offered: an answer of one common word would match every
    target.
    """

    name: ClassVar[str] = "fuzzy"
    version: ClassVar[int] = 1

    threshold: float = 0.8
    method: Literal["ratio", "token_sort"] = "ratio"
    anchor: str = ""
    """A mark after which the case expects the answer."""

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer` by similarity; UNPARSABLE when only punctuation is left of it."""
        for rule, text in self._candidates(answer, truncated=truncated):
            if default_process(text):
                value = self.similarity(text, case.target)
                explanation = f"similarity {value:.2f} to {case.target!r}, correct from {self.threshold:g}"
                return scored(value, correct=value >= self.threshold, answer=text, rule=rule, explanation=explanation)
        return not_found(truncated=truncated, wanted="a text")

    def similarity(self, answer: str, target: str) -> float:
        """Similarity of two texts, 0..1."""
        return float(_METHODS[self.method](answer, target, processor=default_process)) / 100

    def faults(self, case: Case) -> tuple[str, ...]:
        """A target of which nothing is left, a threshold outside 0..1, an unknown method."""
        faults = []
        if not default_process(case.target):
            faults.append(f"target {case.target!r} is only punctuation or white space")
        if not 0 < self.threshold <= 1:
            faults.append(f"scorer option 'threshold' must be above 0 and at most 1 (got {self.threshold!r})")
        return tuple(faults)

    def _candidates(self, answer: str, *, truncated: bool) -> list[tuple[str, str]]:
        anchored = [
            (found.rule, found.text)
            for found in find_anchored(answer, anchor=self.anchor)
            if found.closed or not truncated
        ]
        if truncated:
            return anchored
        first, newline, _ = answer.strip().partition("\n")
        return [*anchored, ("first-line" if newline else "whole", first.strip())]
