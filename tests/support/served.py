"""A model served by the fake server, loaded as the backend loads one, but for its tokenizer where that server has none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from support.fake_openai import FakeOpenAI, Script, rendered

from suite.backends.base import Message
from suite.backends.server import ServerOptions
from suite.backends.server.introducing import assemble, meet
from suite.backends.server.model import ServedModel
from suite.backends.server.wire import Endpoint, Waits
from suite.errors import UsageError
from suite.worker.messages import Failed, Generate, Generated, Load
from suite.worker.serve import Server

QUICK: dict[str, Any] = {"connect_s": 2.0, "first_token_s": 1.0, "chunk_s": 0.4, "retries": 2, "n_ctx": 4096}


class ToyTokenizer:
    """Tokens are characters, as those of the fake server."""

    ends: tuple[int, ...] = (0,)
    facts: Mapping[str, str] = {"tokenizer": "toy"}

    def __init__(self, bos: int | None = None) -> None:
        self.bos = bos

    def render(self, messages: Sequence[Message]) -> list[int]:
        return ids_of(rendered({"messages": messages}))

    def encode(self, text: str) -> list[int]:
        return ids_of(text)

    def encode_prompt(self, text: str) -> list[int]:
        return ids_of(text)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(token) for token in ids if token)

    def decode_prompt(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


class Toy:
    """The ``server`` backend with that tokenizer."""

    options: ClassVar[type[Any]] = ServerOptions
    requires: ClassVar[tuple[str, ...]] = ()
    weights_format: ClassVar[Literal["gguf", "safetensors", "none", "any"]] = "none"
    makes: ClassVar[tuple[str, ...]] = ()
    makers: ClassVar[tuple[str, ...]] = ()

    def load(self, weights: Path | None, options: ServerOptions, prompt_format: str) -> ServedModel:
        waits = Waits(
            connect_s=options.connect_s,
            first_token_s=options.first_token_s,
            chunk_s=options.chunk_s,
            retries=options.retries,
        )
        return ServedModel(assemble(meet(Endpoint(options.url, waits=waits), options, None), options, ToyTokenizer()))

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        raise UsageError(f"the toy cannot make '{recipe}'")


TOY = Toy()


@contextlib.contextmanager
def in_worker(
    *scripts: Script, kind: str = "vllm", backend: str = "support.served:TOY", **options: Any
) -> Iterator[tuple[Server, FakeOpenAI]]:
    """The model inside what answers a worker's requests, and the server behind it."""
    with FakeOpenAI(kind=kind, scripts=list(scripts) or [Script()]).running() as fake:
        worker = Server()
        chosen = {**QUICK, "url": fake.url, **options}
        loaded = worker.answer(Load(backend=backend, weights=None, options=chosen, prompt_format="chat"))
        assert not isinstance(loaded, Failed), loaded
        yield worker, fake


def ids_of(text: str) -> list[int]:
    """The toy's tokens."""
    return [ord(sign) for sign in text]


def ask(worker: Server, prompt: str = "What is in the sea?", most: int = 64, **fields: Any) -> Any:
    """One request; `Generated`, or `Failed`."""
    return worker.answer(Generate(prompt=ids_of(prompt), max_new_tokens=most, **fields))


def answered(worker: Server, prompt: str = "What is in the sea?", most: int = 64, **fields: Any) -> Generated:
    """One request that does not fail."""
    answer = ask(worker, prompt, most, **fields)
    assert isinstance(answer, Generated), answer
    return answer
