"""A closed loop of clients against one server: each sends its next request when it has its answer."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from suite import clock
from suite.backends.server.counting import Ended, merge, time_tokens
from suite.backends.server.dialects import GREEDY, Dialect
from suite.backends.server.faults import ServerFault
from suite.backends.server.metrics import TOTALS, fetch_metrics, growth
from suite.backends.server.model import ServedModel
from suite.backends.server.prompting import COMPLETIONS, Prompt
from suite.backends.server.receiving import Received, receive
from suite.backends.server.wire import Endpoint
from suite.engine.passage import PASSAGE, scenario_prompt
from suite.errors import VariantInvalid
from suite.metrics.load import Level, Request, Target, measure_level

POLL_S = 0.25
"""Between two looks at the server's metrics while a level runs."""
TOKENS_A_WORD = 1.4
"""For prompts of a server without a tokenizer here: their true length is what the server counts."""


def new_nonce() -> str:
    """What the prompts of one sweep begin with: a server that lives on may still hold those of the one before."""
    return secrets.token_hex(4)


def head_of(number: int, nonce: str) -> str:
    """The number first: so two prompts of one sweep differ from their first tokens on."""
    return f"{number} {nonce} begins this request."


class Asker(Protocol):
    """How a server is asked, and its answers counted."""

    @property
    def endpoint(self) -> Endpoint:
        """The server."""
        ...

    def compose(self, number: int) -> Prompt:
        """A request that shares no beginning with any other `number`, nor with one of an earlier sweep: no prefix cache
        answers it.
        """
        ...

    def times(self, received: Received) -> list[float]:
        """When each token of an answer had arrived, by the clock. Raises VariantInvalid where nobody can count them."""
        ...

    def read_metrics(self) -> dict[str, float]:
        """What the server says of itself; empty where it says nothing."""
        ...


