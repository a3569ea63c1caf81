"""Tokens that a server streams are counted and timed right, whatever its chunks hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.fake_openai import Script
from support.served import answered, ask, ids_of, in_worker

from suite.metrics.speed import decode_tok_s, median_itl_s
from suite.records import SpeedSample, Witness
from suite.worker.messages import Failed, Measure, Memory

REPLY = "Salt, and a good deal of water – 96.5 % of it."


@pytest.mark.parametrize("per_chunk", [1, 2, 8, 16])
@pytest.mark.parametrize("kind", ["vllm", "openai", "llama_cpp.server"])
@pytest.mark.parametrize("usage", [True, False])
def test_tokens_are_counted_and_not_chunks(per_chunk: int, kind: str, usage: bool) -> None:
    with in_worker(Script(reply=REPLY, per_chunk=per_chunk, usage=usage), kind=kind) as (worker, _):
        answer = answered(worker)
        assert answer.text == REPLY
        assert answer.token_ids == ids_of(REPLY)
        assert len(answer.token_times_s) == len(REPLY)
        assert answer.finish_reason == "stop"
        assert answer.evaluated_tokens == answer.prompt_tokens == 19
        fixed = answered(worker, most=33, stop_at_end=False)
        assert len(fixed.token_ids) == 33
        assert fixed.finish_reason == "length"


def sample_of(token_times_s: list[float]) -> SpeedSample:
    gaps = [later - earlier for earlier, later in pairwise(token_times_s)]
    return SpeedSample(
        variant="v", scenario="s", launch=0, round=0, prompt_tokens=1, evaluated_tokens=1, new_tokens=len(token_times_s),
        prefill_s=token_times_s[0], ttft_s=token_times_s[0], itl_s=tuple(gaps),
        witness=Witness(wall_s=1, cpu_s=1, threads=1),
    )  # fmt: skip


@pytest.mark.parametrize("per_chunk", [1, 2, 8, 16])
def test_the_rate_does_not_depend_on_how_many_tokens_a_chunk_holds(per_chunk: int) -> None:
    """Counting the first chunk's tokens against the time after it would make 16 a chunk a third too fast."""
    with in_worker(Script(per_chunk=per_chunk, gap_s=0.005)) as (worker, fake):
        sample = sample_of(answered(worker, most=64, stop_at_end=False).token_times_s)
        sent = fake.sent[: 64 // per_chunk]
    rate = (64 - per_chunk) / (sent[-1] - sent[0])
    assert decode_tok_s(sample) == pytest.approx(rate, rel=0.1)
    assert median_itl_s(sample) == pytest.approx(1 / rate, rel=0.25)


def test_tokens_of_one_chunk_have_the_time_of_the_chunk() -> None:
    with in_worker(Script(per_chunk=8, gap_s=0.002)) as (worker, _):
        times = answered(worker, most=32, stop_at_end=False).token_times_s
        memory = worker.answer(Measure())
    assert len(set(times)) == 4
    assert [times.count(time) for time in sorted(set(times))] == [8, 8, 8, 8]
    assert isinstance(memory, Memory)
    assert memory.readings["client_tokens_a_chunk"] == 8


def test_waiting_for_the_first_token_is_told_apart_from_decoding() -> None:
    with in_worker(Script(first_s=0.2, gap_s=0.002)) as (worker, fake):
        answer = answered(worker, most=16, stop_at_end=False)
        decoding = fake.sent[15] - fake.sent[0]
    assert answer.prefill_s > 0.2
    assert answer.prefill_s == answer.token_times_s[0]
    assert answer.token_times_s[-1] - answer.token_times_s[0] == pytest.approx(decoding, rel=0.3)


def test_cached_tokens_are_not_evaluated_ones() -> None:
    with in_worker(Script(cached=16)) as (worker, _):
        answer = answered(worker)
        assert (answer.prompt_tokens, answer.evaluated_tokens) == (19, 3)


def test_another_prompt_than_was_meant_is_invalid_with_both_numbers() -> None:
    with in_worker(Script(told={"prompt_tokens": 20})) as (worker, _):
        answer = ask(worker)
        assert isinstance(answer, Failed)
        assert answer.kind == "invalid"
        assert "counts 20 prompt tokens, and 19 were meant" in answer.message


@pytest.mark.parametrize(("told", "said"), [(400, "64 were asked for"), (2, "what it sent has 1")])
@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_a_count_that_cannot_be_is_invalid_with_both_numbers(told: int, said: str, kind: str) -> None:
    with in_worker(Script(told={"completion_tokens": told}), kind=kind) as (worker, _):
        answer = ask(worker)
        assert isinstance(answer, Failed)
        assert answer.kind == "invalid"
        assert f"counts {told} new tokens" in answer.message
        assert said in answer.message
