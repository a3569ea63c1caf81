"""One answer off the wire: chunks with the times at which they arrived, and what the server says of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suite.backends.server.chunks import DONE, Chunk, Timings, Usage, read_chunk
from suite.backends.server.counting import Arrival
from suite.backends.server.faults import ServerFault, quote
from suite.backends.server.sse import EventParser
from suite.backends.server.wire import Endpoint, Opened, read_pieces

SPARE = 16
"""Chunks that an answer may have beyond one for each token that was asked for."""


@dataclass(slots=True, kw_only=True)
class Received:
    """An answer as far as it came."""

    started_at: float
    arrivals: list[Arrival] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_ids: tuple[int, ...] | None = None

    @property
    def text(self) -> str:
        """The answer's text."""
        return "".join(arrival.text for arrival in self.arrivals)

    def take(self, chunk: Chunk, at: float) -> None:
        """Enter one chunk. One that has neither text nor tokens, nor ends anything, stands for a token without a text."""
        self.usage = chunk.usage or self.usage
        self.timings = chunk.timings or self.timings
        self.prompt_ids = chunk.prompt_ids or self.prompt_ids
        self.logprobs.extend(chunk.logprobs or ())
        carries = bool(chunk.text or chunk.token_ids)
        if carries or chunk.is_silent_token:
            self.arrivals.append(Arrival(at=at, text=chunk.text, token_ids=chunk.token_ids))
        self.finish = chunk.finish or self.finish


def receive(endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> Received:
    """Ask and read the answer to its end.

    Raises ServerFault, telling how much had come, for silence, a broken connection, what is no stream, an error within
    it, and a stream that ends without saying why. Nothing is asked again after an answer began.
    """
    with endpoint.stream(path, body) as opened:
        received = Received(started_at=opened.started_at)
        try:
            _read_all(opened, endpoint, received, int(body["max_tokens"]) + SPARE)
        except (ServerFault, ValueError, OverflowError) as fault:
            came = f"after {len(received.arrivals)} chunks ({len(received.text)} characters)"
            raise ServerFault(f"{path}: {quote(str(fault), endpoint.secret)} {came}") from None
    return received


def _read_all(opened: Opened, endpoint: Endpoint, received: Received, most: int) -> None:
    kind = opened.response.headers.get_content_type()
    if kind != "text/event-stream":
        raise ServerFault(f"an answer of type {kind} where a stream was asked for")
    parser, waits, last = EventParser(), endpoint.waits, opened.started_at
    for at, piece in read_pieces(opened, waits):
        for data in parser.feed(piece):
            if data == DONE:
                _check_end(received)
                return
            before = len(received.arrivals)
            received.take(read_chunk(data), at)
            if len(received.arrivals) > most:
                raise ServerFault(f"it does not end, though {most - SPARE} tokens were asked for,")
            last = at if len(received.arrivals) > before else last
        # Comments keep a connection alive; they are no tokens.
        if at - last > (waits.chunk_s if received.arrivals else waits.first_token_s):
            raise ServerFault("no token, only signs of life,")
    if parser.rest:
        raise ServerFault(f"the stream broke off within a chunk, {parser.rest[:60]!r},")
    _check_end(received)


def _check_end(received: Received) -> None:
    if received.finish not in ("stop", "length"):
        said = f"finish_reason {received.finish!r}" if received.finish else "no finish_reason"
        raise ServerFault(f"the stream ended with {said}")
