r"""Where an answer says that it is the answer: ``#### 18``, ``\boxed{18}``, "the answer is 18", "정답은 18".

Shared by all scorers, so that an anchored answer always comes before a guess such as "the last number".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """One anchored stretch of an answer."""

    rule: str
    """``hashes``, ``boxed``, ``answer-is``, or ``anchor`` for a mark that the case itself names."""
    text: str
    """What follows the anchor, to the end of its sentence or line."""
    closed: bool
    """Something stands after `text`: even if the budget ran out, this stretch was not cut short."""


_ANSWER_IS = re.compile(
    r"(?:\banswer(?:\s+to\s+[^.\n]{1,60}?)?\s*(?:is\b|[:=])"  # the answer is, Answer:, the answer to this question is
    r"|(?:정답|해답|답)(?:은|이)?\s*[::=]"  # 정답:, 답은:
    r"|(?<![가-힣])(?:정답|해답|답)은)"  # 답은, 정답은; not 대답은 (a reply)
    r"[ \t]*[::]?\s*",
    re.IGNORECASE,
)
_HASHES = re.compile(r"####[ \t]*")
_BOXED = re.compile(r"\\boxed\s*\{")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")


def find_anchored(text: str, *, anchor: str = "") -> Iterator[Anchored]:
    """Anchored stretches of `text`, the most trustworthy first: the case's own `anchor`, hashes, boxed, answer-is.

    Within a rule the last one comes first, because models correct themselves. Case and Markdown emphasis are ignored.
    """
    plain = text.replace("**", "").replace("__", "").replace("`", "")
    if anchor:
        yield from _after(plain, re.compile(re.escape(anchor) + r"\s*", re.IGNORECASE), "anchor")
    yield from _after(plain, _HASHES, "hashes")
    yield from _boxed(plain)
    yield from _after(plain, _ANSWER_IS, "answer-is")


def _after(text: str, pattern: re.Pattern[str], rule: str) -> Iterator[Anchored]:
    for match in reversed(list(pattern.finditer(text))):
        rest = text[match.end() :]
        end = _SENTENCE_END.search(rest)
        stretch = (rest[: end.start()] if end else rest).strip()
        # a full stop at the very end may be a decimal point whose digits did not come
        closed = (end is not None and end.end() < len(rest)) or (end is not None and end.group() == "\n")
        if stretch:
            yield Anchored(rule=rule, text=stretch, closed=closed)


def _boxed(text: str) -> Iterator[Anchored]:
    r"""Contents of ``\boxed{…}`` with balanced braces; an unclosed one is not an answer."""
    for match in reversed(list(_BOXED.finditer(text))):
        depth = 1
        for position in range(match.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            if depth == 0:
                content = text[match.end() : position].strip()
                if content:
                    yield Anchored(rule="boxed", text=content, closed=True)
                break
