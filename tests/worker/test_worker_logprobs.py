"""Log-probabilities out of a worker: asked for, cut at the end token, and None when nobody can tell."""

from __future__ import annotations

import math
from typing import Any

import pytest

from suite.backends.fake import FakeModel
from suite.worker.messages import Failed, Generate, Generated, Load, Weigh, Weighed, pack, unpack
from suite.worker.serve import Server


def serve(**options: Any) -> Server:
    server = Server()
    server.answer(Load(backend="fake", weights=None, options=options, prompt_format="chat"))
    return server


def generate(server: Server, **more: Any) -> Generated:
    answer = server.answer(Generate(prompt=[65] * 4, max_new_tokens=6, **more))
    assert isinstance(answer, Generated)
    return answer


def test_they_come_when_asked_for_one_a_token_without_the_end() -> None:
    server = serve(reply="abc", logprob=-0.25)
    assert generate(server, logprobs=True).logprobs == [-0.25] * 3
    assert generate(server).logprobs is None


def test_nothing_is_kept_while_speed_is_timed() -> None:
    server = serve(reply="abc")
    generate(server, logprobs=True)
    generate(server, stop_at_end=False)
    model = server._loaded
    assert isinstance(model, FakeModel)
    assert (model.keep_logprobs, model.logprobs) == (False, [])


def test_an_answer_is_weighed_token_by_token() -> None:
    answer = serve(logprob=-0.5).answer(Weigh(prompt=[65], answer=[1, 2, 3]))
    assert answer == Weighed(logprobs=[-0.5] * 3)
    assert unpack(pack(answer)) == answer


def test_a_model_that_cannot_be_asked_of_other_answers_tells_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(FakeModel, "weigh")
    server = serve(reply="abc")
    assert generate(server, logprobs=True).logprobs == [-0.1, -0.1, -0.1]
    assert server.answer(Weigh(prompt=[65], answer=[1])) == Weighed(logprobs=None)


@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_what_is_no_number_is_none_and_the_answer_still_arrives(broken: float) -> None:
    server = serve(reply="abc", logprob=broken)
    answer = generate(server, logprobs=True)
    assert (answer.text, answer.logprobs) == ("abc", None)
    assert pack(answer)
    assert server.answer(Weigh(prompt=[65], answer=[1])) == Weighed(logprobs=None)


def test_what_does_not_fit_is_refused() -> None:
    answer = serve(n_ctx=8).answer(Weigh(prompt=[65] * 6, answer=[1] * 3))
    assert isinstance(answer, Failed)
    assert "do not fit a context of 8" in answer.message
