"""A scripted model on a simulated clock: for tests of the suite itself, and for trying things without weights.

Nothing sleeps: time is what the script says, so runs are instant and repeatable. Faults are options, planted where a real
backend would meet them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import mmap
import os
import random
import signal
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from suite.backends.base import LAUNCH_VARIABLE, Message, Prefilled, check_kept, check_room
from suite.errors import LoadError, Unavailable, UsageError

VOCABULARY = 256

State = Literal["kept", "evaluated", "silent", "rigid"]
Fault = Literal["", "load", "exit", "kill", "abort", "hang", "raise", "stdout", "cached", "flood"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOptions:
    """What the fake model says, how fast, and what goes wrong."""

    n_ctx: int = 4096
    replies: Mapping[str, str] = field(default_factory=dict)
    """Answer by a piece of text that the prompt contains; the first match wins."""
    reply: str = "I do not know."
    """The answer to everything else."""
    prefill_tok_s: float = 1000.0
    decode_tok_s: float = 100.0
    load_s: float = 0.5
    launch_noise: float = 0.005
    """Standard deviation of the speed between launches, as a share."""
    token_noise: float = 0.01
    """Standard deviation of single gaps, as a share."""
    seed: int = 0
    logprob: float = -0.1
    """Log-probability of every token, in whatever answer."""
    noise: float = 0.0
    """Standard deviation of what is added to every logit; with another `seed` it is other noise."""
    path_noise: float = 0.0
    """The same, on the decode path alone: what batched evaluation does not see."""
    broken_at: int | None = None
    """Position in every answer whose logits are no numbers."""
    kv_bytes_per_token: int = 1024
    shift_ids_from: int | None = None
    """From this position on, rendered token ids differ from those of an honest tokenizer."""
    batch_cost: float = 0.25
    """Share of a decode step that each further sequence of a batch adds."""
    pad_to: int = 1
    """The prompts of a batch are padded to a multiple of so many tokens."""
    state: State = "kept"
    """What becomes of the KV state between two requests: ``kept``; ``evaluated``: all is evaluated again, and counted;
    ``silent``: all is evaluated again, and not counted; ``rigid``: it cannot be rolled back."""
    leak_bytes: int = 0
    """Memory, real memory, that is lost with every token that is generated."""
    leak_per_load_bytes: int = 0
    """The same with every load."""
    fault: Fault = ""
    fault_at: int = 0
    """Happens in the generation with this number (0 is the first)."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What it tells of itself besides, as a real backend does when it is loaded."""
    seen: Mapping[str, str] = field(default_factory=dict)
    """What it tells when it has worked."""
    script: str = ""
    """A JSON file whose keys replace options on load: the fake's weights. Another content under the same declaration is
    what a re-uploaded file is to a real backend."""


_LOST: list[mmap.mmap] = []
"""What was leaked: it outlives every model."""


