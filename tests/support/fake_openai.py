"""A server that speaks OpenAI's protocol from a script: no model, real sockets.

Its tokens are characters, their ids the code points. As a program it serves until it is ended::

    python fake_openai.py --port 8000 --kind vllm
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from suite import clock

CONTEXT = 4096


@dataclass(frozen=True, kw_only=True)
class Script:
    """How one request is answered."""

    reply: str = "The sea is salt."
    per_chunk: int = 1
    """Characters, which are tokens, in each chunk."""
    gap_s: float = 0.0
    """Before each chunk, times the tokens that it holds."""
    first_s: float = 0.0
    usage: bool = True
    told: Mapping[str, Any] = field(default_factory=dict)
    """Replaces fields of the usage."""
    cached: int | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    """Of another status than 200."""
    content_type: str = "text/event-stream"
    events: tuple[str, ...] = ()
    """Sent as they are, in place of the answer."""
    fault: str = ""
    """``die``: the connection is cut; ``half``: it ends within a chunk; ``silence``; ``comments``: nothing but signs of
    life; ``no finish``. After `after` chunks."""
    after: int = 2
    finish: str = ""
    """Else ``stop`` where the reply ended, ``length`` where it was cut."""


@dataclass
class FakeOpenAI:
    """The server. Requests are kept; scripts are used up in order, the last one stays."""

    kind: str = "vllm"
    scripts: list[Script] = field(default_factory=lambda: [Script()])
    requests: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    """Path, body and headers, those of generating ones."""
    sent: list[float] = field(default_factory=list)
    """When each event went out, by the clock that the suite times with."""
    replies: Mapping[str, str] = field(default_factory=dict)
    """Reply by a piece of text that the prompt contains, before that of the script."""
    thrown: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Path and body of each request whose answer does not matter."""
    thrown_s: float = 0.0
    thrown_status: int = 200
    metrics: str = ""
    scored: Callable[[list[int]], list[dict[str, Any] | None]] | None = None
    """A prompt → its ``prompt_logprobs``; without it they are refused."""
    port: int = 0
    key: str = ""
    _released: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def running(self) -> Iterator[FakeOpenAI]:
        """Serve on loopback until the block is left."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), type("Handler", (_Handler,), {"fake": self}))
        server.daemon_threads = True
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._released.set()
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Bodies of the generating requests."""
        return [body for _, body, _ in self.requests]

    def next_script(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Script:
        """The script for a request, which is kept."""
        with self._lock:
            self.requests.append((path, body, headers))
            return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]

    def wait(self, seconds: float) -> None:
        """Be silent, no longer than the server runs."""
        self._released.wait(seconds)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: ClassVar[FakeOpenAI]

    def log_message(self, format: str, *args: Any) -> None:
        """Tell nobody."""

    def do_GET(self) -> None:
        model: dict[str, Any] = {"id": "toy", "object": "model"}
        if self.fake.kind == "vllm":
            model["max_model_len"] = CONTEXT
        answers: dict[str, Any] = {"/v1/models": {"data": [model]}, "/health": {"status": "ok"}}
        match self.fake.kind:
            case "vllm":
                answers["/version"] = {"version": "0.0.toy"}
            case "llama-server":
                settings = {"n_ctx": CONTEXT}
                answers["/props"] = {"default_generation_settings": settings, "build_info": "b1-toy"}
            case "ollama":
                answers["/api/version"] = {"version": "0.0.toy"}
            case "llama_cpp.server":
                answers["/openapi.json"] = {"info": {"title": "🦙 llama.cpp Python API", "version": "0.0.toy"}}
        if self.path == "/metrics" and self.fake.metrics:
            self._answer(200, self.fake.metrics.encode(), "text/plain")
        elif self.path in answers:
            refused = self.fake.key and self.headers.get("Authorization") != f"Bearer {self.fake.key}"
            said = {"error": f"bad key {self.headers.get('Authorization')}"}
            self._answer_json(401 if refused else 200, said if refused else answers[self.path])
        else:
            self._answer_json(404, {"error": "no such path"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match self.path:
            case "/tokenize":
                text = body.get("prompt", body.get("content"))
                self._answer_json(200, {"tokens": [ord(sign) for sign in (rendered(body) if text is None else text)]})
            case "/detokenize":
                self._answer_json(200, {"prompt": "".join(map(chr, body["tokens"]))})
            case "/apply-template":
                self._answer_json(200, {"prompt": rendered(body)})
            case "/v1/completions" | "/v1/chat/completions" | "/api/generate":
                if body.get("prompt_logprobs"):
                    self._score(body)
                    return
                if body.get("stream") is False:
                    self.fake.thrown.append((self.path, body))
                    self.fake.wait(self.fake.thrown_s) if self.fake.thrown_s else None
                    self._answer_json(self.fake.thrown_status, {"choices": [{"text": "."}]})
                    return
                script = self.fake.next_script(self.path, body, dict(self.headers))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._generate(body, script)
            case _:
                self._answer_json(404, {"error": "no such path"})

    def _score(self, body: dict[str, Any]) -> None:
        """As vLLM tells of a prompt."""
        self.fake.requests.append((self.path, body, dict(self.headers)))
        if self.fake.scored is None:
            said = f"Requested prompt logprobs of {body['prompt_logprobs']}, which is greater than max allowed: 20"
            self._answer_json(400, {"error": {"message": said}})
            return
        rows = self.fake.scored(body["prompt"])
        self._answer_json(200, {"choices": [{"text": ".", "prompt_logprobs": rows}]})

    def _answer_json(self, status: int, document: Any, headers: Mapping[str, str] | None = None) -> None:
        self._answer(status, json.dumps(document).encode(), "application/json", headers)

    def _answer(self, status: int, data: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _generate(self, body: dict[str, Any], script: Script) -> None:
        if script.status != 200:
            self._answer(script.status, script.body.encode(), "application/json", script.headers)
            return
        if isinstance(body.get("prompt"), list) and self.fake.kind not in ("vllm", "llama-server"):
            self._answer_json(422, {"detail": "prompt must be a string"})
            return
        self.send_response(200)
        self.send_header("Content-Type", script.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.fake.wait(script.first_s) if script.first_s else None
        for number, (event, tokens) in enumerate(self._events(body, script)):
            if number == script.after and script.fault and not self._misbehave(script, event):
                return
            if script.gap_s:
                time.sleep(script.gap_s * tokens)
            self._send(f"data: {event}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def _misbehave(self, script: Script, event: str) -> bool:
        """Whether the answer goes on."""
        match script.fault:
            case "die":
                self.wfile.write(b"ff\r\ndata: {")
                self.wfile.flush()
                self.connection.close()
                self.close_connection = True
                return False
            case "half":
                self._send(f"data: {event[: len(event) // 2]}".encode())
                self.wfile.write(b"0\r\n\r\n")
                return False
            case "silence":
                self.fake.wait(30)
                self.close_connection = True
                return False
            case "comments":
                for _ in range(400):
                    self._send(b": still here\n\n")
                    self.fake.wait(0.02)
                return False
        return True

    def _send(self, data: bytes) -> None:
        self.fake.sent.append(clock.monotonic())
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _events(self, body: dict[str, Any], script: Script) -> Iterator[tuple[str, int]]:
        if script.events:
            yield from ((event, 1) for event in script.events)
            return
        is_chat = "messages" in body
        prompt = rendered(body) if is_chat else body["prompt"]
        goes_on = body.get("ignore_eos") or body.get("logit_bias")
        most = body["max_tokens"]
        text = prompt if isinstance(prompt, str) else "".join(map(chr, prompt))
        reply = next((reply for piece, reply in self.fake.replies.items() if piece in text), script.reply)
        reply = (reply * (most // len(reply) + 1) if goes_on else reply)[:most]
        finish = script.finish or ("length" if len(reply) == most else "stop")
        if is_chat:
            yield _event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}), 0
        pieces = [reply[start : start + script.per_chunk] for start in range(0, len(reply), script.per_chunk)]
        for number, piece in enumerate(pieces):
            said: dict[str, Any] = {"delta": {"content": piece}} if is_chat else {"text": piece}
            choice: dict[str, Any] = {"index": 0, **said, "finish_reason": None}
            if body.get("return_token_ids") and self.fake.kind == "vllm":
                ids = [ord(sign) for sign in piece]
                choice["token_ids"] = ids
                if number == 0 and isinstance(prompt, list):
                    choice["prompt_token_ids"] = prompt
            if body.get("logprobs"):
                choice["logprobs"] = {"token_logprobs": [-0.5] * len(piece)}
            yield _event({"choices": [choice]}), len(piece)
        # As vLLM does: the end token is told, and counted.
        ends = body.get("return_token_ids") and self.fake.kind == "vllm" and finish == "stop"
        if script.fault != "no finish":
            empty: dict[str, Any] = {"delta": {}} if is_chat else {"text": ""}
            told = {"token_ids": [0]} if ends else {}
            yield _event({"choices": [{"index": 0, **empty, **told, "finish_reason": finish}]}), 0
        if script.usage and body.get("stream_options", {}).get("include_usage"):
            usage: dict[str, Any] = {"prompt_tokens": len(prompt), "completion_tokens": len(reply) + bool(ends)}
            if script.cached is not None:
                usage["prompt_tokens_details"] = {"cached_tokens": script.cached}
            yield _event({"choices": [], "usage": {**usage, **script.told}}), 0
        yield "[DONE]", 0


def rendered(body: Mapping[str, Any]) -> str:
    """The toy's chat template."""
    return "".join(f"<{message['role']}>{message['content']}" for message in body["messages"]) + "<assistant>"


def _event(document: Mapping[str, Any]) -> str:
    return json.dumps({"id": "cmpl-1", "object": "text_completion", "created": 0, "model": "toy", **document})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kind", default="vllm")
    parser.add_argument("--exit-after", type=int, default=-1, help="requests after which the process is gone")
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--child", action="store_true", help="start a process of its own beside")
    parser.add_argument("--pids", help="file to write process ids into")
    options = parser.parse_args()
    pids = [os.getpid()]
    if options.child:
        pids.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
    if options.pids:
        Path(options.pids).write_text(" ".join(map(str, pids)))
    sys.stderr.write("toy server: listening\n")
    fake = FakeOpenAI(kind=options.kind, port=options.port, scripts=[Script(gap_s=options.gap)])
    with fake.running():
        while options.exit_after < 0 or len(fake.requests) < options.exit_after:
            time.sleep(0.02)
        sys.stderr.write("toy server: planted failure\n")
        os._exit(3)


if __name__ == "__main__":
    main()
