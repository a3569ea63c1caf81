"""A prompt of token ids → what a server takes. The seam speaks ids; where a server does not, the number must stay equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from suite.backends.base import Message
from suite.backends.server.tokenizing import Tokenizer
from suite.errors import VariantInvalid

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
TRIES = 16
FILLER = " and"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is sent."""

    path: str
    body: Mapping[str, Any]
    tokens: int
    """What the server must count."""


class Prompter(Protocol):
    """One way of asking."""

    fact: str

    def make(self, ids: Sequence[int], *, exact: bool) -> Prompt:
        """The prompt of these ids; where not `exact`, of as many others, for a request of which only the time counts.

        Raises VariantInvalid, with both numbers, where the server cannot be asked that.
        """
        ...


class IdsPrompter:
    """Token ids as they are."""

    fact = "token ids"

    def make(self, ids: Sequence[int], *, exact: bool) -> Prompt:
        """See `Prompter.make`."""
        return Prompt(path=COMPLETIONS, body={"prompt": list(ids)}, tokens=len(ids))


class TextPrompter:
    """Text that encodes to the same ids, special tokens by their names."""

    fact = "text that encodes to the same token ids"

    def __init__(self, tokenizer: Tokenizer, *, adds_bos: bool, body: Mapping[str, Any]) -> None:
        self._tokenizer = tokenizer
        self._head = [tokenizer.bos] if adds_bos and tokenizer.bos is not None else []
        self._body = body

    def make(self, ids: Sequence[int], *, exact: bool) -> Prompt:
        """See `Prompter.make`."""
        rest = list(ids)
        if self._head and rest[:1] == self._head:
            rest = rest[1:]
        elif self._head and exact:
            raise VariantInvalid(
                f"the server puts token {self._head[0]} (BOS) before a text, and the prompt does not begin with it"
            )
        text = self._tokenizer.decode_prompt(rest)
        if self._encode(text) != list(ids):
            if exact:
                raise VariantInvalid(
                    f"the prompt cannot be sent as text: its {len(ids)} token ids become {len(self._encode(text))} others"
                )
            text = fit_text(text, len(ids), self._count, self._shorten)
        return Prompt(path=COMPLETIONS, body={"prompt": text, **self._body}, tokens=len(ids))

    def _encode(self, text: str) -> list[int]:
        return self._head + self._tokenizer.encode_prompt(text)

    def _count(self, text: str) -> int:
        return len(self._encode(text))

    def _shorten(self, text: str, surplus: int) -> str:
        return self._tokenizer.decode_prompt(self._tokenizer.encode_prompt(text)[:-surplus])


class ChatPrompter:
    """Messages. The server's template makes tokens of them, which must be as many as ours."""

    fact = "chat messages, through the server's template"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._chats: dict[tuple[int, ...], list[dict[str, str]]] = {}
        self._overhead: int | None = None

    def remember(self, ids: Sequence[int], messages: Sequence[Message]) -> None:
        """These messages are what the ids were rendered from."""
        self._chats[tuple(ids)] = [dict(message) for message in messages]

    def make(self, ids: Sequence[int], *, exact: bool) -> Prompt:
        """See `Prompter.make`."""
        messages = self._chats.get(tuple(ids))
        if messages is None and exact:
            raise VariantInvalid(f"{len(ids)} token ids that were not rendered from messages cannot be sent as a chat")
        return Prompt(path=CHAT, body={"messages": messages or self._fitting(ids)}, tokens=len(ids))

    def _fitting(self, ids: Sequence[int]) -> list[dict[str, str]]:
        if self._overhead is None:
            self._overhead = self._count("")
        room = len(ids) - self._overhead
        if room < 1:
            raise VariantInvalid(
                f"a chat has {self._overhead} tokens before anything is said, and the scenario asks for {len(ids)}: make its "
                'prompt longer, or use endpoint = "completions"'
            )
        text = fit_text(self._tokenizer.decode(ids[:room]), len(ids), self._count, self._shorten)
        return self._message(text)

    @staticmethod
    def _message(text: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": text}]

    def _count(self, text: str) -> int:
        return len(self._tokenizer.render(self._message(text)))

    def _shorten(self, text: str, surplus: int) -> str:
        return self._tokenizer.decode(self._tokenizer.encode(text)[:-surplus])


def fit_text(text: str, wanted: int, count: Callable[[str], int], shorten: Callable[[str, int], str]) -> str:
    """`text` made a little shorter or longer, until it has `wanted` tokens.

    Raises VariantInvalid, with both numbers, when it does not come out.
    """
    found = count(text)
    for _ in range(TRIES):
        if found == wanted:
            return text
        text = shorten(text, found - wanted) if found > wanted else text + FILLER * (wanted - found)
        found = count(text)
    raise VariantInvalid(f"no text could be found that has {wanted} tokens: the nearest one has {found}")
