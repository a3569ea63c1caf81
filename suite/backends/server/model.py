"""A model behind an HTTP endpoint, as the seam wants it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suite.backends.base import ASSUMED, EVALUATED, Arrived, Message, Prefilled, check_room
from suite.backends.server.counting import Ended, merge, time_tokens
from suite.backends.server.dialects import GREEDY, Dialect
from suite.backends.server.faults import ServerFault, quote
from suite.backends.server.logged import Logged, read_log
from suite.backends.server.managed import ManagedServer
from suite.backends.server.metrics import decode_rate, fetch_metrics, finite, growth
from suite.backends.server.options import ServerOptions
from suite.backends.server.overhead import overhead_s
from suite.backends.server.prompting import CHAT, COMPLETIONS, ChatPrompter, Prompt, Prompter
from suite.backends.server.receiving import Received, receive
from suite.backends.server.scoring import scores_of
from suite.backends.server.tokenizing import Tokenizer
from suite.backends.server.wire import Endpoint
from suite.clock import monotonic
from suite.errors import VariantInvalid

END = -1
"""Yielded where the server says that the answer ended: its end token has no other id here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a served model is made of."""

    endpoint: Endpoint
    dialect: Dialect
    tokenizer: Tokenizer
    prompter: Prompter
    options: ServerOptions
    served_model: str
    managed: ManagedServer | None
    context_tokens: int
    forgets: str
    facts: Mapping[str, str]


class ServedModel:
    """See `LoadedModel`. One request at a time; tokens have the time at which their chunk arrived."""

    clock = staticmethod(monotonic)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tokenizer = parts.tokenizer
        self.endpoint = parts.endpoint
        self.context_tokens = parts.context_tokens
        self.threads = parts.options.n_threads or 1
        self.facts = parts.facts
        self.stop_at_end = True
        self.keep_logprobs = False
        self.logprobs: list[float] = []
        self._last: tuple[tuple[int, ...], str] = ((), "")
        self._seen: list[dict[str, float]] = []
        self.seen: dict[str, str] = {}
        self._overhead_s = overhead_s()
        self._metrics_before = self.read_metrics()

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`."""
        ids = self._tokenizer.render(messages)
        if isinstance(self._parts.prompter, ChatPrompter):
            self._parts.prompter.remember(ids, messages)
        return ids

    def encode(self, text: str) -> list[int]:
        """See `LoadedModel.encode`."""
        return self._tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See `LoadedModel.decode`. Of the last answer it is the text that the server sent."""
        if tuple(ids) == self._last[0]:
            return self._last[1]
        return self._tokenizer.decode([token for token in ids if token >= 0])

    def is_end(self, token: int) -> bool:
        """See `LoadedModel.is_end`."""
        return token == END

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | Arrived]:
        """See `LoadedModel.stream`. The answer is read to its end before the first item is given.

        Raises VariantInvalid where the server counts other tokens than were asked, ServerFault where it fails.
        """
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        asked = self.compose(prompt, max_new_tokens)
        mark = self._parts.managed.mark() if self._parts.managed else 0
        received = self._receive(asked.path, asked.body)
        logged = read_log(self._parts.managed.since(mark)) if self._parts.managed else None
        self._check_prompt(received, asked.tokens, prompt)
        tokens = self.time_tokens(received, max_new_tokens)
        self._note(received, tokens, logged)
        first_at = tokens[0][1] if tokens else monotonic()
        evaluated = self._evaluated(received, asked.tokens, logged, len(tokens))
        yield Prefilled(evaluated, started_at=received.started_at, at=first_at)
        for token, at in tokens:
            yield Arrived(token, at)
        if received.finish == "stop" and self.stop_at_end:
            yield Arrived(END, tokens[-1][1] if tokens else first_at)

    def score(self, prompt: Sequence[int], answer: Sequence[int]) -> Sequence[Mapping[int, float]] | None:
        """See `Scoring.score`. One request: prompt and answer as a prompt, of whose last positions the server tells.

        Raises ServerFault where it fails, or tells something else.
        """
        if not self._parts.options.prompt_logprobs:
            return None
        check_room(len(prompt) + len(answer), 1, self.context_tokens)
        whole = [*prompt, *answer]
        asked = {"stream": False, "prompt": whole, "prompt_logprobs": self._parts.options.prompt_logprobs}
        body = {name: value for name, value in self._body(1).items() if name != "stream_options"} | asked
        self._seen.append({})  # a request of ours in the server's counters, of which nothing is timed
        try:
            status, said = self.endpoint.post(COMPLETIONS, body)
            return scores_of(status, said, whole, len(answer), self.endpoint.secret)
        except ServerFault as fault:
            raise (self._parts.managed.explain(fault) if self._parts.managed else fault) from None

    def compose(self, prompt: Sequence[int], max_new_tokens: int) -> Prompt:
        """The request for an answer to `prompt`. Raises VariantInvalid where the server cannot be asked that."""
        asked = self._parts.prompter.make(prompt, exact=self.stop_at_end)
        return replace(asked, body={**self._body(max_new_tokens), **asked.body})

    def _body(self, max_new_tokens: int) -> dict[str, Any]:
        parts, dialect = self._parts, self._parts.dialect
        body = {**GREEDY, "model": parts.served_model, "max_tokens": max_new_tokens, **dialect.body}
        if dialect.tells_usage:
            body["stream_options"] = {"include_usage": True}
        if not self.stop_at_end and dialect.ignores_end:
            body["ignore_eos"] = True
        elif not self.stop_at_end and self._tokenizer.ends:
            body["logit_bias"] = {str(token): -100 for token in self._tokenizer.ends}
        if self.keep_logprobs and parts.options.logprobs:
            is_chat = isinstance(parts.prompter, ChatPrompter)
            body |= {"logprobs": True, "top_logprobs": 1} if is_chat else {"logprobs": 1}
        match parts.forgets:
            case "salt":
                body["cache_salt"] = secrets.token_hex(16)
            case "off":
                body["cache_prompt"] = False
        return {**body, **parts.options.extra_body}

    def _receive(self, path: str, body: Mapping[str, Any]) -> Received:
        try:
            if self._parts.forgets == "flush":
                self._flush()
            return receive(self.endpoint, path, body)
        except ServerFault as fault:
            raise (self._parts.managed.explain(fault) if self._parts.managed else fault) from None

    def _flush(self) -> None:
        """One token of another prompt: a server that keeps the state of its last request alone forgets it.

        Not as a chat, whose template begins like that of every other; so only where nothing else is offered.
        """
        parts = self._parts
        common = {"model": parts.served_model, **parts.options.extra_body}
        if parts.dialect.throwaway:
            path, own = parts.dialect.throwaway
            status, said = self.endpoint.post(path, {**common, **own})
        else:
            usual = {**GREEDY, "stream": False, "max_tokens": 1, **common}
            status, said = self.endpoint.post(COMPLETIONS, {**usual, "prompt": "#"})
            if status == 404 and isinstance(parts.prompter, ChatPrompter):
                chat = [{"role": "user", "content": "#"}]
                status, said = self.endpoint.post(CHAT, {**usual, "messages": chat})
        if status != 200:
            raise ServerFault(
                f"the throwaway request, which makes the server forget: HTTP status {status}: "
                f"{quote(said, self.endpoint.secret) or 'no explanation'}"
            )

    def _check_prompt(self, received: Received, expected: int, prompt: Sequence[int]) -> None:
        """Raise VariantInvalid when the server evaluated another prompt than it was asked."""
        if received.usage is not None and received.usage.prompt_tokens != expected:
            raise VariantInvalid(
                f"the server counts {received.usage.prompt_tokens} prompt tokens, and {expected} were meant: its template, "
                "its tokenizer or its handling of BOS is another one"
            )
        if self.stop_at_end and received.prompt_ids is not None and received.prompt_ids != tuple(prompt):
            raise VariantInvalid(
                f"the server encoded the prompt otherwise: {len(received.prompt_ids)} tokens there, {len(prompt)} here"
            )

    def time_tokens(self, received: Received, max_new_tokens: int) -> list[tuple[int, float]]:
        """The tokens of an answer with the clock's reading when each had arrived.

        Raises VariantInvalid when the server counted others.
        """
        ended = Ended(
            reason=received.finish or "",
            most=max_new_tokens,
            counted=received.usage.completion_tokens if received.usage else None,
        )
        tokens = time_tokens(merge(received.arrivals), ended, self._tokenizer.encode, self._size_of)
        if received.finish == "stop" and tokens and self._ends_in_end_token([token for token, _ in tokens], received):
            tokens.pop()
        ids = tuple(token for token, _ in tokens)
        self._last = ids, received.text
        self.logprobs = received.logprobs if len(received.logprobs) >= len(tokens) else []
        return tokens

    def _ends_in_end_token(self, ids: Sequence[int], received: Received) -> bool:
        """Servers that tell ids tell that of the end token too. Where nobody knows the end tokens, it is what has no text."""
        if self._tokenizer.ends or not self._parts.dialect.tells_ids:
            return ids[-1] in self._tokenizer.ends
        return self._tokenizer.decode(ids) != received.text

    def _size_of(self, token: int) -> int:
        return len(self._tokenizer.decode([token]).encode())

    def _evaluated(self, received: Received, expected: int, logged: Logged | None, new_tokens: int) -> int:
        """Prompt tokens that were evaluated: as the server tells, or logs, or else all, where it tells nothing."""
        if received.timings is not None:
            found = received.timings.evaluated_tokens
        elif received.usage is not None and received.usage.cached_tokens is not None:
            found = expected - received.usage.cached_tokens
        elif logged is not None:
            found = logged.evaluated(new_tokens, ended=received.finish == "stop")
        else:
            self.seen[EVALUATED] = ASSUMED
            return expected
        # A throwaway prompt has the same BOS token, and nothing else in common with any other.
        keeps_bos = self._parts.forgets == "flush" and self._parts.dialect.adds_bos and self._tokenizer.bos is not None
        return expected if keeps_bos and found == expected - 1 else found

    def _note(self, received: Received, tokens: Sequence[tuple[int, float]], logged: Logged | None) -> None:
        """Keep what the server says of a request beside what was seen of it."""
        first, last = (tokens[0][1], tokens[-1][1]) if tokens else (0.0, 0.0)
        seen = {"chunks": float(len({at for _, at in tokens})), "tokens": float(len(tokens))}
        if last > first:
            seen |= {"later": float(sum(at > first for _, at in tokens)), "decode_s": last - first}
        if received.timings is not None and received.timings.new_tokens > 1 and received.timings.decode_s > 0:
            seen |= {"server_steps": received.timings.new_tokens - 1.0, "server_decode_s": received.timings.decode_s}
        elif logged is not None and logged.decode_s > 0:
            seen |= {"server_steps": float(logged.steps), "server_decode_s": logged.decode_s}
            seen |= {"kernel_steps": float(logged.steps), "kernel_s": logged.kernel_s}
        self._seen.append(seen)

    def readings(self) -> Mapping[str, float]:
        """See `Remote.readings`: what the server counted and timed itself, beside what the client saw of the same requests."""
        grown = growth(self._metrics_before, self.read_metrics())
        told = {
            "client_requests": float(len(self._seen)),
            "client_retries": float(self.endpoint.retried),
            "client_overhead_s": self._overhead_s,
            **_rate(self._seen, "client_decode_tok_s", "later", "decode_s"),
            **_rate(self._seen, "server_decode_tok_s", "server_steps", "server_decode_s"),
            **_rate(self._seen, "server_kernel_tok_s", "kernel_steps", "kernel_s"),
            **_total(self._seen, "server_decode_steps", "server_steps"),
            **_total(self._seen, "server_decode_s", "server_decode_s"),
            **_total(self._seen, "server_kernel_steps", "kernel_steps"),
            **_total(self._seen, "server_kernel_s", "kernel_s"),
            **_rate(self._seen, "client_tokens_a_chunk", "tokens", "chunks"),
            **grown,
            **decode_rate(grown),
        }
        return finite(told)

    def read_metrics(self) -> dict[str, float]:
        """What the server tells at its `metrics` path now, by our names; empty where it tells nothing."""
        return fetch_metrics(self.endpoint, self._parts.options.metrics)

    def process_ids(self) -> Sequence[int]:
        """See `Remote.process_ids`."""
        return self._parts.managed.process_ids() if self._parts.managed else ()

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """No endpoint tells."""
        return None

    def device_bytes(self) -> int | None:
        """No endpoint tells."""
        return None

    def close(self) -> None:
        """End the server that was started for this model."""
        if self._parts.managed is not None:
            self._parts.managed.close()


def _total(seen: Sequence[Mapping[str, float]], name: str, what: str) -> dict[str, float]:
    """All of `what`, where any request has it."""
    told = [entry[what] for entry in seen if what in entry]
    return {name: sum(told)} if told else {}


def _rate(seen: Sequence[Mapping[str, float]], name: str, count: str, over: str) -> dict[str, float]:
    """All of `count` / all of `over`, over the requests that have both."""
    both = [(entry[count], entry[over]) for entry in seen if count in entry and over in entry]
    total = sum(under for _, under in both)
    return {name: sum(upper for upper, _ in both) / total} if total > 0 else {}
