"""Thoughts are not answers: what a model thinks between tags is cut out before anything is graded."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection"
_PAIRS: tuple[tuple[str, str], ...] = (
    (rf"<(?:{_NAMES})>", rf"</(?:{_NAMES})>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
)


def strip_thoughts(text: str) -> str:
    """`text` without its thoughts, stripped of white space at both ends.

    Cut out are: every finished pair of tags with what is between them; everything after an opening tag that was never
    closed, because an unfinished thought is no answer; and everything before a closing tag that was never opened,
    because some templates put the opening tag at the end of the prompt. Tags are matched in any case.
    """
    for opening, closing in _PAIRS:
        text = re.sub(f"{opening}.*?{closing}", " ", text, flags=re.DOTALL | re.IGNORECASE)
        text = re.sub(f"^.*{closing}", "", text, flags=re.DOTALL | re.IGNORECASE)
        text = re.sub(f"{opening}.*$", "", text, flags=re.DOTALL | re.IGNORECASE)
    return text.strip()
