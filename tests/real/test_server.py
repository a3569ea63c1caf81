"""llama_cpp.server on loopback, with the weights that llama_cpp itself runs: the same tokens, and no cache between them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.real import FP16, GGUF, QUESTION, Launch, declare

from suite.engine.launching import LiveVariant
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.preparing import Preparer

COMMAND = (
    "{python}", "-m", "llama_cpp.server", "--model", "{weights}", "--port", "{port}", "--n_ctx", "{n_ctx}",
    "--n_threads", "{threads}", "--n_threads_batch", "{threads}", "--logits_all", "False",
)  # fmt: skip
SERVED: dict[str, Any] = {"backend": "server", "make": "Q8_0"}
QUESTIONS = [
    QUESTION,
    "Write a Python function that adds two numbers.",
    "Zähle die Wochentage auf – bitte auf Deutsch.",
]


def options(**more: Any) -> dict[str, Any]:
    return {"command": COMMAND, "n_ctx": 2048, "n_threads": 2, **more}


@pytest.fixture
def installed() -> None:
    """The server's own packages are there."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "sse_starlette", "starlette_context")):
        pytest.skip("llama_cpp.server is not installed: pip install 'llama-cpp-python[server]'")


@pytest.fixture
def both(launch: Launch, installed: None) -> Iterator[tuple[LiveVariant, LiveVariant]]:
    """The same weights: in a worker, and behind a server."""
    with launch(**GGUF, name="direct") as direct, launch(**SERVED, options=options(), name="served") as served:
        yield direct, served


def test_it_answers_as_the_same_weights_do_without_it(both: tuple[LiveVariant, LiveVariant]) -> None:
    direct, served = both
    assert served.loaded.facts["server"] == "llama_cpp.server"
    assert served.encode(PASSAGE) == direct.encode(PASSAGE)
    for question in QUESTIONS:
        prompt = direct.render_one(question)
        assert served.render_one(question) == prompt
        expected, _ = direct.generate(prompt, 32, stop_at_end=True)
        answer, _ = served.generate(prompt, 32, stop_at_end=True)
        # All prompts begin with the same system prompt: a server that kept its state would evaluate the rest alone.
        assert answer.evaluated_tokens == answer.prompt_tokens == len(prompt)
        assert answer.text == expected.text
        assert answer.token_ids == expected.token_ids
        assert answer.finish_reason == expected.finish_reason
        assert len(answer.token_times_s) == len(answer.token_ids)
        assert all(gap >= 0 for gap in answer.itl_s)


def test_what_is_timed_has_as_many_tokens_as_were_asked_for(both: tuple[LiveVariant, LiveVariant]) -> None:
    direct, served = both
    passage = direct.encode(PASSAGE)
    for turn in range(4):
        prompt = scenario_prompt(passage, 64, turn, "salt" if turn % 2 else "")
        expected, _ = direct.generate(prompt, 16, stop_at_end=False)
        answer, _ = served.generate(prompt, 16, stop_at_end=False)
        assert answer.evaluated_tokens == 64
        assert len(answer.token_ids) == len(expected.token_ids) == 16
        assert 0 < (answer.ttft_s or 0) < answer.token_times_s[-1]
    memory = served.memory()
    assert 100e6 < (memory.peak_rss_bytes or 0) < 2e9
    assert memory.readings["client_decode_tok_s"] == pytest.approx(memory.readings["server_decode_tok_s"], rel=0.5)
    assert memory.readings["client_tokens_a_chunk"] < 1.5


def test_a_prompt_that_came_out_of_the_cache_is_seen(launch: Launch, installed: None) -> None:
    with launch(**SERVED, options=options(prefix_cache="trust"), name="trusted") as trusted:
        prompt = trusted.render_one(QUESTION)
        first, _ = trusted.generate(prompt, 8, stop_at_end=True)
        again, _ = trusted.generate(prompt, 8, stop_at_end=True)
        assert first.evaluated_tokens == len(prompt)
        assert again.evaluated_tokens < len(prompt)
        passage = trusted.encode(PASSAGE)
        asked = [(run, turn) for run in ("this run", "that run") for turn in range(2)]
        timed = [
            trusted.generate(scenario_prompt(passage, 64, turn, run), 2, stop_at_end=False)[0] for run, turn in asked
        ]
        assert all(answer.evaluated_tokens >= 62 for answer in timed)  # what is left is BOS, and a token by chance


def test_chats_are_counted_alike(launch: Launch, installed: None) -> None:
    chat = launch(**SERVED, options=options(endpoint="chat"), name="chatting")
    with launch(**GGUF, name="direct") as direct, chat as chatting:
        prompt = chatting.render_one(QUESTION)
        answer, _ = chatting.generate(prompt, 32, stop_at_end=True)
        expected, _ = direct.generate(prompt, 32, stop_at_end=True)
        assert answer.text == expected.text
        assert answer.evaluated_tokens == len(prompt)
        timed, _ = chatting.generate(scenario_prompt(direct.encode(PASSAGE), 96, 1), 16, stop_at_end=False)
        assert (timed.evaluated_tokens, len(timed.token_ids)) == (96, 16)


COMPARE = """
import json, sys
from pathlib import Path
from suite.backends.server.tokenizing import tokenizer_of
from suite.engine.passage import PASSAGE
for tokenizer in (tokenizer_of(Path(file), "chat") for file in sys.argv[1:]):
    texts = [PASSAGE, "Zähle – bitte! 🙂", "<|im_end|>", ""]
    encoded = [tokenizer.encode_prompt(text) for text in texts]
    chat = tokenizer.render([{"role": "user", "content": "What is the capital of France?"}])
    print(json.dumps([chat, encoded, [tokenizer.decode_prompt(ids) for ids in encoded] == texts,
                      tokenizer.decode(encoded[2]), encoded[2][0] in tokenizer.ends]))
"""


def test_both_kinds_of_weights_bring_the_same_tokenizer(preparer: Preparer) -> None:
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    variants = (declare("llama_cpp", make="Q8_0"), declare(**FP16))
    files = [str(preparer.prepare(variant).weights) for variant in variants]
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", COMPARE, *files], capture_output=True, text=True, check=True, cwd=root, encoding="utf-8"
    ).stdout.splitlines()
    gguf, tensors = map(json.loads, told)
    assert gguf == tensors
    assert gguf[2:] == [True, "", True]
