"""What a model thinks is cut out of its answer."""

from __future__ import annotations

import pytest

from suite.scorers.thoughts import strip_thoughts


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>maybe 12</think>18", "18"),
        ("<THINK>\nmaybe 12\n</THINK>\n\n18\n", "18"),
        ("<thinking>a</thinking>b<thought>c</thought>d", "b d"),
        ("[THINK]12[/THINK]18", "18"),
        ("<|begin_of_thought|>12<|end_of_thought|>18", "18"),
        ("18 <think>or rather 12", "18"),
        ("maybe 12</think>18", "18"),
        ("<think>a</think>b<think>never closed", "b"),
        ("I think 18", "I think 18"),
        ("<thinner>18</thinner>", "<thinner>18</thinner>"),
        ("  18  ", "18"),
        ("", ""),
    ],
)
def test_thoughts_are_cut_out(text: str, answer: str) -> None:
    assert strip_thoughts(text) == answer
