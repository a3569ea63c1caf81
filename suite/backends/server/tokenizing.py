"""Text ⇄ token ids on this side of the wire: from the variant's weights, or through the server's own tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from suite.backends.base import Message
from suite.backends.llama_cpp import LlamaCppModel, LlamaCppOptions
from suite.backends.server.faults import quote
from suite.backends.server.wire import Endpoint
from suite.backends.transformers import TransformersModel
from suite.errors import LoadError, Unavailable


class Tokenizer(Protocol):
    """What the backend needs of a tokenizer."""

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end an answer; empty where they are not known."""
        ...

    @property
    def bos(self) -> int | None:
        """The token that the model has put before a text; None for none."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """Whose tokenizer it is."""
        ...

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`."""
        ...

    def encode(self, text: str) -> list[int]:
        """Plain text, no special tokens."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """Text in which the names of special tokens stand for them; no BOS is added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Special tokens left out."""
        ...

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """Special tokens by their names."""
        ...


class GgufTokenizer(LlamaCppModel):
    """The vocabulary and the template of a GGUF file, without its weights."""

    def __init__(self, weights: Path, prompt_format: str) -> None:
        super().__init__(weights, LlamaCppOptions(n_ctx=256, n_batch=32, n_ubatch=32), prompt_format)
        lib, vocab = self._lib, self._vocab
        self.ends = tuple(token for token in range(self._n_vocab) if lib.llama_vocab_is_eog(vocab, token))
        self.bos = int(lib.llama_vocab_bos(vocab)) if lib.llama_vocab_get_add_bos(vocab) else None
        self.facts = {"tokenizer": "GGUF file, by llama.cpp"}

    def _open(self, weights: Path, options: LlamaCppOptions) -> Any:
        from llama_cpp import Llama

        try:
            return Llama(
                str(weights),
                vocab_only=True,
                n_ctx=options.n_ctx,
                n_batch=options.n_batch,
                n_ubatch=options.n_ubatch,
                verbose=True,
            )
        except (ValueError, RuntimeError) as fault:
            raise LoadError(f"{weights}: {fault}") from fault

    def encode_prompt(self, text: str) -> list[int]:
        """See `Tokenizer.encode_prompt`."""
        return self._tokenize(text, add_special=False)

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode_prompt`."""
        raw: bytes = self._llama.detokenize(list(ids), special=True)
        return raw.decode(errors="replace")


class SafetensorsTokenizer(TransformersModel):
    """The tokenizer of a directory of safetensors, without its weights."""

    def __init__(self, directory: Path, prompt_format: str) -> None:
        from transformers import AutoTokenizer, GenerationConfig

        self._prompt_format = prompt_format
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError) as fault:
            raise LoadError(f"{directory}: {fault}") from fault
        try:
            declared = GenerationConfig.from_pretrained(directory).eos_token_id
        except (OSError, ValueError):
            declared = None
        listed = declared if isinstance(declared, list) else [declared]
        ends = dict.fromkeys(token for token in [*listed, self._tokenizer.eos_token_id] if token is not None)
        self.ends = tuple(ends)
        self.bos = None
        self.facts = {"tokenizer": "directory, by transformers"}

    def encode_prompt(self, text: str) -> list[int]:
        """See `Tokenizer.encode_prompt`."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode_prompt`."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class ServerTokenizer:
    """The tokenizer of the server itself, where it offers one (vLLM, llama-server)."""

    ends: tuple[int, ...] = ()
    bos: int | None = None

    def __init__(self, endpoint: Endpoint, kind: str, model: str, prompt_format: str) -> None:
        if kind not in ("vllm", "llama-server"):
            raise LoadError(
                f"tokenizer = \"server\": a server of kind '{kind}' offers none that renders chats; "
                'use tokenizer = "weights" and name the weights as source'
            )
        self._endpoint = endpoint
        self._is_vllm = kind == "vllm"
        self._model = model
        self._prompt_format = prompt_format
        self.facts: Mapping[str, str] = {"tokenizer": f"the server's own ({kind})"}

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`. The date in a template is the server's: it cannot be frozen from here."""
        chat = [dict(message) for message in messages]
        if self._prompt_format == "raw":
            return self._tokenize("\n".join(message["content"] for message in messages), add_special=True)
        if self._is_vllm:
            body = {"model": self._model, "messages": chat, "add_generation_prompt": True, "add_special_tokens": False}
            return self._ids(self._post("/tokenize", body))
        prompt = self._post("/apply-template", {"messages": chat}).get("prompt")
        if not isinstance(prompt, str):
            raise LoadError("/apply-template gave no prompt: is this a llama-server?")
        return self._tokenize(prompt, add_special=True)

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        return self._tokenize(text, add_special=False, parse_special=False)

    def encode_prompt(self, text: str) -> list[int]:
        """See `Tokenizer.encode_prompt`."""
        return self._tokenize(text, add_special=False)

    def _tokenize(self, text: str, *, add_special: bool, parse_special: bool = True) -> list[int]:
        if self._is_vllm:
            body = {"model": self._model, "prompt": text, "add_special_tokens": add_special}
            return self._ids(self._post("/tokenize", body))
        return self._ids(
            self._post("/tokenize", {"content": text, "add_special": add_special, "parse_special": parse_special})
        )

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`; a server may show special tokens by their names."""
        return self.decode_prompt(ids)

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode_prompt`."""
        answer = self._post("/detokenize", {"model": self._model, "tokens": list(ids)})
        text = answer.get("prompt", answer.get("content"))
        if not isinstance(text, str):
            raise LoadError("/detokenize gave no text")
        return text

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        status, said = self._endpoint.post(path, body)
        try:
            answer = json.loads(said)
        except (ValueError, RecursionError):
            answer = None
        if status != 200 or not isinstance(answer, dict):
            raise LoadError(f"{path}: HTTP status {status}: {quote(said, self._endpoint.secret)}")
        return answer

    @staticmethod
    def _ids(answer: Mapping[str, Any]) -> list[int]:
        tokens = answer.get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int and token >= 0 for token in tokens):
            raise LoadError("/tokenize gave no list of token ids")
        return tokens


def tokenizer_of(weights: Path | None, prompt_format: str) -> Tokenizer:
    """The tokenizer of weights on this disk. Raises Unavailable where the library that reads them is not installed."""
    if weights is None:
        raise LoadError('tokenizer = "weights" needs the weights: name them as source, or use tokenizer = "server"')
    try:
        if weights.suffix.lower() == ".gguf":
            return GgufTokenizer(weights, prompt_format)
        return SafetensorsTokenizer(weights, prompt_format)
    except ImportError as fault:
        raise Unavailable(f"the tokenizer of {weights.name} needs {fault.name}, which is not installed") from fault
