"""Several sequences of one GGUF model together: a context of its own over the weights that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suite.backends.base import Prefilled
from suite.errors import Unavailable

ROUNDED = 256
"""llama.cpp allocates the cells of each sequence in multiples of it."""


class Together:
    """Room for `sequences` of `tokens` tokens each, prompt and answer together, with the options of `params`.

    Every sequence has its own part of the KV cache, so that none pays for the cells of the others. Raises Unavailable when
    llama.cpp makes no such context: memory, or a model without a KV cache.
    """

    def __init__(self, lib: Any, model: Any, params: Any, sequences: int, tokens: int) -> None:
        import numpy

        self._lib = lib
        self.sequences, self.tokens = sequences, -(-tokens // ROUNDED) * ROUNDED
        own = type(params).from_buffer_copy(params)
        own.n_ctx, own.n_seq_max, own.kv_unified = sequences * self.tokens, sequences, False
        own.n_batch = max(int(params.n_batch), sequences)
        self._ctx = lib.llama_init_from_model(model, own)
        if not self._ctx:
            raise Unavailable(f"llama.cpp makes no context for {sequences} sequences of {self.tokens} tokens each")
        self._n_batch = int(own.n_batch)
        self._n_vocab = int(lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)))
        self._batch = lib.llama_batch_init(self._n_batch, 0, 1)
        self._as_array = numpy.ctypeslib.as_array

    def stream(self, prompts: Sequence[Sequence[int]], max_new_tokens: int) -> Iterator[Prefilled | tuple[int, ...]]:
        """See `Batching.stream_batch`."""
        lib, length = self._lib, len(prompts[0])
        lib.llama_memory_clear(lib.llama_get_memory(self._ctx), True)
        lib.llama_perf_context_reset(self._ctx)
        tokens = [self._prefill(sequence, prompt) for sequence, prompt in enumerate(prompts)]
        lib.llama_synchronize(self._ctx)
        counted = lib.llama_perf_context(self._ctx)
        yield Prefilled(int(counted.n_p_eval if length > 1 else counted.n_eval))
        for step in range(max_new_tokens):
            yield tuple(tokens)
            if step < max_new_tokens - 1:
                self._decode([(token, length + step, sequence, True) for sequence, token in enumerate(tokens)])
                tokens = [self._pick(sequence) for sequence in range(len(tokens))]

    def _prefill(self, sequence: int, prompt: Sequence[int]) -> int:
        """Evaluate one prompt; the greedy token after it."""
        at = 0
        for piece in cut_prompt(prompt, self._n_batch):
            last = len(prompt) - 1
            self._decode([(token, at + index, sequence, at + index == last) for index, token in enumerate(piece)])
            at += len(piece)
        return self._pick(-1)

    def _decode(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        """Evaluate tokens, each given with its position, its sequence, and whether its logits are wanted."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for index, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[index], batch.pos[index] = token, position
            batch.n_seq_id[index], batch.seq_id[index][0], batch.logits[index] = 1, sequence, wanted
        status = self._lib.llama_decode(self._ctx, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status} for {len(rows)} tokens of {self.sequences} sequences")

    def _pick(self, index: int) -> int:
        """The greedy token of the row `index` of the last batch."""
        logits = self._lib.llama_get_logits_ith(self._ctx, index)
        return int(self._as_array(logits, shape=(self._n_vocab,)).argmax())

    def close(self) -> None:
        """Free the context; the model stays."""
        self._lib.llama_batch_free(self._batch)
        self._lib.llama_free(self._ctx)


class Rooms:
    """One `Together` for each number of sequences, made when it is first needed and again when it is too small."""

    def __init__(self, lib: Any, model: Any, params: Any) -> None:
        self._made_of = lib, model, params
        self._rooms: dict[int, Together] = {}

    def of(self, sequences: int, tokens: int) -> Together:
        """Room for `sequences` of `tokens` tokens each. Raises Unavailable when there is none."""
        room = self._rooms.get(sequences)
        if room is None or room.tokens < tokens:
            if room is not None:
                self._rooms.pop(sequences).close()
            room = self._rooms[sequences] = Together(*self._made_of, sequences, tokens)
        return room

    def close(self) -> None:
        """Free all of them."""
        for room in self._rooms.values():
            room.close()
        self._rooms = {}


def cut_prompt(prompt: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Cut a prompt into batches of at most `size`, the last never of a single token (it would count as decode)."""
    start = 0
    while start < len(prompt):
        left = len(prompt) - start
        step = size - 1 if left == size + 1 and size > 2 else min(size, left)
        yield prompt[start : start + step]
        start += step
