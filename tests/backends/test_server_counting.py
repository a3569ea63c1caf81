"""Which token came when, from what a server sends: pure, so that each odd case can be written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backends.server.counting import UNKNOWN, Arrival, Ended, merge, time_tokens
from suite.backends.server.logged import read_log
from suite.backends.server.metrics import decode_rate, growth, parse_metrics
from suite.backends.server.overhead import overhead_s
from suite.errors import VariantInvalid


def encode(text: str) -> list[int]:
    """Tokens of the toy: characters, but ``ab`` is one."""
    return [ord(sign) for sign in text.replace("ab", "\ue000")]


def size_of(token: int) -> int:
    return 2 if token == 0xE000 else len(chr(token).encode())


def timed(
    pieces: list[str], *, reason: str = "length", most: int = 100, counted: int | None = None
) -> list[tuple[int, float]]:
    arrivals = [Arrival(at=float(number), text=piece) for number, piece in enumerate(pieces)]
    return time_tokens(arrivals, Ended(reason=reason, most=most, counted=counted), encode, size_of)


def test_a_token_in_two_chunks_came_with_the_second() -> None:
    assert timed(["xa", "b", "y"], reason="stop", most=9) == [(ord("x"), 0), (0xE000, 1), (ord("y"), 2)]
    assert [at for _, at in timed(["xyza", "b!"], reason="stop", most=9)] == [0, 0, 0, 1, 1]


def test_as_many_chunks_as_tokens_are_one_each_whatever_their_text_is() -> None:
    """Tokens without a text of their own come as empty chunks."""
    assert timed(["x", "", "y"], most=3) == [(ord("x"), 0), (ord("y"), 1), (UNKNOWN, 2)]


def test_the_count_of_the_server_wins_over_encoding_the_text_again() -> None:
    """The model may have made ``a`` and ``b``, which encode to one token."""
    found = timed(["ab", "xyz"], counted=5, most=5)
    assert len(found) == 5
    assert [at for _, at in found].count(1) == 4 or [at for _, at in found].count(1) == 3
    assert found[0] == (0xE000, 0)
    assert found[-1][0] == UNKNOWN


@pytest.mark.parametrize("counted", [3, 4])
def test_an_end_token_may_be_counted_or_not(counted: int) -> None:
    assert len(timed(["x", "y", "z"], reason="stop", counted=counted)) == 3


def test_stopping_for_length_tells_the_number_where_nothing_else_does() -> None:
    assert len(timed(["ab", "cd"], most=4)) == 4


def test_what_the_server_cannot_have_made_is_invalid() -> None:
    with pytest.raises(VariantInvalid, match=r"counts 100 new tokens \(finish_reason\), and what it sent has 3"):
        timed(["xyz"])
    with pytest.raises(VariantInvalid, match="counts 7 new tokens, and 5 were asked for"):
        timed(["xyzxyz"], counted=7, most=5)


def test_chunks_that_waited_in_a_buffer_came_together() -> None:
    arrivals = [Arrival(at=at, text="x") for at in (1.0, 1.00004, 1.00008, 1.01)]
    assert [arrival.at for arrival in merge(arrivals)] == [1.0, 1.0, 1.0, 1.01]


@given(st.lists(st.text("abxyzöß🙂", max_size=6), min_size=1, max_size=8), st.integers(-2, 2))
def test_every_token_has_a_time_and_times_do_not_run_back(pieces: list[str], off: int) -> None:
    number = max(len(encode("".join(pieces))) + off, 0)
    found = timed(pieces, counted=number, most=max(number, 1))
    times = [at for _, at in found]
    assert len(found) == number
    assert times == sorted(times)
    assert len({token for token, _ in found if token <= UNKNOWN}) == sum(token <= UNKNOWN for token, _ in found)


# ------------------------------------------------------------------------------------------- what a server says of itself

VLLM = """\
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 120.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 16.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_cpu_blocks="None",num_gpu_blocks="512",engine="0"} 1.0
vllm:request_decode_time_seconds_sum{engine="0"} 4.5
vllm:generation_tokens_total{engine="0"} NaN
nonsense without a number
"""
LLAMA = """\
llamacpp:tokens_predicted_total 30
llamacpp:tokens_predicted_seconds_total 0.25
llamacpp:requests_deferred 0
"""


def test_metrics_of_vllm_are_read() -> None:
    assert parse_metrics(VLLM) == {
        "server_waiting": 3,
        "server_kv_cache_usage": 0.25,
        "server_prefix_cache_queries": 120,
        "server_prefix_cache_hits": 16,
        "server_kv_cache_tokens": 8192,
        "server_kv_block_tokens": 16,
        "server_total_decode_s": 4.5,
    }


def test_metrics_of_llama_server_are_read_and_counters_tell_how_much_they_grew() -> None:
    before = parse_metrics(LLAMA)
    assert before == {"server_new_tokens": 30, "server_total_decode_s": 0.25, "server_waiting": 0}
    after = {**before, "server_new_tokens": 45.0, "server_waiting": 2.0}
    assert growth(before, after) == {"server_new_tokens": 15, "server_total_decode_s": 0, "server_waiting": 2}
    assert growth({"server_new_tokens": 45.0}, {"server_new_tokens": 5.0}) == {"server_new_tokens": 5}


def test_the_decode_rate_of_a_server_is_over_tokens_but_the_first_ones() -> None:
    grown = {"server_new_tokens": 45.0, "server_decoded_requests": 5.0, "server_total_decode_s": 0.4}
    assert decode_rate(grown) == {"server_metrics_tok_s": pytest.approx(100)}
    assert decode_rate({"server_new_tokens": 45.0}) == {}


@given(st.text(max_size=300))
def test_metrics_that_are_none_are_left_out(text: str) -> None:
    assert all(isinstance(value, float) for value in parse_metrics(text).values())


def test_a_number_that_no_reading_can_hold_is_left_out() -> None:
    huge = 'vllm:num_requests_waiting{engine="%d"} 1e308\n'
    assert parse_metrics(huge % 0) == {"server_waiting": 1e308}
    assert parse_metrics(huge % 0 + huge % 1 + "vllm:num_requests_running 1") == {"server_running": 1}
    for blocks in ("²", "9" * 5000, "-1"):
        assert parse_metrics(f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{blocks}"}} 1') == {}
    assert growth({"server_new_tokens": -1e308}, {"server_new_tokens": 1e308, "server_waiting": 1.0}) == {
        "server_waiting": 1
    }


LOG = """\
llama_perf_context_print:        load time =      34.36 ms
llama_perf_context_print: prompt eval time =      34.25 ms /    37 tokens (    0.93 ms per token,  1080.29 tokens per second)
llama_perf_context_print:        eval time =      42.00 ms /     7 runs   (    6.00 ms per token,   166.67 tokens per second)
llama_perf_context_print:       total time =      84.25 ms /    44 tokens
"""


def test_the_log_of_llama_cpp_tells_what_was_evaluated() -> None:
    logged = read_log("nothing of it\n" + LOG)
    assert logged is not None
    assert logged.evaluated(7, ended=True) == 37
    assert logged.evaluated(8, ended=False) == 37
    assert logged.evaluated(6, ended=True) == 38  # a last batch of one prompt token is logged as a step
    assert logged.evaluated(1, ended=False) == 37  # "1 run" is what is logged of none
    assert logged.decode_s == pytest.approx(0.05)
    assert logged.kernel_s == pytest.approx(0.042)
    assert read_log("prompt eval time = 1 ms / 3 tokens") is None
    for wrong in ("4.2.0", "9" * 400):
        assert read_log(LOG.replace("42.00", wrong)) is None
    assert read_log(LOG.replace(" 7 runs", "9" * 5000 + " runs")) is None


def test_the_clients_own_cost_is_measured() -> None:
    assert 0 < overhead_s(50) < 0.01
