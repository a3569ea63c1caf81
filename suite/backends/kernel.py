"""A model without weights that does real work on the real clock: what the self-test measures.

One token is one float32 matrix-vector product over a matrix that lies in memory and not in a cache, which is what
decoding is limited by; prefill is matrix-matrix products over a block that lies in the cache, which is what prefill is
limited by. One thread. Slower work is more rows, never a sleep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from suite import clock
from suite.backends.base import Message, Prefilled, check_room
from suite.clock import Clock
from suite.errors import LoadError, UsageError

COLUMNS = 4096
VOCABULARY = 251
"""Tokens are 1 to this: never 0, which would end an answer."""
BLOCK = 512
"""Rows and columns of the block of prefill: 1 MiB."""
BATCH = 16
"""Prompt tokens that are evaluated at once."""
STALL = 10
"""How many times the work a stalled token does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """How much work a token is."""

    n_ctx: int = 4096
    megabytes: int = 64
    """MiB of the matrix that each token reads, at `work` 1."""
    work: float = 1.0
    """Rows of the matrix by this: 1.05 is 5 % more work for each token."""
    prefill_passes: int = 24
    """Products with the block for each prompt token."""
    prefill_work: float = 1.0
    """Rows of the block by this."""
    stall_every: int = 0
    """Every so many tokens one does `STALL` times the work; 0 for never. The median of the gaps does not see it."""
    seed: int = 0
    n_threads: int = 1
    """One is all there is; told so that everything is kept on one CPU."""


class KernelModel:
    """Tokens of a prompt are the bytes of UTF-8. The answer depends on the seed alone, not on how much work it is."""

    clock: Clock = staticmethod(clock.monotonic)
    threads = 1

    def __init__(self, options: KernelOptions) -> None:
        import numpy

        self._options = options
        random = numpy.random.default_rng(options.seed)
        rows = max(VOCABULARY, round(options.megabytes * 2**20 / (4 * COLUMNS)))
        head = random.standard_normal((VOCABULARY, COLUMNS), dtype=numpy.float32)
        # The rows behind the vocabulary decide nothing; they are filled so that every page is the process's own.
        self._matrix = numpy.ones((max(VOCABULARY, round(rows * options.work)), COLUMNS), dtype=numpy.float32)
        self._matrix[:VOCABULARY] = head
        self._state = random.standard_normal(COLUMNS + VOCABULARY + 1, dtype=numpy.float32)
        self._block = numpy.ones((max(1, round(BLOCK * options.prefill_work)), BLOCK), dtype=numpy.float32)
        self._batch = numpy.ones((BATCH, BLOCK), dtype=numpy.float32)
        self._multiply = _row_products(numpy)
        self.context_tokens = options.n_ctx
        self.facts: Mapping[str, str] = {"numpy": numpy.__version__, "device": "cpu", "kernel": "1"}

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`."""
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>")

    def encode(self, text: str) -> list[int]:
        """See `LoadedModel.encode`."""
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        """Tokens as numbers: they are no language."""
        return " ".join(map(str, ids))

    def is_end(self, token: int) -> bool:
        """See `LoadedModel.is_end`."""
        return token == 0

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `LoadedModel.stream`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        self._prefill(len(prompt))
        yield Prefilled(len(prompt))
        token = sum(prompt) % VOCABULARY
        for position in range(max_new_tokens):
            token = self._next_token(token, STALL if self._stalls_at(position) else 1)
            yield token

    def _next_token(self, token: int, times: int) -> int:
        for _ in range(times - 1):
            self._multiply(self._matrix, self._state[token : token + COLUMNS])
        products = self._multiply(self._matrix, self._state[token : token + COLUMNS])
        return 1 + int(products[:VOCABULARY].argmax())

    def _stalls_at(self, position: int) -> bool:
        every = self._options.stall_every
        return every > 0 and position % every == every - 1

    def _prefill(self, tokens: int) -> None:
        for _ in range(math.ceil(tokens / BATCH) * self._options.prefill_passes):
            self._multiply(self._block[:, None, :], self._batch[None, :, :])

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """There is no cache."""
        return None

    def device_bytes(self) -> int | None:
        """There is no device."""
        return None

    def close(self) -> None:
        """Nothing outlives the process."""


def _row_products(numpy: Any) -> Callable[[Any, Any], Any]:
    """The product of each row with a vector, on one thread: `numpy.dot` would take as many as the library likes.

    Rows are shorter than what the BLAS library splits among threads. numpy before 2 has no `vecdot`; its `einsum` is
    slower and has one thread too.
    """
    if hasattr(numpy, "vecdot"):
        multiply: Callable[[Any, Any], Any] = numpy.vecdot
        return multiply
    return lambda rows, vector: numpy.einsum("...j,...j->...", rows, vector)


class Kernel:
    """The ``kernel`` backend."""

    options: ClassVar[type[Any]] = KernelOptions
    requires: ClassVar[tuple[str, ...]] = ("numpy",)
    weights_format: ClassVar[Literal["gguf", "safetensors", "none"]] = "none"
    makes: ClassVar[tuple[str, ...]] = ()
    makers: ClassVar[tuple[str, ...]] = ()

    def load(self, weights: Path | None, options: KernelOptions, prompt_format: str) -> KernelModel:
        """Allocate the matrix. Raises LoadError for an amount of work that is none."""
        if options.megabytes < 1 or options.work <= 0 or options.prefill_work <= 0 or options.stall_every < 0:
            raise LoadError(
                f"the kernel cannot work on {options.megabytes} MiB × {options.work:g} (prefill × "
                f"{options.prefill_work:g}, a stall every {options.stall_every} tokens): give amounts above 0"
            )
        if options.n_threads != 1:
            raise LoadError(f"the kernel has one thread, not {options.n_threads}: leave n_threads out")
        try:
            return KernelModel(options)
        except MemoryError as fault:
            raise LoadError(
                f"no memory for {options.megabytes} MiB × {options.work:g}: give fewer megabytes"
            ) from fault

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """Nothing can be made."""
        raise UsageError(f"the kernel backend cannot make '{recipe}'")


BACKEND = Kernel()
