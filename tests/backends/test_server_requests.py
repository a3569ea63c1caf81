"""What is asked of a server: the same question in its own way, everything said, and the key in one header only."""

from __future__ import annotations

import pytest
from support.fake_openai import FakeOpenAI, Script
from support.served import QUICK, ToyTokenizer, answered, ask, ids_of, in_worker

from suite.backends.server import BACKEND, ServerOptions
from suite.backends.server.prompting import ChatPrompter, IdsPrompter, TextPrompter
from suite.errors import LoadError, Unavailable, VariantInvalid
from suite.worker.messages import Failed, Load, Loaded, Measure, Memory, Render, Rendered
from suite.worker.serve import Server

CHAT = [{"role": "user", "content": "What is in the sea?"}]


def render(worker: Server) -> list[int]:
    """The chat's token ids."""
    rendered = worker.answer(Render(chats={"c": CHAT}))
    assert isinstance(rendered, Rendered), rendered
    return rendered.ids["c"]


@pytest.mark.parametrize("kind", ["vllm", "llama-server", "llama_cpp.server", "ollama", "openai"])
def test_each_kind_is_recognized_and_asked_greedily(kind: str) -> None:
    with in_worker(kind=kind) as (worker, fake):
        answered(worker)
        body = fake.bodies[-1]
        assert body["temperature"] == body["seed"] == 0
        assert body["top_p"] == body["n"] == 1
        assert body["max_tokens"] == 64
        assert body["model"] == "toy"
        assert "ignore_eos" not in body
        assert "logit_bias" not in body
        answered(worker, stop_at_end=False)
        body = fake.bodies[-1]
        assert body.get("ignore_eos") is True or body.get("logit_bias") == {"0": -100}


def test_vllm_gets_token_ids_and_a_salt_of_its_own_for_each_request() -> None:
    with in_worker(kind="vllm") as (worker, fake):
        for _ in range(2):
            answered(worker)
        assert [body["prompt"] for body in fake.bodies] == [ids_of("What is in the sea?")] * 2
        assert len({body["cache_salt"] for body in fake.bodies}) == 2


def test_llama_server_is_told_not_to_use_its_cache() -> None:
    with in_worker(kind="llama-server") as (worker, fake):
        answered(worker)
        assert fake.bodies[-1]["cache_prompt"] is False
        assert fake.bodies[-1]["prompt"] == ids_of("What is in the sea?")


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_a_server_that_keeps_its_last_state_is_made_to_forget_it_before_time_runs(endpoint: str) -> None:
    with in_worker(kind="llama_cpp.server", endpoint=endpoint) as (worker, fake):
        fake.thrown_s = 0.3
        prompt = "".join(map(chr, render(worker)))
        answer = answered(worker, prompt)
        ((path, body),) = fake.thrown
        # A chat would begin with the same template as every other one.
        assert (path, body["prompt"], body["max_tokens"]) == ("/v1/completions", "#", 1)
        assert answer.token_times_s[0] < 0.3


def test_ollama_forgets_without_its_template() -> None:
    with in_worker(kind="ollama", endpoint="chat") as (worker, fake):
        answered(worker, "x" * 40, 20, stop_at_end=False)
        assert [(path, body["raw"]) for path, body in fake.thrown] == [("/api/generate", True)]


def test_a_server_whose_prompts_are_trusted_is_asked_once() -> None:
    with in_worker(kind="llama_cpp.server", prefix_cache="trust") as (worker, fake):
        answered(worker)
        assert len(fake.bodies) == 1
        assert not fake.thrown


def test_what_is_rendered_is_sent_as_the_chat_it_came_from() -> None:
    with in_worker(kind="openai", endpoint="chat") as (worker, fake):
        rendered = render(worker)
        answer = answered(worker, "".join(map(chr, rendered)))
        assert fake.requests[-1][0] == "/v1/chat/completions"
        assert fake.bodies[-1]["messages"] == CHAT
        assert answer.prompt_tokens == answer.evaluated_tokens == len(rendered)
        assert answer.text == "The sea is salt."
        fixed = answered(worker, "x" * 40, 20, stop_at_end=False)
        assert (fixed.evaluated_tokens, len(fixed.token_ids)) == (40, 20)
        refused = ask(worker, "never rendered")
        assert isinstance(refused, Failed)
        assert refused.kind == "invalid"


