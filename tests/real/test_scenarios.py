"""State that is kept, sequences together and loading again on the embedded model: what comes out is what a fresh run gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.real import Launch

from suite.engine.launching import LiveVariant
from suite.engine.passage import PASSAGE
from suite.engine.slices import Place, take_cycles, take_slice
from suite.errors import Unavailable
from suite.metrics.kinds import growth_bytes, reevaluated_share, reevaluated_tokens, unreturned_bytes
from suite.records import Scenario
from suite.worker.messages import Generate, GenerateBatch, Generated, GeneratedBatch

ALONE = {"n_threads": 1}
"""Counts and tokens are the same with one thread, which waits for no other one where the machine is busy."""
F16: dict[str, Any] = {"backend": "llama_cpp", "make": "F16", "options": ALONE}
GGUF: dict[str, Any] = {"backend": "llama_cpp", "make": "Q8_0", "options": ALONE}
FP16: dict[str, Any] = {"backend": "transformers", "options": {"dtype": "float16", **ALONE}}
EXACT = [pytest.param(F16, id="gguf"), pytest.param(FP16, id="fp16")]
MIB = 1 << 20


def say(live: LiveVariant, prompt: Sequence[int], new: int, kept: int | None = None) -> Generated:
    answer: Generated = live.ask(Generate(prompt=list(prompt), max_new_tokens=new, stop_at_end=False, kept=kept))
    return answer


def place(live: LiveVariant) -> Place:
    return Place(passage=live.encode(PASSAGE), launch=0, round=0, seed=3)


@pytest.mark.parametrize("engine", EXACT)
def test_what_goes_on_from_a_kept_state_is_what_a_fresh_evaluation_gives(
    launch: Launch, engine: dict[str, Any]
) -> None:
    with launch(**engine) as live:
        text = live.encode(PASSAGE)
        head, tail, other = text[:200], text[200:240], text[260:301]
        fresh = [say(live, [*head, *part], 10).token_ids for part in (tail, other, tail[:1])]
        say(live, head, 1)
        for part, expected in zip((tail, other, tail[:1]), fresh, strict=True):
            answer = say(live, [*head, *part], 10, kept=200)
            assert answer.token_ids == expected
            assert (answer.prompt_tokens, answer.evaluated_tokens) == (200 + len(part), len(part))
        said = fresh[-1]  # the last of it was never evaluated
        longer = [*head, *tail[:1], *said[:-1]]
        assert say(live, [*longer, said[-1]], 2, kept=len(longer)).evaluated_tokens == 1
        assert say(live, [*head, *tail], 2).evaluated_tokens == 240  # and nothing is kept that was not asked for


@pytest.mark.parametrize("engine", EXACT)
def test_sequences_together_say_what_each_says_alone(launch: Launch, engine: dict[str, Any]) -> None:
    with launch(**engine) as live:
        text = live.encode(PASSAGE)
        prompts = [list(text[start : start + 48]) for start in (0, 100, 200)]
        alone = [say(live, prompt, 8).token_ids for prompt in prompts]
        for _ in range(2):  # the second time in the same room
            together: GeneratedBatch = live.ask(GenerateBatch(prompts=prompts, max_new_tokens=8))
            assert together.evaluated_tokens == together.prompt_tokens == 144
            assert len(together.token_times_s) == 8
            assert together.token_ids == alone
        memory = live.memory()
        assert memory.kv_cache_bytes == live.kv_cache_bytes(memory.kv_cache_tokens or 0)  # of the one sequence


@pytest.mark.parametrize("engine", [pytest.param(GGUF, id="gguf"), pytest.param(FP16, id="fp16")])
def test_a_conversation_keeps_its_state(launch: Launch, engine: dict[str, Any]) -> None:
    talk = Scenario(name="talk", prompt_tokens=96, new_tokens=8, turns=4)
    with launch(**engine) as live:
        sample = take_slice(live, talk, place(live))
    assert [turn.evaluated_tokens for turn in sample.turns] == [97] * 3
    assert [turn.resent_evaluated_tokens for turn in sample.turns] == [200, 304, 408]
    assert reevaluated_tokens(sample) == 0
    if (sample.witness.pressure or 0.0) < 0.15:  # beside neighbours, times tell nothing
        assert (reevaluated_share(sample) or 0) < 0.5


@pytest.mark.parametrize("engine", [pytest.param(GGUF, id="gguf"), pytest.param(FP16, id="fp16")])
def test_a_healthy_long_generation_does_not_grow(launch: Launch, engine: dict[str, Any]) -> None:
    long = Scenario(name="long", prompt_tokens=16, new_tokens=192, watch=True)
    with launch(**engine) as live:
        sample = take_slice(live, long, place(live))
    assert len(sample.memory) == 64
    grown = growth_bytes(sample.memory)
    assert grown is not None
    assert grown < 4 * MIB


def test_memory_comes_back_after_an_unload(launch: Launch) -> None:
    reload = Scenario(name="reload", prompt_tokens=16, new_tokens=4, reloads=3)
    with launch(**GGUF) as live:
        cycles = list(take_cycles(live, reload, place(live)))
    assert len(cycles) == 3
    assert all(s.cycle is not None and s.cycle.loaded_bytes > s.cycle.after_bytes + 20 * MIB for s in cycles)
    assert sorted(unreturned_bytes(s) or 0 for s in cycles)[1] < 4 * MIB


def test_a_batch_that_has_no_room_is_told_and_the_model_lives_on(launch: Launch) -> None:
    with launch("llama_cpp", {"n_ctx": 256}, make="Q8_0") as live:
        text = list(live.encode(PASSAGE))
        many = 300  # more than llama.cpp takes
        with pytest.raises(Unavailable, match=f"no context for {many} sequences"):
            live.ask(GenerateBatch(prompts=[text[:8]] * many, max_new_tokens=2))
        assert say(live, text[:8], 4).evaluated_tokens == 8
