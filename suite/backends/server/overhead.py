"""What reading a stream costs by itself: the same code over a stream that is there already."""

from __future__ import annotations

import http.client
import json
import socket

from suite import clock
from suite.backends.server.chunks import DONE, read_chunk
from suite.backends.server.sse import EventParser
from suite.backends.server.wire import Opened, Waits, read_pieces

EVENTS = 200
REPEATS = 3


def overhead_s(events: int = EVENTS) -> float:
    """Seconds of this process for each chunk of one token, the least of a few times: others may take the CPU meanwhile."""
    return min(_read_recording(events) for _ in range(REPEATS))


def _read_recording(events: int) -> float:
    """A connection with everything in it is read to its end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
        theirs.sendall(_recording(events))
        response = http.client.HTTPResponse(ours, method="POST")
        with response:
            response.begin()
            parser = EventParser()
            start, read = clock.monotonic(), 0
            for _, piece in read_pieces(Opened(started_at=start, response=response, socket=ours), Waits(chunk_s=10)):
                for data in parser.feed(piece):
                    read += data != DONE and bool(read_chunk(data).text)
            return (clock.monotonic() - start) / max(read, 1)


def _recording(events: int) -> bytes:
    """A chunked response of `events` chunks with one token each, as servers send them."""
    chunk = {
        "id": "cmpl-0123456789abcdef0123456789abcdef",
        "object": "text_completion",
        "created": 1767225600,
        "model": "/models/some-model-instruct-q8_0.gguf",
        "choices": [{"text": " token", "index": 0, "logprobs": None, "finish_reason": None}],
    }
    event = f"data: {json.dumps(chunk)}\n\n".encode()
    body = (b"%x\r\n%b\r\n" % (len(event), event)) * events
    end = f"data: {DONE}\n\n".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end)
