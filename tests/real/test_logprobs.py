"""Log-probabilities of each engine on the embedded model: weighing agrees with generating, and worse weights weigh less."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import pytest
from support.real import ENGINES, FP16, GGUF, QUESTION, Launch


@pytest.mark.parametrize("engine", ENGINES)
def test_ones_own_answer_weighs_what_it_weighed_when_it_was_generated(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        prompt = live.render_one(QUESTION)
        answer, _ = live.generate(prompt, 24, stop_at_end=True, logprobs=True)
        assert answer.logprobs is not None
        assert len(answer.logprobs) == len(answer.token_ids) > 4
        live.generate(prompt[:5], 3, stop_at_end=False)  # another state in between changes nothing
        assert live.weigh(prompt, answer.token_ids) == pytest.approx(answer.logprobs, abs=1e-4)
        assert live.generate(prompt, 24, stop_at_end=True)[0].logprobs is None
        # The likeliest token of a vocabulary of V has at least 1/V; any other one has at most what is left.
        first = math.exp(answer.logprobs[0])
        assert 1 / 49152 <= first <= 1
        other = live.weigh(prompt, [(answer.token_ids[0] + 1) % 49152])
        assert other is not None
        assert math.exp(other[0]) <= min(first, 1 - first + 1e-6)


def test_two_engines_with_the_same_weights_agree(launch: Launch) -> None:
    with launch(**FP16) as reference:
        prompt = reference.render_one(QUESTION)
        answer, _ = reference.generate(prompt, 24, stop_at_end=True, logprobs=True)
    with launch("llama_cpp", make="F16") as live:
        weighed = live.weigh(prompt, answer.token_ids)
    assert weighed == pytest.approx(answer.logprobs, abs=0.05)


def test_coarser_weights_find_the_accepted_answer_less_likely(launch: Launch) -> None:
    with launch(**GGUF) as live:
        prompt = live.render_one(QUESTION)
        answer, _ = live.generate(prompt, 40, stop_at_end=True, logprobs=True)
    with launch("llama_cpp", make="Q4_0") as coarse:
        weighed = coarse.weigh(prompt, answer.token_ids)
    assert weighed is not None
    assert answer.logprobs is not None
    assert fmean(weighed) < fmean(answer.logprobs)
