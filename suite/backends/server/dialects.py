"""How servers that speak the same protocol differ, in one table, and how to tell which one answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from suite.backends.server.faults import ServerFault
from suite.backends.server.wire import Endpoint

Forgetting = Literal["salt", "off", "flush", "trust"]

GREEDY: Mapping[str, Any] = {
    "temperature": 0,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "n": 1,
    "seed": 0,
    "stream": True,
}
"""Fields of the protocol itself, all said: each server has other defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One kind of server. What is said here was read in its documentation or source, or tried."""

    kind: str
    takes_ids: bool = False
    """``/v1/completions`` takes a list of token ids as prompt."""
    tells_ids: bool = False
    """Says which tokens a chunk holds (``token_ids``), that of an end token too."""
    adds_bos: bool = False
    """A text prompt gets the model's BOS token, where the model has one added."""
    tells_usage: bool = True
    """Knows ``stream_options.include_usage``."""
    forgets: Forgetting = "trust"
    throwaway: tuple[str, Mapping[str, Any]] | None = None
    """Path and body of a request that makes it forget, where a completion goes through the chat template as well."""
    scores_prompts: bool = False
    """Tells the likeliest tokens at each position of a prompt (``prompt_logprobs``)."""
    ignores_end: bool = False
    """Knows ``ignore_eos``; others are told to make end tokens impossible by ``logit_bias``."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields that keep decoding greedy, or ask for what is needed."""
    text_body: Mapping[str, Any] = field(default_factory=dict)
    """Fields for a prompt that is sent as text."""


DIALECTS: Mapping[str, Dialect] = {
    dialect.kind: dialect
    for dialect in (
        Dialect(
            kind="vllm",
            takes_ids=True,
            tells_ids=True,
            forgets="salt",
            scores_prompts=True,
            ignores_end=True,
            body={"top_k": -1, "min_p": 0, "repetition_penalty": 1, "return_token_ids": True},
            text_body={"add_special_tokens": False},
        ),
        Dialect(
            kind="llama-server",
            takes_ids=True,
            adds_bos=True,
            forgets="off",
            ignores_end=True,
            body={"top_k": 1, "min_p": 0, "repeat_penalty": 1, "samplers": ["top_k"]},
        ),
        Dialect(
            kind="llama_cpp.server",
            adds_bos=True,
            tells_usage=False,
            forgets="flush",
            body={"top_k": 1, "min_p": 0, "repeat_penalty": 1},
        ),
        Dialect(
            kind="ollama",
            forgets="flush",
            throwaway=(
                "/api/generate",
                {"prompt": "#", "raw": True, "stream": False, "options": {"num_predict": 1, "temperature": 0}},
            ),
        ),
        Dialect(kind="openai"),
    )
}
"""By kind."""


LONGEST_VERSION = 80
"""Characters; what is longer, or no text, is no version: a server's words end up in reports."""


def find_kind(endpoint: Endpoint) -> str:
    """Which kind of server answers, by what only that kind offers; ``openai`` for any other."""
    if "version" in _ask(endpoint, "/version"):
        return "vllm"
    if "default_generation_settings" in _ask(endpoint, "/props"):
        return "llama-server"
    if "version" in _ask(endpoint, "/api/version"):
        return "ollama"
    title = _ask(endpoint, "/openapi.json").get("info", {})
    if isinstance(title, dict) and "llama.cpp Python API" in str(title.get("title")):
        return "llama_cpp.server"
    return "openai"


def describe(endpoint: Endpoint, kind: str) -> dict[str, str]:
    """Facts that the server tells of itself: its version, where it has one."""
    told: Any = None
    match kind:
        case "vllm":
            told = _ask(endpoint, "/version").get("version")
        case "llama-server":
            told = _ask(endpoint, "/props").get("build_info")
        case "ollama":
            told = _ask(endpoint, "/api/version").get("version")
        case "llama_cpp.server":
            told = _dict(_ask(endpoint, "/openapi.json").get("info")).get("version")
    is_version = isinstance(told, str) and told.isprintable() and 0 < len(told) <= LONGEST_VERSION
    return {"server version": told} if is_version else {}


def served_models(endpoint: Endpoint) -> list[dict[str, Any]]:
    """What ``/v1/models`` lists."""
    listed = _ask(endpoint, "/v1/models").get("data")
    return (
        [entry for entry in listed if isinstance(entry, dict) and entry.get("id")] if isinstance(listed, list) else []
    )


def context_of(endpoint: Endpoint, kind: str, model: Mapping[str, Any]) -> int | None:
    """Tokens of prompt and answer together, where the server tells."""
    told: Any = model.get("max_model_len")
    if kind == "llama-server":
        told = _dict(_ask(endpoint, "/props").get("default_generation_settings")).get("n_ctx")
    return told if type(told) is int and told > 0 else None


def _ask(endpoint: Endpoint, path: str) -> dict[str, Any]:
    """The JSON object behind a path; empty where there is none."""
    try:
        status, body = endpoint.get(path, timeout_s=10)
        return _dict(json.loads(body)) if status == 200 else {}
    except (ServerFault, ValueError, RecursionError):
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
