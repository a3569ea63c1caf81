"""Before the first request: which server answers, which model, and how it is spoken to. Nothing here generates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suite.backends.base import ELSEWHERE
from suite.backends.server.dialects import DIALECTS, Dialect, Forgetting, context_of, describe, find_kind, served_models
from suite.backends.server.faults import ServerFault, quote
from suite.backends.server.managed import ManagedServer
from suite.backends.server.model import Parts
from suite.backends.server.options import ServerOptions
from suite.backends.server.prompting import ChatPrompter, IdsPrompter, Prompter, TextPrompter
from suite.backends.server.tokenizing import Tokenizer
from suite.backends.server.wire import Endpoint
from suite.errors import LoadError

FORGETTING: Mapping[Forgetting, str] = {
    "salt": "a salt of its own for each request",
    "off": "turned off for each request",
    "flush": "a throwaway request before each",
    "trust": "nothing is done against it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A server that has answered."""

    endpoint: Endpoint
    dialect: Dialect
    served_model: str
    context_tokens: int
    managed: ManagedServer | None
    facts: Mapping[str, str]


def meet(endpoint: Endpoint, options: ServerOptions, managed: ManagedServer | None) -> Met:
    """Ask a server what it is. Raises LoadError when nobody answers, or not enough is told."""
    if managed is None:
        _greet(endpoint)
    kind = find_kind(endpoint) if options.kind == "auto" else options.kind
    model = _choose_model(endpoint, options)
    context = options.n_ctx or context_of(endpoint, kind, model)
    if context is None:
        raise LoadError(f"a server of kind '{kind}' does not tell how long its context is: give n_ctx")
    return Met(
        endpoint=endpoint,
        dialect=DIALECTS[kind],
        served_model=str(model.get("id") or options.served_model),
        context_tokens=context,
        managed=managed,
        facts=describe(endpoint, kind),
    )


def assemble(met: Met, options: ServerOptions, tokenizer: Tokenizer) -> Parts:
    """What a model is made of, and the facts about it. They hold no reading that differs from launch to launch."""
    dialect = met.dialect
    check_scoring(options, dialect)
    prompter = _prompter_of(options, dialect, tokenizer)
    forgets: Forgetting = dialect.forgets if options.prefix_cache == "auto" else options.prefix_cache
    return Parts(
        endpoint=met.endpoint,
        dialect=dialect,
        tokenizer=tokenizer,
        prompter=prompter,
        options=options,
        served_model=met.served_model,
        managed=met.managed,
        context_tokens=met.context_tokens,
        forgets=forgets,
        facts={
            "device": "server",
            "server": dialect.kind,
            **({ELSEWHERE: "whatever the server holds"} if met.managed is None else {}),
            **({"logprobs": "of its own tokens, as the server tells"} if options.logprobs else {}),
            **(
                {"prompt logprobs": f"of the {options.prompt_logprobs} likeliest tokens"}
                if options.prompt_logprobs
                else {}
            ),
            **met.facts,
            "n_ctx": str(met.context_tokens),
            "prompts": prompter.fact,
            **tokenizer.facts,
            "answer ids": "as the server tells" if dialect.tells_ids else "the text, encoded again",
            "prefix cache": FORGETTING[forgets],
            "times": "request sent → chunk arrived, over an open connection; prefill ends with the first chunk",
        },
    )


def check_scoring(options: ServerOptions, dialect: Dialect) -> None:
    """Raise LoadError where log-probabilities of prompts are asked for, and cannot be told."""
    if options.prompt_logprobs < 0:
        raise LoadError(
            f"prompt_logprobs: {options.prompt_logprobs} is no number of tokens; 256 is a good one, 0 asks for none"
        )
    if options.prompt_logprobs and not dialect.scores_prompts:
        able = " and ".join(one.kind for one in DIALECTS.values() if one.scores_prompts)
        raise LoadError(
            f"prompt_logprobs: a server of kind '{dialect.kind}' tells none of a prompt, {able} does; leave it out, and "
            "fidelity is not measured"
        )
    if options.prompt_logprobs and (options.endpoint == "chat" or options.prompts == "text"):
        raise LoadError(
            'prompt_logprobs: prompts must be sent as token ids: use endpoint = "completions", prompts = "ids"'
        )


def _greet(endpoint: Endpoint) -> None:
    """Raise LoadError when nobody answers, or refuses the key."""
    try:
        status, said = endpoint.get("/v1/models")
    except ServerFault as fault:
        raise LoadError(
            f"no server answers at {endpoint.url}: {fault}; start it, or give the command that does"
        ) from None
    if status in (401, 403):
        raise LoadError(
            f"the server at {endpoint.url} refuses the key (HTTP status {status}: {quote(said, endpoint.secret)}); name the "
            "environment variable that holds it as api_key_env"
        )


def _choose_model(endpoint: Endpoint, options: ServerOptions) -> Mapping[str, Any]:
    """The entry of ``/v1/models`` that is meant; an empty one where the server lists nothing."""
    listed = served_models(endpoint)
    if options.served_model:
        return next((entry for entry in listed if entry["id"] == options.served_model), {"id": options.served_model})
    if len(listed) > 1:
        names = ", ".join(str(entry["id"]) for entry in listed[:10])
        raise LoadError(f"the server has several models, name one as served_model: {names}")
    return listed[0] if listed else {}


def _prompter_of(options: ServerOptions, dialect: Dialect, tokenizer: Tokenizer) -> Prompter:
    if options.endpoint == "chat":
        return ChatPrompter(tokenizer)
    if options.prompts == "ids" or (options.prompts == "auto" and dialect.takes_ids):
        return IdsPrompter()
    return TextPrompter(tokenizer, adds_bos=dialect.adds_bos, body=dialect.text_body)
