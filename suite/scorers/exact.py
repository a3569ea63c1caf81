"""Exact text: the answer is the target, give or take case, quotes and closing punctuation."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

from suite.records import Case, Score
from suite.scorers.anchors import find_anchored
from suite.scorers.base import not_found, verdict_of_match

_EDGES = " \t\r\n\"'`*_.,;:!?()“”‘’。"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The answer equals the target after normalising: NFC, case, white space, quotes and punctuation at the ends.

    Rules, in this order: an anchored answer (see `suite.scorers.anchors`), ``whole`` (an answer of one line),
    ``first-line``. A truncated answer is scored through a closed anchor or a finished first line only.

    What does *not* match: the target inside a longer sentence ("It is Paris, I think" is not "Paris"), because then
    the negation ("not Paris") would match too; synonyms, other than those that the case lists in ``accept``;
    punctuation inside.
    """

    name: ClassVar[str] = "exact"
    version: ClassVar[int] = 1

    accept: tuple[str, ...] = ()
    """Other texts that are as right as the target."""
    case_sensitive: bool = False
    anchor: str = ""
    """A mark after which the case expects the answer."""

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer`; UNPARSABLE when only punctuation is left of it."""
        wanted = {self.normalise(text) for text in (case.target, *self.accept)}
        for rule, text in self._candidates(answer, truncated=truncated):
            normal = self.normalise(text)
            if normal:
                return verdict_of_match(normal in wanted, answer=text.strip(), rule=rule, target=case.target)
        return not_found(truncated=truncated, wanted="a text")

    def normalise(self, text: str) -> str:
        """The form in which answer and target are compared."""
        normal = " ".join(unicodedata.normalize("NFC", text).split()).strip(_EDGES)
        return normal if self.case_sensitive else normal.casefold()

    def faults(self, case: Case) -> tuple[str, ...]:
        """A target of which nothing is left."""
        return () if self.normalise(case.target) else (f"target {case.target!r} is only punctuation or white space",)

    def _candidates(self, answer: str, *, truncated: bool) -> list[tuple[str, str]]:
        anchored = [
            (found.rule, found.text)
            for found in find_anchored(answer, anchor=self.anchor)
            if found.closed or not truncated
        ]
        first, newline, _ = answer.strip().partition("\n")
        if not newline and truncated:
            return anchored
        return [*anchored, ("first-line" if newline else "whole", first)]
