"""Answers that end in a repetition loop."""

from __future__ import annotations

import pytest

from suite.metrics import measure
from suite.metrics.quality import ends_in_loop
from suite.records import Generation, Score, Trial, TrialStatus

BLOCK32 = tuple(range(100, 132))


@pytest.mark.parametrize(
    ("tokens", "loops"),
    [
        ((5,) * 24, True),
        ((5,) * 23, False),  # too short, however often it repeats
        ((1, 2, 3, *(5,) * 24), True),
        ((*(5,) * 24, 9), False),  # it found its way out
        ((5, 6) * 12, True),
        ((*range(7),) * 4, True),
        ((*range(7),) * 3, False),  # 21 tokens of three blocks
        ((*range(8),) * 3, False),  # 24 tokens, but three blocks only
        (BLOCK32 * 4, True),
        (BLOCK32[:31] + BLOCK32 * 3, False),  # one token short of four blocks
        (tuple(range(33)) * 4, False),  # a block of 33
        ((*(*range(10),) * 4, 0, 1, 2), True),  # cut off within a block
        ((), False),
        (tuple(range(500)), False),
    ],
)
def test_a_loop_repeats_a_block_of_up_to_32_tokens_four_times_over_24(tokens: tuple[int, ...], loops: bool) -> None:
    assert ends_in_loop(tokens) is loops


def trial(case: str, tokens: tuple[int, ...]) -> Trial:
    return Trial(
        variant="q4",
        case=case,
        case_version=1,
        domain=case.split("/", maxsplit=1)[0],
        family=None,
        scorer="exact@1",
        prompt_sha256="ab",
        score=Score(status=TrialStatus.SCORED, value=1.0, correct=True),
        generation=Generation(
            token_ids=tokens, text="x", finish_reason="stop", prompt_tokens=1, evaluated_tokens=1, prefill_s=0.1,
            token_times_s=(),
        ),
    )  # fmt: skip


def test_the_share_of_looping_answers_is_measured_by_domain() -> None:
    trials = [trial("math/a", (5,) * 30), trial("math/b", (1, 2)), trial("code/a", (3, 4))]
    found = {m.scope: m.value for m in measure("q4", trials, (), ()) if m.metric == "looping"}
    assert found == {"all": pytest.approx(1 / 3), "math": 0.5, "code": 0.0}
