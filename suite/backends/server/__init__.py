"""Models behind an HTTP endpoint that speaks OpenAI's protocol: vLLM, llama-server, llama_cpp.server, Ollama and others."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from suite.backends.llama_cpp import MAKES
from suite.backends.server.dialects import DIALECTS
from suite.backends.server.faults import Secret
from suite.backends.server.introducing import Met, assemble, check_scoring, meet
from suite.backends.server.managed import ManagedServer, Started, fill_in, free_port, surroundings
from suite.backends.server.model import ServedModel
from suite.backends.server.options import ServerOptions
from suite.backends.server.tokenizing import ServerTokenizer, Tokenizer, tokenizer_of
from suite.backends.server.wire import Endpoint, Waits, check_url, root_of
from suite.errors import LoadError, Unavailable

__all__ = ["BACKEND", "Server", "ServerOptions"]


class Server:
    """The ``server`` backend.

    `environment` is what a worker would find around it; None takes that of this process, which is one.
    """

    options: ClassVar[type[Any]] = ServerOptions
    requires: ClassVar[tuple[str, ...]] = ()
    weights_format: ClassVar[Literal["gguf", "safetensors", "none", "any"]] = "any"
    makes: ClassVar[tuple[str, ...]] = MAKES
    makers: ClassVar[tuple[str, ...]] = ("llama_cpp",)

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment

    def needs_weights(self, options: Mapping[str, Any]) -> bool:
        """Whether the weights must be on this disk: for their tokenizer, or for a server that is started with them."""
        return options.get("tokenizer") != "server" or any("{weights}" in part for part in options.get("command", ()))

    def remembers(self, options: Mapping[str, Any]) -> bool:
        """Whether nothing keeps a server with these options from answering a prompt out of a cache.

        Of one that is still to be met it is taken to be so: whoever it is, other prompts do no harm.
        """
        way, kind = options.get("prefix_cache", "auto"), options.get("kind", "auto")
        return way == "trust" or (way == "auto" and (kind == "auto" or DIALECTS[kind].forgets == "trust"))

    def load(self, weights: Path | None, options: ServerOptions, prompt_format: str) -> ServedModel:
        """Find the server, or start it, and learn how to speak with it.

        Raises LoadError for options that contradict each other, for a server that does not start, with the last lines of
        its log, and for one that does not answer.
        """
        check_options(options)
        secret = _secret_of(options)
        managed = None
        if options.command:
            endpoint, managed = self._start(weights, options, secret)
        else:
            endpoint = self.reach(options)
        try:
            met = meet(endpoint, options, managed)
            return ServedModel(assemble(met, options, self._tokenizer_of(met, weights, options, prompt_format)))
        except BaseException:
            if managed is not None:
                managed.close()
            raise

    def _start(self, weights: Path | None, options: ServerOptions, secret: Secret) -> tuple[Endpoint, ManagedServer]:
        port = free_port()
        around = os.environ if self._environment is None else self._environment
        values = {
            "port": str(port),
            "weights": str(weights or ""),
            "model": options.served_model,
            "threads": str(options.n_threads or ""),
            "n_ctx": str(options.n_ctx or ""),
            "python": sys.executable,
        }
        endpoint = Endpoint(f"http://127.0.0.1:{port}", secret, _waits_of(options))
        started = Started(
            command=fill_in(options.command, values),
            env={**surroundings(around), **options.env},
            health=options.health,
            startup_s=options.startup_s,
        )
        managed = ManagedServer(started, secret)
        try:
            managed.wait_until_ready(endpoint)
        except BaseException:
            managed.close()
            raise
        return endpoint, managed

    @staticmethod
    def reach(options: ServerOptions) -> Endpoint:
        """The server at `ServerOptions.url`; nothing is sent. Raises LoadError for an address or a key that cannot be."""
        check_options(options)
        return Endpoint(root_of(options.url), _secret_of(options), _waits_of(options))

    @staticmethod
    def _tokenizer_of(met: Met, weights: Path | None, options: ServerOptions, prompt_format: str) -> Tokenizer:
        if options.tokenizer == "weights":
            return tokenizer_of(weights, prompt_format)
        return ServerTokenizer(met.endpoint, met.dialect.kind, met.served_model, prompt_format)

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """A GGUF file, quantized by llama.cpp."""
        from suite.backends.llama_cpp import BACKEND as LLAMA_CPP

        LLAMA_CPP.make(recipe, source, destination)


def check_options(options: ServerOptions) -> None:
    """Raise LoadError for options that contradict each other."""
    if bool(options.url) == bool(options.command):
        raise LoadError(
            "give either url, of a server that is there, or command, which starts one: "
            + ("both are given" if options.url else "neither is given")
        )
    wrong = check_url(options.url) if options.url else None
    if wrong:
        raise LoadError(f"url: {wrong}")
    if options.endpoint == "chat" and options.prompts == "ids":
        raise LoadError('prompts = "ids": a chat takes messages; use endpoint = "completions"')
    if options.kind != "auto":
        check_scoring(options, DIALECTS[options.kind])
    for name in ("metrics", "health"):
        path = getattr(options, name)
        if path and not path.startswith("/"):
            raise LoadError(f"{name}: '{path}' is no path; write it as /{path}")


def _secret_of(options: ServerOptions) -> Secret:
    name = options.api_key_env
    if not name:
        return Secret()
    value = os.environ.get(name, "").strip()
    if not value:
        raise Unavailable(f"the environment variable {name} (api_key_env) is not set: it should hold the server's key")
    if not value.isascii() or not value.isprintable():
        raise LoadError(f"the environment variable {name} (api_key_env) holds characters that no key has")
    return Secret(value)


def _waits_of(options: ServerOptions) -> Waits:
    return Waits(
        connect_s=options.connect_s,
        first_token_s=options.first_token_s,
        chunk_s=options.chunk_s,
        retries=options.retries,
    )


BACKEND = Server()