def test_further_fields_are_sent_and_win() -> None:
    with in_worker(extra_body={"top_p": 0.5, "mine": True}) as (worker, fake):
        answered(worker)
        assert fake.bodies[-1]["top_p"] == 0.5
        assert fake.bodies[-1]["mine"] is True


def test_log_probabilities_are_those_that_the_server_tells_and_asked_for_where_wanted() -> None:
    with in_worker(logprobs=True) as (worker, fake):
        assert answered(worker, logprobs=True).logprobs == [-0.5] * 16
        assert answered(worker, logprobs=False).logprobs is None
        assert "logprobs" not in fake.bodies[-1]
    with in_worker() as (worker, fake):
        assert answered(worker, logprobs=True).logprobs is None
        assert "logprobs" not in fake.bodies[-1]


# ------------------------------------------------------------------------------------------- prompts


class Merging(ToyTokenizer):
    """``ab`` is one token, however it was made."""

    def encode_prompt(self, text: str) -> list[int]:
        return [0xE000 if sign == "\ue000" else ord(sign) for sign in text.replace("ab", "\ue000")]

    def decode_prompt(self, ids: object) -> str:
        return "".join("ab" if token == 0xE000 else chr(token) for token in ids)  # type: ignore[attr-defined]


def test_text_that_encodes_otherwise_is_refused_for_answers_and_fitted_for_timing() -> None:
    prompter = TextPrompter(Merging(), adds_bos=False, body={})
    assert prompter.make([0xE000, ord("c")], exact=True).body["prompt"] == "abc"
    with pytest.raises(VariantInvalid, match="its 3 token ids become 2 others"):
        prompter.make(ids_of("abc"), exact=True)
    fitted = prompter.make(ids_of("abc"), exact=False)
    assert len(Merging().encode_prompt(fitted.body["prompt"])) == fitted.tokens == 3


def test_a_bos_that_the_server_adds_is_not_sent_twice() -> None:
    prompter = TextPrompter(ToyTokenizer(bos=1), adds_bos=True, body={})
    assert prompter.make([1, *ids_of("salt")], exact=True).body["prompt"] == "salt"
    with pytest.raises(VariantInvalid, match="does not begin with it"):
        prompter.make(ids_of("salt"), exact=True)
    timed = prompter.make(ids_of("salty"), exact=False)
    assert len(timed.body["prompt"]) == 4  # and the BOS


def test_ids_are_sent_as_they_are() -> None:
    assert IdsPrompter().make((5, 6), exact=True).body == {"prompt": [5, 6]}


def test_a_chat_that_is_longer_than_the_scenario_is_refused_with_both_numbers() -> None:
    with pytest.raises(VariantInvalid, match="has 17 tokens before anything is said, and the scenario asks for 12"):
        ChatPrompter(ToyTokenizer()).make(range(12), exact=False)


# ------------------------------------------------------------------------------------------- keys, options


def load(options: dict[str, object]) -> Loaded | Failed:
    chosen = {**QUICK, "tokenizer": "server", **options}
    return Server().answer(Load(backend="server", weights=None, options=chosen, prompt_format="chat"))  # type: ignore[return-value]


def test_the_key_is_in_the_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "very-secret-key")
    with FakeOpenAI(
        key="very-secret-key", scripts=[Script(status=500, body="you said very-secret-key")]
    ).running() as fake:
        worker = Server()
        options = {**QUICK, "tokenizer": "server", "url": fake.url, "api_key_env": "TOY_KEY"}
        loaded = worker.answer(Load(backend="server", weights=None, options=options, prompt_format="chat"))
        assert isinstance(loaded, Loaded), loaded
        assert "secret" not in repr(loaded)
        failed = ask(worker)
        assert isinstance(failed, Failed)
        assert "you said ***" in failed.message
        assert "secret" not in repr(failed)
        assert fake.requests[-1][2]["Authorization"] == "Bearer very-secret-key"
        assert "secret" not in repr(vars(worker))


