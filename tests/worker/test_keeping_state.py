"""Going on from a state, sequences together, memory while it generates, and after an unload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from suite.backends.base import Prefilled
from suite.worker.messages import (
    Failed,
    Generate,
    GenerateBatch,
    Generated,
    GeneratedBatch,
    Load,
    Loaded,
    Measure,
    Memory,
    Request,
    Unload,
    Unloaded,
    pack,
    unpack,
)
from suite.worker.serve import Server
from suite.worker.stopwatch import time_stream

EXACT = {"launch_noise": 0.0, "token_noise": 0.0, "prefill_tok_s": 100.0, "decode_tok_s": 10.0, "reply": "abcdefgh"}
MIB = 1 << 20


def serve(backend: str = "fake", **options: Any) -> Server:
    server = Server()
    asked = {**EXACT, **options} if backend == "fake" else options
    assert isinstance(server.answer(Load(backend=backend, weights=None, options=asked, prompt_format="chat")), Loaded)
    return server


def generate(server: Server, prompt: list[int], new: int = 4, **more: Any) -> Generated:
    answer = server.answer(Generate(prompt=prompt, max_new_tokens=new, stop_at_end=False, **more))
    assert isinstance(answer, Generated), answer
    return answer


def refused(server: Server, request: Request) -> str:
    answer = server.answer(request)
    assert isinstance(answer, Failed)
    return f"{answer.kind}: {answer.message}"


@pytest.mark.parametrize(
    ("state", "counted", "prefill_s"), [("kept", 10, 0.1), ("evaluated", 60, 0.6), ("silent", 10, 0.6)]
)
def test_what_is_kept_is_not_evaluated_again_unless_it_is(state: str, counted: int, prefill_s: float) -> None:
    server = serve(state=state)
    first = generate(server, [65] * 47)
    answer = generate(server, [*[65] * 47, *first.token_ids[:3], *[66] * 10], kept=50)
    assert (answer.prompt_tokens, answer.evaluated_tokens) == (60, counted)
    assert answer.prefill_s == pytest.approx(prefill_s)


def test_a_state_is_rolled_back_as_often_as_it_is_asked_for() -> None:
    server = serve()
    generate(server, [65] * 50)
    for last in (66, 67, 68):
        assert generate(server, [*[65] * 50, last], kept=50).evaluated_tokens == 1
    assert "does not begin with the 51 tokens" in refused(server, Generate(prompt=[65] * 52, max_new_tokens=1, kept=51))


def test_what_cannot_be_kept_is_told() -> None:
    server = serve()
    assert "does not begin with" in refused(server, Generate(prompt=[65] * 9, max_new_tokens=1, kept=3))
    generate(server, [65] * 9)
    assert "leave nothing of 9" in refused(server, Generate(prompt=[65] * 9, max_new_tokens=1, kept=9))
    rigid = serve(state="rigid")
    generate(rigid, [65] * 9)
    told = refused(rigid, Generate(prompt=[65] * 12, max_new_tokens=1, kept=9))
    assert told == "unavailable: the state of this model cannot be rolled back"


def test_a_backend_that_can_do_neither_says_so() -> None:
    server = serve("kernel", megabytes=1)
    assert refused(server, Generate(prompt=[5] * 9, max_new_tokens=1, kept=3)).startswith("unavailable: its backend")
    assert refused(server, GenerateBatch(prompts=[[5], [6]], max_new_tokens=1)).startswith("unavailable: its backend")


def test_a_batch_counts_all_its_sequences_and_times_its_steps() -> None:
    answer = serve(batch_cost=0.5).answer(GenerateBatch(prompts=[[65] * 20, [66] * 20, [67] * 20], max_new_tokens=4))
    assert isinstance(answer, GeneratedBatch)
    assert (answer.prompt_tokens, answer.evaluated_tokens) == (60, 60)
    assert answer.prefill_s == pytest.approx(0.6)
    assert answer.token_times_s == pytest.approx([0.8, 1.0, 1.2, 1.4])  # a step of three costs 0.1 s × (1 + 2 × 0.5)
    assert answer.token_ids == [list(b"abcd")] * 3
    assert unpack(pack(answer)) == answer


def test_memory_is_read_every_so_many_tokens_while_it_leaks() -> None:
    leaky = generate(serve(leak_bytes=MIB), [65], new=32, watch=4)
    assert [tokens for tokens, _ in leaky.memory] == list(range(4, 33, 4))
    assert leaky.memory[-1][1] - leaky.memory[0][1] >= 27 * MIB
    assert generate(serve(), [65], new=32).memory == []


def test_what_reading_takes_is_in_no_time() -> None:
    now = [0.0]

    def stream() -> Iterator[Prefilled | int]:
        yield Prefilled(3)
        for token in range(6):
            now[0] += 1.0
            yield token

    def read() -> int:
        now[0] += 100.0
        return 7

    timed = time_stream(lambda: now[0], stream(), lambda _: False, watch=2, read=read)
    assert timed.times_s == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert timed.memory == [[2, 7], [4, 7], [6, 7]]


def test_a_kv_cache_that_grows_is_no_leak() -> None:
    fat = generate(serve(kv_bytes_per_token=MIB), [65], new=32, watch=4)
    assert fat.memory[-1][1] - fat.memory[0][1] < -20 * MIB  # the fake only says that it holds one: it is taken off


def test_an_unload_tells_what_is_still_held_and_the_next_load_works() -> None:
    server = serve()
    before = server.answer(Unload())
    assert isinstance(before, Unloaded)
    assert refused(server, Measure()).endswith("no model is loaded in this worker")
    load = Load(backend="fake", weights=None, options={"leak_per_load_bytes": 32 * MIB}, prompt_format="chat")
    assert isinstance(server.answer(load), Loaded)
    during, after = server.answer(Measure()), server.answer(Unload())
    assert isinstance(during, Memory)
    assert isinstance(after, Unloaded)
    assert before.held_bytes is not None
    assert during.held_bytes is not None
    assert after.held_bytes is not None
    assert during.held_bytes - before.held_bytes > 30 * MIB
    assert after.held_bytes - before.held_bytes > 30 * MIB
