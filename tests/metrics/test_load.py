"""What many clients get: pure, from requests with known times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.metrics.load import Budget, Knee, Level, Request, Target, find_budget, find_knee, measure_level, quantiles

USAGE, WAITING = "server_kv_cache_usage_peak", "server_waiting_peak"


def request(started: float, *times: float, error: str | None = None) -> Request:
    ended = max((started, *times))
    return Request(started_s=started, ended_s=ended, token_times_s=times, prompt_tokens=10, error=error)


def level(concurrency: int, rate: float) -> Level:
    return Level(concurrency=concurrency, requests=1, wall_s=1, request_s=1, new_tok_s=rate, prompt_tokens=1)


def test_throughput_is_over_the_time_of_all_clients_together() -> None:
    found = measure_level(2, [request(0, 1, 2, 3), request(1, 2, 3, 5)], Target(), {})
    assert (found.wall_s, found.request_s, found.new_tok_s) == pytest.approx((5, 0.4, 1.2))
    assert found.ttft_s["p50"] == 1
    assert found.itl_s["p50"] == 1
    assert found.prompt_tokens == 20
    assert found.goodput_s is None


def test_failures_count_apart_and_nowhere_else() -> None:
    requests = [request(0, 1, 2), request(0, error="HTTP status 429"), request(0, error="HTTP status 429"), request(0)]
    found = measure_level(4, requests, Target(ttft_s=2), {})
    assert found.errors == {"HTTP status 429": 2, "no token came": 1}
    assert found.request_s == found.goodput_s == 0.5
    assert found.ttft_s["p99"] == 1
    nothing = measure_level(1, requests[1:], Target(), {})
    assert (nothing.request_s, nothing.ttft_s, nothing.itl_s) == (0, {}, {})


def test_goodput_asks_for_both_targets() -> None:
    requests = [request(0, 1, 1.1, 1.2), request(0, 3, 3.1, 3.2), request(0, 1, 3, 5)]
    for target, met in ((Target(ttft_s=2, tpot_s=1), 1), (Target(ttft_s=2), 2), (Target(tpot_s=5), 3)):
        assert measure_level(3, requests, target, {}).goodput_s == pytest.approx(met / 5)


def test_tokens_of_one_chunk_share_its_gap() -> None:
    one = request(0, 1, 1, 1, 4, 4, 4)
    assert one.gaps_s == (1,)
    assert one.tpot_s == 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_quantiles_are_numpys(values: list[float]) -> None:
    found = quantiles(values)
    expected = np.quantile(values, [0.5, 0.95, 0.99])
    assert [found["p50"], found["p95"], found["p99"]] == pytest.approx(list(expected), abs=1e-6)


def test_the_knee_is_where_a_doubling_gains_too_little() -> None:
    rates = {1: 100.0, 2: 190.0, 4: 340.0, 8: 360.0, 16: 700.0}
    knee = find_knee([level(clients, rate) for clients, rate in rates.items()])
    assert (knee.concurrency, knee.reached) == (4, True)
    assert knee.gain == pytest.approx(360 / 340 - 1)


def test_steps_that_are_no_doublings_are_taken_as_their_share_of_one() -> None:
    # 25 % over two doublings is 12 % each; 25 % over a step from 4 to 5 is much more.
    assert find_knee([level(1, 100), level(4, 125)]).reached is False
    assert find_knee([level(1, 100), level(4, 118)]).reached is True
    assert find_knee([level(4, 100), level(5, 104)]).reached is False


def test_a_knee_that_was_not_reached_or_cannot_be_told() -> None:
    assert find_knee([level(1, 100), level(2, 200)]) == Knee(concurrency=2, reached=False, gain=1.0)
    assert find_knee([level(4, 100)]) == Knee(concurrency=4, reached=False)
    assert find_knee([level(4, 0)]) == Knee(concurrency=None, reached=False)
    assert find_knee([]).concurrency is None


def told(concurrency: int, readings: Mapping[str, float], errors: int = 0) -> Level:
    """A level of two requests a client, of 100 tokens each."""
    requests = 2 * concurrency
    made = level(concurrency, 1)
    failed = {"full": errors} if errors else {}
    return replace(made, requests=requests, prompt_tokens=100 * (requests - errors), errors=failed, readings=readings)


def test_the_kv_budget_is_what_the_cache_holds_in_whole_blocks() -> None:
    held = {"server_kv_cache_tokens": 4096.0, USAGE: 0.9}
    assert find_budget([told(1, held)], 128, 10) == Budget(requests=37, request_tokens=110, cache_tokens=4096)
    in_blocks = find_budget([told(1, {**held, "server_kv_block_tokens": 16.0})], 128, 10)
    assert in_blocks == Budget(requests=36, request_tokens=110, cache_tokens=4096)  # 7 blocks each, of 256


def test_without_its_size_the_kv_budget_is_estimated_by_the_most_clients_none_of_whom_waited() -> None:
    levels = [
        told(1, {USAGE: 0.05}),
        told(4, {USAGE: 0.25, WAITING: 0.0}),
        told(8, {USAGE: 0.3}, errors=1),
        told(16, {USAGE: 1.0, WAITING: 3.0}),
    ]
    assert find_budget(levels, 128, 10) == Budget(requests=16, request_tokens=110, seen_at=4)


def test_a_server_that_tells_nothing_has_no_kv_budget() -> None:
    assert find_budget([], 128, 10) is None
    assert find_budget([told(1, {})], 128, 10) is None
    assert find_budget([told(1, {USAGE: 1e-308})], 128, 10) is None
    assert find_budget([told(8, {USAGE: 1.0})], 128, 10) is None  # full, and who waits is not told


def test_where_nobody_counted_prompts_they_are_as_long_as_was_asked() -> None:
    uncounted = replace(told(1, {"server_kv_cache_tokens": 1380.0}), prompt_tokens=0)
    assert find_budget([uncounted], 128, 10) == Budget(requests=10, request_tokens=138, cache_tokens=1380)
