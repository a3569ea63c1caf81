"""A server that tells how likely it finds the tokens of a prompt is forced through an answer; what it leaves out is said."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from support.fake_openai import FakeOpenAI
from support.served import QUICK, ids_of, in_worker

from suite.backends.server import ServerOptions, check_options
from suite.backends.server.faults import Secret, ServerFault
from suite.backends.server.scoring import scores_of
from suite.engine.distributions import unpack
from suite.errors import LoadError
from suite.worker.messages import Examined, Failed, Force, Load, Measure, Memory
from suite.worker.serve import Server

NEVER = -9999.0
"""What vLLM writes for a probability of 0."""
PROMPT, ANSWER = ids_of("The sea is "), ids_of("salt")


def entries(shares: dict[int, float]) -> dict[str, Any]:
    """One position of ``prompt_logprobs``."""
    return {
        str(token): {"logprob": math.log(share) if share else NEVER, "rank": 1, "decoded_token": chr(token)}
        for token, share in shares.items()
    }


def scored(prompt: list[int]) -> list[dict[str, Any] | None]:
    """Half for the token that is there, a quarter for ``x``, an eighth for ``y``."""
    return [None, *(entries({token: 0.5, ord("x"): 0.25, ord("y"): 0.125}) for token in prompt[1:])]


def force(worker: Server, **fields: Any) -> Any:
    request = {"prompt": PROMPT, "answer": ANSWER, "batched": True, "top": 2, "asked": None, **fields}
    return worker.answer(Force(**request))


def test_prompt_and_answer_are_asked_as_one_prompt_and_the_answer_is_told_of() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = scored
        rows = unpack(force(worker))
        (body,) = fake.bodies
    assert (body["prompt"], body["max_tokens"], body["prompt_logprobs"]) == (PROMPT + ANSWER, 1, 3)
    assert (body["stream"], body["temperature"]) == (False, 0)
    assert "stream_options" not in body
    assert len(body["cache_salt"]) == 32
    assert rows is not None
    assert rows.best.tolist() == ANSWER
    assert rows.ids.tolist() == [[token, ord("x")] for token in ANSWER]
    assert rows.chosen.tolist() == pytest.approx([math.log(0.5)] * 4)
    assert rows.rest.tolist() == pytest.approx([math.log(0.25)] * 4)


def test_it_counts_among_the_requests_that_the_server_answered() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = scored
        force(worker)
        measured = worker.answer(Measure())
    assert isinstance(measured, Memory)
    assert measured.readings["client_requests"] == 1


def test_a_token_that_is_not_told_is_one_of_the_rest() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = scored
        rows = unpack(force(worker, asked=[[ord("x"), ord("z")]] * 4))
    assert rows is not None
    assert rows.logprobs[:, 0].tolist() == pytest.approx([math.log(0.25)] * 4)
    assert all(math.isnan(value) for value in rows.logprobs[:, 1])
    assert rows.rest.tolist() == pytest.approx([math.log(0.75)] * 4)


def test_only_evaluation_in_batches_can_be_told() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = scored
        assert unpack(force(worker, batched=False)) is None


def test_without_the_option_nothing_is_asked() -> None:
    with in_worker() as (worker, fake):
        fake.scored = scored
        assert unpack(force(worker)) is None
        assert not fake.requests


def test_the_refusal_of_a_server_is_told_in_its_own_words() -> None:
    with in_worker(prompt_logprobs=256) as (worker, _):
        failed = force(worker)
    assert isinstance(failed, Failed)
    assert "which is greater than max allowed: 20" in failed.message


def test_an_answer_that_does_not_fit_is_not_asked() -> None:
    with in_worker(prompt_logprobs=3, n_ctx=14) as (worker, fake):
        fake.scored = scored
        failed = force(worker)
    assert isinstance(failed, Failed)
    assert "do not fit a context of 14" in failed.message
    assert not fake.requests


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "ollama"}, "a server of kind 'ollama' tells none of a prompt, vllm does"),
        ({"kind": "vllm", "endpoint": "chat"}, 'use endpoint = "completions"'),
        ({"kind": "vllm", "prompts": "text"}, 'prompts = "ids"'),
        ({"kind": "vllm", "prompt_logprobs": -1}, "-1 is no number of tokens"),
    ],
)
def test_what_cannot_tell_is_found_when_it_is_loaded(options: dict[str, Any], said: str) -> None:
    with FakeOpenAI().running() as fake:
        declared = {**QUICK, "url": fake.url, "prompt_logprobs": 64, **options}
        failed = Server().answer(
            Load(backend="support.served:TOY", weights=None, options=declared, prompt_format="chat")
        )
    assert isinstance(failed, Failed)
    assert said in failed.message


def answer(rows: Any) -> bytes:
    return json.dumps({"choices": [{"prompt_logprobs": rows}]}).encode()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (b"<html>", "and none told"),
        (b"[" * 100_000, "and none told"),
        (b'{"choices": []}', "and none told"),
        (answer(None), "and none told"),
        (answer([None]), "and of 1 positions told"),
        (answer([None, 5]), "are no object"),
        (answer([None, {"x": {"logprob": -1.0}}]), "no token with its logarithm"),
        (answer([None, {"5": {"logprob": "-1"}}]), "no token with its logarithm"),
        (answer([None, {"5": {"logprob": True}}]), "no token with its logarithm"),
        (answer([None, {"5": -1.0}]), "no token with its logarithm"),
        (answer([None, {"99999999999": {"logprob": -1.0}}]), "no token with its logarithm"),
        (answer([None, {"9" * 5_000: {"logprob": -1.0}}]), "no token with its logarithm"),
        (answer([None, {"5": {"logprob": -(10**400)}}]), "no token with its logarithm"),
    ],
)
def test_what_is_no_such_answer_is_a_fault(said: bytes, found: str) -> None:
    with pytest.raises(ServerFault, match=found):
        scores_of(200, said, [7, 5], 1, Secret())


def test_a_key_is_cut_out_of_a_refusal() -> None:
    with pytest.raises(ServerFault) as fault:
        scores_of(401, b"bad key hunter22hunter22", [7, 5], 1, Secret("hunter22hunter22"))
    assert "hunter22" not in str(fault.value)


@pytest.mark.parametrize("value", [math.nan, 3.0])
def test_what_is_no_logarithm_of_a_probability_is_broken(value: float) -> None:
    def broken(prompt: list[int]) -> list[dict[str, Any] | None]:
        rows = scored(prompt)
        rows[-2] = {str(prompt[-2]): {"logprob": value}}
        return rows

    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = broken
        rows = unpack(force(worker, asked=[[ord("x")]] * 4))
    assert rows is not None
    assert rows.broken == (2,)


def test_a_position_without_its_own_token_is_a_failure() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = lambda prompt: [None, *[entries({1: 0.5})] * (len(prompt) - 1)]
        failed = force(worker)
    assert isinstance(failed, Failed)
    assert f"does not tell of token {ANSWER[0]} at position 0" in failed.message


def test_a_probability_of_zero_stays_finite() -> None:
    with in_worker(prompt_logprobs=3) as (worker, fake):
        fake.scored = lambda prompt: [None, *(entries({token: 0.0, 1: 1.0}) for token in prompt[1:])]
        examined = force(worker, asked=[[1]] * 4)
    assert isinstance(examined, Examined)
    rows = unpack(examined)
    assert rows is not None
    assert rows.chosen.tolist() == [-1000.0] * 4
    assert rows.rest.tolist() == pytest.approx(
        [math.log(2.0**-23)] * 4
    )  # what single precision cannot tell from nothing


def test_what_a_declared_kind_cannot_tell_is_found_before_a_server_is_started() -> None:
    with pytest.raises(LoadError, match=r"a server of kind 'llama_cpp\.server' tells none of a prompt"):
        check_options(ServerOptions(kind="llama_cpp.server", command=("serve",), prompt_logprobs=64))
