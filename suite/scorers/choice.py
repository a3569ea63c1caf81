"""One of a few: letters of a multiple choice, yes or no, a class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from suite.records import Case, Score
from suite.scorers.anchors import find_anchored
from suite.scorers.base import not_found, verdict_of_match

_OPEN = r"(?:(?:option|choice)\s+)?[\s\"'`*(\[“‘]*"
_HANGUL_ENDING = r"(?:입니다|이에요|예요|이다|임|요)?"
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_DENIAL = re.compile(r"(?i)\b(?:not|isn't|neither|아니라|아닌)\b")
# What must stand behind a lone letter, because "A" and "I" are words too:
_BEHIND_INSIDE = r"[).\]:*]"
_BEHIND_LEADING = r"[).\]:,;*\"'`”’]|\s*$|\s*\n"
_BEHIND_ANCHORED = _BEHIND_LEADING + r"|\s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer picks the label that the target names.

    ``choices`` lists the labels (default A to D), or maps each label to texts that mean it (``{ A = ["iron"], B =
    ["copper"] }``). Rules, in this order: an anchored answer that starts with a choice; ``leading`` (the whole answer
    starts with one); ``first-sentence`` and ``only-choice`` (one choice, and no other, is named there, or anywhere). A
    truncated answer is scored through an anchor, ``leading``, or a finished first sentence.

    What does *not* match: a single letter that may be a word ("A dog …", "I think"), unless it stands alone or is set
    off like ``A)``, ``(A)``, ``A.``, ``**A**``; an answer that names several choices without starting with one ("A or
    B") or denies one ("not B"): both are UNPARSABLE, because picking one would be a guess. Words match in any case,
    single letters in their own.
    """

    name: ClassVar[str] = "choice"
    version: ClassVar[int] = 1

    choices: Sequence[str] | Mapping[str, Sequence[str]] = ("A", "B", "C", "D")
    anchor: str = ""
    """A mark after which the case expects the answer."""

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer`; UNPARSABLE when no choice, or no single one, is picked."""
        picked = self.pick(answer, truncated=truncated)
        if picked is None:
            return not_found(truncated=truncated, wanted="one of " + ", ".join(self._labels()))
        rule, label = picked
        return verdict_of_match(label == self._label(case.target), answer=label, rule=rule, target=case.target)

    def pick(self, answer: str, *, truncated: bool = False) -> tuple[str, str] | None:
        """The rule that fired and the label that it picked, or None."""
        for anchored in find_anchored(answer, anchor=self.anchor):
            label = self._leading(anchored.text, complete=anchored.closed or not truncated, anchored=True)
            if label is not None:
                return anchored.rule, label
        label = self._leading(answer, complete=not truncated)
        if label is not None:
            return "leading", label
        sentence, end, _ = _partition_sentence(answer)
        for rule, text in (("first-sentence", sentence if end else ""), ("only-choice", "" if truncated else answer)):
            named = self._named(text)
            if len(named) == 1:
                return rule, named.pop()
        return None

    def faults(self, case: Case) -> tuple[str, ...]:
        """A target that is no choice, fewer than two choices."""
        labels = self._labels()
        faults = []
        if len(labels) < 2:
            faults.append(f"scorer option 'choices' needs at least two labels (got {list(labels)!r})")
        if self._label(case.target) is None:
            faults.append(f"target {case.target!r} is none of the choices: {', '.join(labels)}")
        return tuple(faults)

    def _labels(self) -> tuple[str, ...]:
        return tuple(self.choices)

    def _label(self, text: str) -> str | None:
        return next((label for label in self._labels() if label.casefold() == text.strip().casefold()), None)

    def _texts(self) -> list[tuple[str, str]]:
        """(text, label), longest first, so that "not given" is tried before "not"."""
        pairs = [(label, label) for label in self._labels()]
        if isinstance(self.choices, Mapping):
            pairs += [(text, label) for label, texts in self.choices.items() for text in texts]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def _leading(self, text: str, *, complete: bool, anchored: bool = False) -> str | None:
        behind = _BEHIND_ANCHORED if anchored else _BEHIND_LEADING
        for choice, label in self._texts():
            match = re.match(_OPEN + _pattern(choice, behind), text)
            if match is not None and (complete or match.end() < len(text)):
                return label
        return None

    def _named(self, text: str) -> set[str]:
        """Labels that `text` names anywhere; none when it denies something."""
        if _DENIAL.search(text):
            return set()
        labels = set()
        for choice, label in self._texts():
            # taken out when found, so that "==" does not name "=" as well
            text, count = re.subn(r"(?<!\w)" + _pattern(choice, _BEHIND_INSIDE), " ", text)
            if count:
                labels.add(label)
        return labels


def _partition_sentence(text: str) -> tuple[str, str, str]:
    """The first sentence or line, what ends it (empty when nothing does), and the rest."""
    match = _SENTENCE_END.search(text)
    return (text[: match.start()], match.group(), text[match.end() :]) if match else (text, "", "")


def _pattern(choice: str, behind: str) -> str:
    """A regular expression for `choice` as a word of its own; `behind` is what must follow a lone letter."""
    if len(choice) == 1 and choice.isascii() and choice.isalpha():
        return re.escape(choice) + f"(?={behind})"
    if re.search(r"[가-힣]$", choice):
        return re.escape(choice) + _HANGUL_ENDING + r"(?!\w)"
    return f"(?i:{re.escape(choice)})" + r"(?!\w)"
