"""The least that a scenario reads and computes, by hand."""

from __future__ import annotations

import dataclasses
import math

import pytest

from suite.metrics.roofline import (
    Work,
    bandwidth_for,
    decode_bytes,
    decode_flop,
    middle,
    prefill_bytes,
    prefill_flop,
    roofline,
)
from suite.records import AttentionLayers, Demand, Limits, Streamed

WHOLE = AttentionLayers(layers=2, kv_bytes=100, attended_flop=30)
NEAR = AttentionLayers(layers=3, kv_bytes=10, attended_flop=7, window=4)
SHARED = AttentionLayers(layers=1, kv_bytes=100, attended_flop=30, keeps=False)
DENSE = Demand(weight_bytes=1000, all_weight_bytes=1000, body_parameters=400, head_parameters=50, attention=(WHOLE,))


def prompt(tokens: int, **changes: int) -> Work:
    return Work(**{"prompt_tokens": tokens, "new_tokens": 2, **changes})


def demand(*attention: AttentionLayers, **changes: object) -> Demand:
    return dataclasses.replace(DENSE, attention=attention, **changes)  # type: ignore[arg-type]


def test_decoding_reads_the_weights_and_what_it_looks_back_on() -> None:
    # a prompt of 10, then 5 tokens: four steps that look back on 11, 12, 13 and 14 tokens
    assert decode_bytes(DENSE, Work(prompt_tokens=10, new_tokens=5)) == 1000 + 2 * 100 * 12.5
    assert decode_flop(DENSE, Work(prompt_tokens=10, new_tokens=5)) == 2 * 450 + 2 * 30 * 12.5


def test_a_window_bounds_what_is_looked_back_on() -> None:
    assert decode_bytes(demand(NEAR), Work(prompt_tokens=10, new_tokens=5)) == 1000 + 3 * 10 * 4
    assert decode_bytes(demand(NEAR), Work(prompt_tokens=1, new_tokens=5)) == 1000 + 3 * 10 * (2 + 3 + 4 + 4) / 4


def test_keys_and_values_of_another_layer_are_read_again() -> None:
    assert decode_bytes(demand(WHOLE, SHARED), Work(prompt_tokens=10, new_tokens=5)) == 1000 + 3 * 100 * 12.5


def test_a_prompt_needs_the_output_matrix_once_and_looks_back_on_each_token_before() -> None:
    assert prefill_flop(DENSE, prompt(4)) == 2 * (400 * 4 + 50) + 2 * 30 * (1 + 2 + 3 + 4)
    assert prefill_flop(demand(NEAR), prompt(6)) == 2 * (400 * 6 + 50) + 3 * 7 * (1 + 2 + 3 + 4 + 4 + 4)


def test_a_prompt_reads_the_weights_once_for_each_batch() -> None:
    assert prefill_bytes(DENSE, prompt(100)) == 1000 + 2 * 100 * 100
    assert prefill_bytes(demand(batch_tokens=40), prompt(100)) == 3 * 1000
    assert (
        prefill_bytes(demand(all_weight_bytes=8000), prompt(3)) == 3000
    )  # three tokens of a mixture: three times its experts
    assert prefill_bytes(demand(all_weight_bytes=8000), prompt(100)) == 8000


def test_weights_whose_number_is_not_told_have_no_operations() -> None:
    unknown = demand(WHOLE, body_parameters=None)
    assert decode_flop(unknown, Work(prompt_tokens=10, new_tokens=5)) is None
    assert prefill_flop(unknown, prompt(10)) is None
    assert roofline(1000, None, Limits(flop_s=5.0)).bound is None


def test_the_reading_nearest_in_size_counts() -> None:
    limits = Limits(streams=(Streamed(size_bytes=100, read_bytes_s=9.0), Streamed(size_bytes=10_000, read_bytes_s=5.0)))
    assert (bandwidth_for(limits, 200), bandwidth_for(limits, 2000)) == (9.0, 5.0)
    assert bandwidth_for(Limits(), 200) is None


@pytest.mark.parametrize(("bandwidth", "rate", "bound"), [(10.0, 1e9, "memory"), (1e9, 10.0, "arithmetic")])
def test_the_longer_of_the_two_bounds(bandwidth: float, rate: float, bound: str) -> None:
    limits = Limits(streams=(Streamed(size_bytes=1000, read_bytes_s=bandwidth),), flop_s=rate)
    best = roofline(1000, 500, limits)
    assert (best.memory_s, best.arithmetic_s) == (1000 / bandwidth, 500 / rate)
    assert best.bound == bound


def test_launches_together_give_medians_by_size() -> None:
    given = [
        Limits(streams=(Streamed(size_bytes=8, read_bytes_s=rate),), flop_s=flop, flop_type="float32", threads=2)
        for rate, flop in ((1.0, 10.0), (9.0, None), (2.0, 30.0))
    ]
    found = middle(given)
    assert found == Limits(
        streams=(Streamed(size_bytes=8, read_bytes_s=2.0),), flop_s=20.0, flop_type="float32", threads=2
    )
    assert middle([]) is None


def test_real_figures_of_the_embedded_model() -> None:
    """SmolLM2-135M in Q8_0: 145 MB of weights, 23 kB of keys and values a token, so 8 k tokens more than double it."""
    attention = AttentionLayers(layers=30, kv_bytes=2 * 3 * 64 * 2, attended_flop=2 * 9 * 128)
    smollm2 = Demand(
        weight_bytes=142_900_000, all_weight_bytes=142_900_000, body_parameters=106_203_456, head_parameters=28_311_552,
        attention=(attention,),
    )  # fmt: skip
    deep = decode_bytes(smollm2, Work(prompt_tokens=8192, new_tokens=16))
    assert math.isclose(deep - smollm2.weight_bytes, 23_040 * (8192 + 8))
    assert 2.2 < deep / smollm2.weight_bytes < 2.4


def test_what_is_kept_is_looked_back_on_and_not_evaluated_again() -> None:
    kept = prompt(6, kept_tokens=4)
    assert kept.evaluated_tokens == 2
    assert prefill_flop(DENSE, kept) == 2 * (400 * 2 + 50) + 2 * 30 * (5 + 6)
    assert prefill_flop(demand(NEAR), kept) == 2 * (400 * 2 + 50) + 3 * 7 * (4 + 4)
    assert prefill_bytes(DENSE, kept) == 1000 + 2 * 100 * 6


def test_sequences_that_are_decoded_together_share_the_weights() -> None:
    four = Work(prompt_tokens=10, new_tokens=5, batch=4)
    assert decode_bytes(DENSE, four) == 1000 / 4 + 2 * 100 * 12.5
    assert decode_bytes(demand(all_weight_bytes=3000), four) == 3000 / 4  # of a mixture more experts are in use
    assert decode_flop(DENSE, four) == decode_flop(DENSE, Work(prompt_tokens=10, new_tokens=5))
    assert prefill_flop(DENSE, prompt(4, batch=3)) == 3 * (2 * (400 * 4 + 50) + 2 * 30 * 10)
    assert prefill_bytes(DENSE, prompt(4, batch=3)) == 1000 + 3 * 2 * 100 * 4