def test_a_refused_key_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "wrong-key")
    with FakeOpenAI(key="right-key").running() as fake:
        failed = load({"url": fake.url, "api_key_env": "TOY_KEY"})
        assert isinstance(failed, Failed)
        assert failed.kind == "load"
        assert "refuses the key (HTTP status 401" in failed.message
        assert "wrong-key" not in failed.message
        monkeypatch.delenv("TOY_KEY")
        missing = load({"url": fake.url, "api_key_env": "TOY_KEY"})
        assert isinstance(missing, Failed)
        assert (missing.kind, "TOY_KEY" in missing.message) == ("unavailable", True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "neither is given"),
        ({"url": "http://h:1", "command": ("x",)}, "both are given"),
        ({"url": "ftp://h"}, "write it as http://host:port"),
        ({"url": "http://key:secret@host"}, "name that as api_key_env"),
        ({"url": "http://h:99999"}, "[Pp]ort"),
        ({"url": "http://h", "endpoint": "chat", "prompts": "ids"}, "a chat takes messages"),
        ({"url": "http://h", "metrics": "metrics"}, "write it as /metrics"),
        ({"command": ("serve", "{weights}")}, r"\{weights\} has no value here"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(LoadError, match=said):
        BACKEND.load(None, ServerOptions(**{"tokenizer": "server", **options}), "chat")  # type: ignore[arg-type]


def test_a_server_that_does_not_tell_its_context_needs_to_be_told() -> None:
    with FakeOpenAI(kind="openai").running() as fake, pytest.raises(LoadError, match="give n_ctx"):
        BACKEND.load(None, ServerOptions(url=fake.url), "chat")


def test_a_tokenizer_that_is_not_there_is_told() -> None:
    with FakeOpenAI(kind="openai").running() as fake:
        with pytest.raises(LoadError, match="offers none that renders chats"):
            BACKEND.load(None, ServerOptions(url=fake.url, n_ctx=64, tokenizer="server"), "chat")
        with pytest.raises(LoadError, match="needs the weights"):
            BACKEND.load(None, ServerOptions(url=fake.url, n_ctx=64), "chat")


def test_a_key_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "  ")
    with pytest.raises(Unavailable, match="TOY_KEY"):
        BACKEND.load(None, ServerOptions(url="http://h", api_key_env="TOY_KEY"), "chat")


@pytest.mark.parametrize("kind", ["vllm", "llama-server"])
def test_the_tokenizer_of_the_server_is_used_where_it_has_one(kind: str) -> None:
    with in_worker(kind=kind, backend="server", tokenizer="server") as (worker, _):
        ids = render(worker)
        assert ids == ids_of("<user>What is in the sea?<assistant>")
        answer = answered(worker, "".join(map(chr, ids)))
        assert answer.text == "The sea is salt."
        assert answer.token_ids == ids_of("The sea is salt.")  # without the end token, which vLLM tells


def test_memory_is_not_that_of_the_client() -> None:
    with in_worker() as (worker, _):
        memory = worker.answer(Measure())
        assert isinstance(memory, Memory)
        assert memory.peak_rss_bytes is memory.uss_bytes is memory.kv_cache_bytes is None


@pytest.mark.parametrize("behind", ["", "/", "/v1", "/v1/"])
def test_an_address_may_end_as_other_clients_want_it(behind: str) -> None:
    with FakeOpenAI().running() as fake:
        model = BACKEND.load(None, ServerOptions(url=fake.url + behind, tokenizer="server"), "chat")
        assert model.endpoint.url == fake.url
        assert model.encode("ab") == [97, 98]


@pytest.mark.parametrize(
    ("options", "remembers"),
    [
        ({}, True),
        ({"kind": "openai"}, True),
        ({"kind": "vllm"}, False),
        ({"kind": "vllm", "prefix_cache": "trust"}, True),
        ({"kind": "openai", "prefix_cache": "flush"}, False),
    ],
)
def test_who_may_remember_prompts_is_known_before_anybody_is_asked(options: dict[str, str], remembers: bool) -> None:
    assert BACKEND.remembers(options) is remembers