class ExactAsker:
    """Prompts of so many tokens and answers of so many tokens, by the tokenizer of a served model."""

    def __init__(self, model: ServedModel, prompt_tokens: int, new_tokens: int) -> None:
        model.stop_at_end = False
        self.endpoint = model.endpoint
        self._model = model
        self._passage = model.encode(PASSAGE)
        self._prompt_tokens, self._new_tokens = prompt_tokens, new_tokens
        self._nonce = new_nonce()

    def compose(self, number: int) -> Prompt:
        """See `Asker.compose`."""
        own = self._model.encode(head_of(number, self._nonce) + " ")
        rest = scenario_prompt(self._passage, self._prompt_tokens, number)
        return self._model.compose([*own, *rest][: self._prompt_tokens], self._new_tokens)

    def times(self, received: Received) -> list[float]:
        """See `Asker.times`."""
        return [at for _, at in self._model.time_tokens(received, self._new_tokens)]

    def read_metrics(self) -> dict[str, float]:
        """See `Asker.read_metrics`."""
        return self._model.read_metrics()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAsker:
    """Prompts of about so many tokens, for a server whose tokenizer nobody has: the server itself must count."""

    endpoint: Endpoint
    dialect: Dialect
    served_model: str
    prompt_tokens: int
    new_tokens: int
    metrics: str = ""
    """Path of the server's metrics."""
    nonce: str = field(default_factory=new_nonce)
    """Of this sweep."""

    def compose(self, number: int) -> Prompt:
        """See `Asker.compose`."""
        words = PASSAGE.split()
        start = number * 17 % len(words)
        rotated = (words[start:] + words[:start]) * (1 + self.prompt_tokens // len(words))
        text = " ".join([head_of(number, self.nonce), *rotated[: round(self.prompt_tokens / TOKENS_A_WORD)]])
        body = {
            **GREEDY,
            "model": self.served_model,
            "max_tokens": self.new_tokens,
            "prompt": text,
            **self.dialect.body,
        }
        body["stream_options"] = {"include_usage": True}
        if self.dialect.ignores_end:
            body["ignore_eos"] = True
        return Prompt(path=COMPLETIONS, body=body, tokens=0)

    def times(self, received: Received) -> list[float]:
        """See `Asker.times`."""
        arrivals = merge(received.arrivals)
        if received.usage is None and any(arrival.token_ids is None for arrival in arrivals):
            raise VariantInvalid(
                "the server counts no tokens (no usage): name a variant of the matrix file, whose weights bring a tokenizer"
            )
        counted = received.usage.completion_tokens if received.usage else None
        ended = Ended(reason=received.finish or "", most=self.new_tokens, counted=counted)
        most = self.new_tokens + 1  # whatever a server counts: more is refused, and need not be made first
        tokens = time_tokens(arrivals, ended, lambda text: [0] * min(counted or len(text), most), lambda _: 1)
        return [at for _, at in tokens]

    def read_metrics(self) -> dict[str, float]:
        """See `Asker.read_metrics`."""
        return fetch_metrics(self.endpoint, self.metrics)


def run_level(asker: Asker, concurrency: int, per_client: int, target: Target, numbers: count[int]) -> Level:
    """`concurrency` clients with `per_client` requests each, all of them composed before and counted afterwards.

    Raises what `Asker.compose` and `Asker.times` raise: ServerFault and LoadError, where a tokenizer is the server's and it
    is gone. An interrupt waits for the requests that are on their way, and no further ones are sent.
    """
    prompts = [[asker.compose(next(numbers)) for _ in range(per_client)] for _ in range(concurrency)]
    before = asker.read_metrics()
    over = threading.Event()
    begin = clock.monotonic()
    with ThreadPoolExecutor(concurrency + 1) as pool:
        try:
            watching = pool.submit(_watch, asker, over) if before else None
            clients = [pool.submit(_run_client, asker.endpoint, own, over) for own in prompts]
            outcomes = [outcome for client in clients for outcome in client.result()]
        finally:
            over.set()
    peaks = watching.result() if watching else {}
    readings = {**growth(before, asker.read_metrics()), **{f"{name}_peak": value for name, value in peaks.items()}}
    return measure_level(concurrency, [_count(asker, outcome, begin) for outcome in outcomes], target, readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    prompt: Prompt
    started_at: float
    ended_at: float
    received: Received | None = None
    error: str | None = None


def _run_client(endpoint: Endpoint, prompts: Sequence[Prompt], over: threading.Event) -> list[_Outcome]:
    outcomes = []
    for prompt in prompts:
        if over.is_set():  # nobody wants the rest any more
            break
        start = clock.monotonic()
        received, error = None, None
        try:
            received = receive(endpoint, prompt.path, prompt.body)
        except ServerFault as fault:
            error = str(fault)
        outcomes.append(
            _Outcome(prompt=prompt, started_at=start, ended_at=clock.monotonic(), received=received, error=error)
        )
    return outcomes


def _count(asker: Asker, outcome: _Outcome, begin: float) -> Request:
    started = outcome.received.started_at if outcome.received else outcome.started_at
    times: list[float] = []
    error = outcome.error
    if outcome.received is not None:
        try:
            times = asker.times(outcome.received)
        except VariantInvalid as fault:
            error = str(fault)
    usage = outcome.received.usage if outcome.received else None
    return Request(
        started_s=started - begin,
        ended_s=outcome.ended_at - begin,
        token_times_s=tuple(at - begin for at in times),
        prompt_tokens=usage.prompt_tokens if usage else outcome.prompt.tokens,
        error=error and error.partition(" after ")[0],  # how far each came would make every fault another one
    )


def _watch(asker: Asker, over: threading.Event) -> dict[str, float]:
    """The highest readings of what goes up and down, until it is over."""
    peaks: dict[str, float] = {}
    while not over.wait(POLL_S):
        for name, value in asker.read_metrics().items():
            if name not in TOTALS:
                peaks[name] = max(value, peaks.get(name, value))
    return peaks
