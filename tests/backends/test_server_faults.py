"""What a server may do wrong ends in a clear state: nothing is lost in silence, and nothing is asked twice once it answered."""

from __future__ import annotations

import re

import pytest
from support.fake_openai import Script
from support.served import answered, ask, in_worker

from suite.backends.server.managed import free_port
from suite.worker.messages import Failed, Load, Measure, Memory, pack, unpack
from suite.worker.serve import Server

TIMED = '{"choices": [], "timings": {"prompt_n": 1, "prompt_ms": 1, "predicted_n": 2, "predicted_ms": %s}}'


def failure(*scripts: Script, most: int = 64, **options: object) -> tuple[Failed, int]:
    """How a request failed, and how many were sent."""
    with in_worker(*scripts, **options) as (worker, fake):  # type: ignore[arg-type]
        answer = ask(worker, most=most)
        assert isinstance(answer, Failed), answer
        return answer, len(fake.requests)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script(fault="die"), r"the connection broke \(\w+\) after 2 chunks \(2 characters\)"),
        (Script(fault="half"), r"broke off within a chunk, .* after 2 chunks"),
        (Script(fault="silence"), r"silence after 2 chunks"),
        (Script(fault="silence", after=0), r"silence after 0 chunks"),
        (Script(fault="comments"), r"only signs of life, after 2 chunks"),
        (Script(fault="no finish"), r"ended with no finish_reason after 16 chunks"),
        (Script(finish="content_filter"), r"ended with finish_reason 'content_filter'"),
        (Script(events=("{not json",)), r"no JSON .* after 0 chunks"),
        (Script(events=("[1]",)), r"a JSON list where an object was expected"),
        (
            Script(events=('{"error": {"message": "out of\\u001b[2J memory"}}',)),
            r"an error: out of \[2J memory after 0",
        ),
        (Script(events=('{"choices": [{"text": 5}]}',)), r"text of type int"),
        (Script(events=('{"choices": 5}',)), r"'choices' is no list"),
        (Script(events=('{"choices": [{"text": "a", "token_ids": [-4]}]}',)), r"a token id is -4, no count"),
        (Script(events=('{"choices": [], "usage": {"prompt_tokens": NaN}}',)), r"usage.prompt_tokens is nan, no count"),
        (Script(events=("x" * (9 << 20),)), r"an event of more than 8388608 bytes"),
        (Script(content_type="text/html"), r"an answer of type text/html where a stream was asked for"),
        (Script(status=500, body='{"error": "boom"}'), r"HTTP status 500: .*boom"),
        (Script(status=400, body="<b>no</b>"), r"HTTP status 400: <b>no</b>"),
        (Script(events=('{"choices": [{"text": "a"}]}',) * 90), r"does not end, though 64 tokens .* after 81 chunks"),
        (Script(events=('{"choices": [{"text": "a", "token_ids": [9999999999]}]}',)), r"a token id is 9999999999, no"),
        (Script(status=404), r"HTTP status 404: no explanation"),
        (
            Script(events=(TIMED % ("9" * 400),)),
            r"a time that is no number of milliseconds after 0 chunks",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_told_and_asked_once(script: Script, said: str) -> None:
    answer, requests = failure(script)
    assert answer.kind == "failure"
    assert requests == 1
    assert re.search(said, answer.message), answer.message


def test_a_server_that_is_busy_is_asked_again_before_it_answers() -> None:
    busy = [Script(status=429, headers={"Retry-After": "0"}), Script(status=503, headers={"Retry-After": "0"})]
    with in_worker(*busy, Script()) as (worker, fake):
        assert answered(worker).text == "The sea is salt."
        assert len(fake.requests) == 3
        memory = worker.answer(Measure())
        assert isinstance(memory, Memory)
        assert memory.readings["client_retries"] == 2


def test_a_server_that_cannot_be_made_to_forget_is_not_believed() -> None:
    with in_worker(kind="llama_cpp.server") as (worker, fake):
        fake.thrown_status = 500
        answer = ask(worker)
        assert isinstance(answer, Failed)
        assert "which makes the server forget: HTTP status 500" in answer.message
        assert not fake.requests


def test_half_a_character_is_shown_as_one_that_is_unknown() -> None:
    end = '{"choices": [{"text": "", "finish_reason": "stop"}]}'
    with in_worker(Script(events=('{"choices": [{"text": "a\\ud800b"}]}', end)), kind="openai") as (worker, _):
        assert answered(worker).text == "a\ufffdb"


def test_waiting_for_a_busy_server_is_not_timed() -> None:
    with in_worker(Script(status=503, headers={"Retry-After": "1"}), Script()) as (worker, _):
        answer = answered(worker)
        assert answer.witness["wall_s"] > 1  # type: ignore[operator]
        assert answer.token_times_s[-1] < 1


def test_a_server_that_stays_busy_is_given_up() -> None:
    answer, requests = failure(Script(status=429, headers={"Retry-After": "0"}, body="later"))
    assert requests == 3
    assert "HTTP status 429 after 2 more tries: later" in answer.message


def test_the_worker_lives_on_after_a_fault() -> None:
    with in_worker(Script(fault="die"), Script()) as (worker, _):
        assert isinstance(ask(worker), Failed)
        assert answered(worker).text == "The sea is salt."


def test_nobody_there_is_a_load_error_with_what_to_do() -> None:
    options = {"url": f"http://127.0.0.1:{free_port()}", "n_ctx": 64}
    answer = Server().answer(Load(backend="support.served:TOY", weights=None, options=options, prompt_format="chat"))
    assert isinstance(answer, Failed)
    assert answer.kind == "load"
    assert re.search(r"no server answers at .*refused.*start it, or give the command", answer.message), answer.message


def test_numbers_that_are_too_large_are_left_out_and_cost_nobody_the_rest() -> None:
    odd = '{"choices": [{"text": "a", "finish_reason": "stop", "logprobs": {"token_logprobs": [-%s]}}]}' % ("9" * 400)
    with in_worker(Script(events=(odd,)), kind="openai", metrics="/metrics") as (worker, fake):
        fake.metrics = (
            'vllm:num_requests_waiting{engine="0"} 1e308\nvllm:num_requests_waiting{engine="1"} 1e308\n'
            "vllm:generation_tokens_total 1e308\nvllm:request_decode_time_seconds_count 1\n"
            "vllm:request_decode_time_seconds_sum 1e-300\n"
        )
        assert answered(worker).text == "a"
        memory = worker.answer(Measure())
    assert isinstance(memory, Memory)
    assert unpack(pack(memory)) == memory
    assert memory.readings["server_new_tokens"] == 1e308
    assert not {"server_waiting", "server_metrics_tok_s"} & memory.readings.keys()