class FakeModel:
    """Tokens are the bytes of UTF-8; 0 ends an answer."""

    threads = 1

    def __init__(self, options: FakeOptions) -> None:
        self._options = options
        # Each launch has its own luck, as on a real machine, and the same luck whenever it is run again.
        self._random = random.Random(f"{options.seed}/{os.environ.get(LAUNCH_VARIABLE, '')}")
        self._luck = 1 + self._random.gauss(0, options.launch_noise)
        self._now = 0.0
        self._generations = 0
        self._held: list[int] = []
        """The tokens in the KV state: all but the last one that was generated."""
        self.context_tokens = options.n_ctx
        self.keep_logprobs = False
        self.logprobs: list[float] = []
        self.facts: Mapping[str, str] = {"fake": "1", "simulated": "time is simulated", **options.facts}
        self.seen = options.seen
        self._now += options.load_s
        _leak(options.leak_per_load_bytes)

    def clock(self) -> float:
        """Simulated seconds."""
        return self._now

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`."""
        text = "".join(f"<{message['role']}>{message['content']}" for message in messages) + "<assistant>"
        ids = self.encode(text)
        cut = self._options.shift_ids_from
        return ids if cut is None else ids[:cut] + [(token + 1) % 256 for token in ids[cut:]]

    def encode(self, text: str) -> list[int]:
        """See `LoadedModel.encode`."""
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        """See `LoadedModel.decode`."""
        return bytes(token for token in ids if token).decode(errors="replace")

    def is_end(self, token: int) -> bool:
        """See `LoadedModel.is_end`."""
        return token == 0

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `LoadedModel.stream`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        number, self._generations = self._generations, self._generations + 1
        self.logprobs = []
        if self._options.fault and number == self._options.fault_at:
            self._misbehave()
        cached = self._options.fault == "cached" and number >= self._options.fault_at
        evaluated = 1 if cached else len(prompt)
        self._advance(evaluated / self._options.prefill_tok_s)
        yield Prefilled(evaluated)
        yield from self._say(prompt, max_new_tokens)

    def resume(self, prompt: Sequence[int], kept: int, max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `Continuing.resume`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        check_kept(prompt, kept, self._held)
        if self._options.state == "rigid":
            raise Unavailable("the state of this model cannot be rolled back")
        new = len(prompt) - kept
        evaluated = new if self._options.state == "kept" else len(prompt)
        self._advance(evaluated / self._options.prefill_tok_s)
        yield Prefilled(new if self._options.state == "silent" else evaluated)
        yield from self._say(prompt, max_new_tokens)

    def stream_batch(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int
    ) -> Iterator[Prefilled | tuple[int, ...]]:
        """See `Batching.stream_batch`."""
        for prompt in prompts:
            check_room(len(prompt), max_new_tokens, self.context_tokens)
        longest, multiple = max(map(len, prompts)), self._options.pad_to
        evaluated = len(prompts) * -(-longest // multiple) * multiple
        self._advance(evaluated / self._options.prefill_tok_s)
        yield Prefilled(evaluated)
        answers = [self._answer_to(prompt) for prompt in prompts]
        for position in range(max_new_tokens):
            self._advance((1 + self._options.batch_cost * (len(prompts) - 1)) / self._options.decode_tok_s)
            yield tuple(answer[position] if position < len(answer) else 0 for answer in answers)

    def _say(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[int]:
        self._held = list(prompt)
        answer = self._answer_to(prompt)
        for position in range(max_new_tokens):
            self._advance(1 / self._options.decode_tok_s)
            _leak(self._options.leak_bytes)
            if self.keep_logprobs:
                self.logprobs.append(self._options.logprob)
            token = answer[position] if position < len(answer) else 0
            yield token
            if position < max_new_tokens - 1:
                self._held.append(token)

    def weigh(self, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
        """See `Weighing.weigh`: the scripted log-probability for each token."""
        check_room(len(prompt), len(answer), self.context_tokens)
        return [self._options.logprob] * len(answer)

    def force(self, prompt: Sequence[int], answer: Sequence[int], *, batched: bool) -> Iterator[list[float]]:
        """See `Forcing.force`: logits over the bytes, under which each token of the scripted answer has `logprob`."""
        check_room(len(prompt), len(answer), self.context_tokens)
        said = bytes(token % 256 for token in prompt)
        scripted = self._answer(said.decode(errors="replace"))
        for position in range(len(answer)):
            if position == self._options.broken_at:
                yield [math.nan] * VOCABULARY
                continue
            token = scripted[position] if position < len(scripted) else 0
            logits = self._logits(f"{zlib.crc32(said)}/{position}", token)
            for salt, spread in (("", self._options.noise), ("decode", 0.0 if batched else self._options.path_noise)):
                logits = _add_noise(logits, f"{self._options.seed}/{salt}/{zlib.crc32(said)}/{position}", spread)
            yield logits

    def _logits(self, place: str, token: int) -> list[float]:
        """Others share what `token` leaves, unequally, and always in the same way at the same place."""
        chosen = random.Random(place)
        logits = [chosen.gauss(0, 2) for _ in range(VOCABULARY)]
        logits[token] = -math.inf
        rest = math.log(math.fsum(map(math.exp, logits)))
        share = math.exp(self._options.logprob)
        logits[token] = rest + (math.log(share / (1 - share)) if share < 1 else 50.0)
        return logits

    def _answer_to(self, prompt: Sequence[int]) -> list[int]:
        return self._answer(bytes(token % 256 for token in prompt).decode(errors="replace"))

    def _answer(self, prompt: str) -> list[int]:
        for piece, reply in self._options.replies.items():
            if piece in prompt:
                return self.encode(reply)
        return self.encode(self._options.reply)

    def _advance(self, seconds: float) -> None:
        self._now += seconds * self._luck * max(0.1, 1 + self._random.gauss(0, self._options.token_noise))

    def _misbehave(self) -> None:
        match self._options.fault:
            case "exit":
                os._exit(7)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "abort":
                sys.stderr.write("GGML_ASSERT(planted) failed\n")
                sys.stderr.flush()
                os.abort()
            case "hang":
                time.sleep(3600)
            case "raise":
                raise RuntimeError("planted failure while generating")
            case "stdout":
                os.write(1, b"a native library prints to standard output\n")
            case "flood":
                os.write(2, b"x" * (8 << 20))
            case _:
                pass

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """Scripted bytes a token."""
        tokens = len(self._held) + 1 if self._held else 0
        return tokens * self._options.kv_bytes_per_token, tokens

    def device_bytes(self) -> int | None:
        """There is no device."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def _leak(count: int) -> None:
    if count:
        # of the system, since what was freed before would hide it
        fresh = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        fresh.write(b"x" * count)
        _LOST.append(fresh)


def _add_noise(logits: list[float], place: str, spread: float) -> list[float]:
    if not spread:
        return logits
    luck = random.Random(place)
    return [logit + luck.gauss(0, spread) for logit in logits]


class Fake:
    """The ``fake`` backend."""

    options: ClassVar[type[Any]] = FakeOptions
    requires: ClassVar[tuple[str, ...]] = ()
    weights_format: ClassVar[Literal["gguf", "safetensors", "none"]] = "none"
    makes: ClassVar[tuple[str, ...]] = ()
    makers: ClassVar[tuple[str, ...]] = ()

    def load(self, weights: Path | None, options: FakeOptions, prompt_format: str) -> FakeModel:
        """Always at hand, unless its fault is ``load``."""
        if options.fault == "load":
            raise LoadError("planted failure while loading")
        return FakeModel(_read_script(options))

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """Nothing can be made."""
        raise UsageError(f"the fake backend cannot make '{recipe}'")


def _read_script(options: FakeOptions) -> FakeOptions:
    if not options.script:
        return options
    try:
        return dataclasses.replace(options, **json.loads(Path(options.script).read_text()))
    except (OSError, ValueError, TypeError) as fault:
        raise LoadError(f"{options.script}: not a script: {fault}") from fault


BACKEND = Fake()
