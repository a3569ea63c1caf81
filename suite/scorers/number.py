"""Numbers: the answer's value must equal the target's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from suite.records import Case, Score
from suite.scorers.anchors import find_anchored
from suite.scorers.base import not_found, verdict_of_match

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NUMBER = re.compile(
    rf"(?<![A-Za-z_])(?<!\d[.,:])(?<![\d$€£₩])"  # not inside a word, a version, a time, or another number
    rf"(?P<sign>(?<![\d)\]])[-−+])?[$€£₩]?(?P<inner>(?<=[$€£₩])-)?(?P<whole>{_DIGITS})"
    rf"(?:\s*/\s*(?P<under>\d+)|\s+dollars?\s+and\s+(?P<cents>\d{{1,2}})\s+cents?|\s*(?P<percent>%|percent\b))?"
    r"(?![\d_])(?![.,:/]\d)(?!(?:st|nd|rd|th)\b)"  # not a part of 1.2.3, 1,2,3, 10:30, 1/2/3; not an ordinal
    r"(?!\s?[만억천백])(?!\s*(?:thousand|million|billion|hundred)\b)",  # a multiplier that we do not read
    re.IGNORECASE,
)
_FRAC = re.compile(r"\\d?frac\s*\{(-?\d+)\}\s*\{(\d+)\}")
_TEX = re.compile(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}")
_OFFER = re.compile(r"(?i)\b(?:let me know|feel free|if you (?:need|have|want|would)|hope (?:this|that)|happy to help)")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A number in a text."""

    value: Fraction
    text: str
    end: int
    """Where it ends in the text that was searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    r"""The value of the answer equals the value of the target.

    Rules, in this order: ``anchor`` (a mark that the case names, e.g. ``"="``), ``hashes`` (``#### 18``), ``boxed``,
    ``answer-is`` ("the answer is 18", "Answer: 18", "정답은 18"), ``only-number``, ``last-number``. After an anchor the
    first number counts, or, in an equation, the first after its last ``=``. A truncated answer is scored through an
    anchor only.

    Read as numbers: ``18``, ``-3``, ``1,000``, ``$29.00``, ``3/4``, ``\frac{3}{4}``, ``29 dollars and 50 cents``. Not
    read, because their value would be a guess: ordinals (``2nd``), times (``10:30``), versions (``1.2.3``), lists
    without spaces (``1,2,3``), numbers with a multiplier word (``3 million``, ``3만``), number words (``three``).
    Sentences that offer help ("let me know if you need 7 more") are no place for the last number. ``50%`` is 50, and
    it is 0.5 only with ``percent_as_fraction``: which of the two was asked for is the case's to say.
    """

    name: ClassVar[str] = "number"
    version: ClassVar[int] = 1

    tolerance: float = 0.0
    """Largest absolute difference that still matches."""
    percent_as_fraction: bool = False
    """Read ``50%`` as 0.5 (in answer and target)."""
    anchor: str = field(default="")
    """A mark after which the case expects the answer, e.g. ``"="``; then it counts as anchored."""

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer` by value; UNPARSABLE without a number, TRUNCATED without an anchored one."""
        found = self.extract(answer, truncated=truncated)
        if found is None:
            return not_found(truncated=truncated, wanted="a number")
        rule, number = found
        return verdict_of_match(
            self._equal(number.value, case.target), answer=number.text, rule=rule, target=case.target
        )

    def extract(self, answer: str, *, truncated: bool = False) -> tuple[str, Found] | None:
        """The rule that fired and the number that it found, or None."""
        text = _without_tex(answer)
        for anchored in find_anchored(text, anchor=self.anchor):
            number = self._after_anchor(anchored.text)
            if number is not None and (not truncated or anchored.closed or _goes_on(anchored.text, number)):
                return anchored.rule, number
        return None if truncated else self._fall_back(text)

    def faults(self, case: Case) -> tuple[str, ...]:
        """A target without a number, a tolerance below zero."""
        faults = []
        if self.extract(case.target) is None:
            faults.append(f"target {case.target!r} holds no number")
        if self.tolerance < 0:
            faults.append(f"scorer option 'tolerance' must not be below 0 (got {self.tolerance!r})")
        return tuple(faults)

    def _equal(self, value: Fraction, target: str) -> bool:
        expected = self.extract(target)
        return expected is not None and abs(value - expected[1].value) <= Fraction(str(self.tolerance))

    def _after_anchor(self, text: str) -> Found | None:
        _, equals, right = text.rpartition("=")
        numbers = self._numbers(right if equals else text)
        found = next(numbers, None)
        if found is None or not equals:
            return found
        return Found(value=found.value, text=found.text, end=found.end + len(text) - len(right))

    def _fall_back(self, text: str) -> tuple[str, Found] | None:
        kept = " ".join(sentence for sentence in _SENTENCES.split(text) if not _OFFER.search(sentence))
        numbers = list(self._numbers(kept))
        if not numbers:
            return None
        return ("only-number" if len(numbers) == 1 else "last-number"), numbers[-1]

    def _numbers(self, text: str) -> Iterator[Found]:
        for match in _NUMBER.finditer(text):
            value = self._value(match)
            if value is not None:
                yield Found(value=value, text=match.group().strip(), end=match.end())

    def _value(self, match: re.Match[str]) -> Fraction | None:
        value = Fraction(match["whole"].replace(",", ""))
        if match["under"]:
            if int(match["under"]) == 0:
                return None
            value /= int(match["under"])
        if match["cents"]:
            value += Fraction(int(match["cents"]), 100)
        if match["percent"] and self.percent_as_fraction:
            value /= 100
        return -value if match["sign"] in ("-", "−") or match["inner"] else value


def _without_tex(text: str) -> str:
    text = _FRAC.sub(r"\1/\2", text)
    text = _TEX.sub(r" \1", text)
    return text.replace("\\$", "$").replace("\\%", "%").replace("{,}", ",").replace("\\,", "")


def _goes_on(text: str, number: Found) -> bool:
    """Whether enough stands behind the number to know that its digits were all there, although the budget ran out."""
    return bool(re.match(r"[\s.,]*[^\s\d.,/%]", text[number.end :]))
