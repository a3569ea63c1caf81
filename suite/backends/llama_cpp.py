"""GGUF models through llama-cpp-python's low-level API, which costs no more than llama.cpp's own tools."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

from suite.backends import llama_cpp_log
from suite.backends.base import (
    MOST_ROWS,
    Message,
    Prefilled,
    check_kept,
    check_room,
    cut_answer,
    frozen_strftime,
)
from suite.backends.llama_together import Rooms, cut_prompt
from suite.clock import monotonic
from suite.errors import LoadError, Unavailable

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]

MAKES = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0",
    "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCppOptions:
    """Options of the ``llama_cpp`` backend; names are llama.cpp's own."""

    MAKES: ClassVar[tuple[str, ...]] = MAKES

    n_ctx: int = 2048
    """Context in tokens; the KV cache is allocated for all of it."""
    n_batch: int = 512
    n_ubatch: int = 512
    n_threads: int | None = None
    """Threads that decode; None takes the physical cores that this process may use."""
    n_threads_batch: int | None = None
    """Threads that prefill; None is the same as `n_threads`."""
    n_gpu_layers: int = 0
    """Layers on the GPU; -1 is all of them."""
    flash_attn: bool = False
    type_k: CacheType = "f16"
    type_v: CacheType = "f16"
    """A quantized V cache needs `flash_attn`."""
    mmap: bool = True
    kv_overrides: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    """Metadata to override on load, e.g. to repair a file's ``tokenizer.ggml.pre``."""


class LlamaCppModel:
    """A GGUF model in memory."""

    clock = staticmethod(monotonic)

    def __init__(self, weights: Path, options: LlamaCppOptions, prompt_format: str) -> None:
        self._lib = _library()
        self._log: list[str] = []
        self._callback = _capture_log(self._lib, self._log)
        self.threads = options.n_threads or 1
        self._prompt_format = prompt_format
        self._llama = self._open(weights, options)
        self._ctx = self._llama.ctx
        self._memory = self._lib.llama_get_memory(self._ctx)
        self._vocab = self._lib.llama_model_get_vocab(self._llama.model)
        self._n_batch = options.n_batch
        self._n_vocab = int(self._lib.llama_vocab_n_tokens(self._vocab))
        self._as_array = _array_maker()
        self.context_tokens = int(self._lib.llama_n_ctx(self._ctx))
        self.keep_logprobs = False
        self.logprobs: list[float] = []
        self._kept: tuple[tuple[int, ...], Any] | None = None
        """The prompt that the KV cache begins with, and the logits that followed it; kept only while nothing is timed."""
        self._held: list[int] = []
        """The tokens that the KV cache begins with."""
        self._rooms = Rooms(self._lib, self._llama.model, self._llama.context_params)
        self.facts = self._read_facts()

    def _open(self, weights: Path, options: LlamaCppOptions) -> Any:
        from llama_cpp import Llama

        types = {name: getattr(self._lib, f"GGML_TYPE_{name.upper()}") for name in {options.type_k, options.type_v}}
        try:
            return Llama(
                str(weights),
                n_ctx=options.n_ctx,
                n_batch=options.n_batch,
                n_ubatch=options.n_ubatch,
                n_threads=options.n_threads,
                n_threads_batch=options.n_threads_batch or options.n_threads,
                n_gpu_layers=options.n_gpu_layers,
                flash_attn=options.flash_attn,
                type_k=types[options.type_k],
                type_v=types[options.type_v],
                use_mmap=options.mmap,
                kv_overrides=dict(options.kv_overrides) or None,
                logits_all=False,
                verbose=True,
            )
        except (ValueError, RuntimeError) as fault:
            reason = llama_cpp_log.read_reason("".join(self._log))
            raise LoadError(f"{weights}: {reason or fault}") from fault

    def _read_facts(self) -> dict[str, str]:
        import llama_cpp

        return {
            "llama-cpp-python": llama_cpp.__version__,
            "llama.cpp system": self._lib.llama_print_system_info().decode().strip(),
            "n_threads": str(self._lib.llama_n_threads(self._ctx)),
            "n_threads_batch": str(self._lib.llama_n_threads_batch(self._ctx)),
            "n_ctx": str(self.context_tokens),
            "gpu_offload": str(bool(self._lib.llama_supports_gpu_offload())),
            "model": self._describe(),
            **llama_cpp_log.read_facts("".join(self._log)),
        }

    def _describe(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        self._lib.llama_model_desc(self._llama.model, buffer, 256)
        return buffer.value.decode(errors="replace")

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`. A file without a chat template is refused: there is no right guess."""
        if self._prompt_format == "raw":
            return self._tokenize("\n".join(message["content"] for message in messages), add_special=True)
        template = self._llama.metadata.get("tokenizer.chat_template")
        if not template:
            raise LoadError('the file carries no chat template; set prompt_format = "raw" or use a file that has one')
        return self._tokenize(self._format(template, messages), add_special=False)

    def _format(self, template: str, messages: Sequence[Message]) -> str:
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        class Frozen(Jinja2ChatFormatter):  # type: ignore[misc]  # llama_cpp is not followed: it is not installed everywhere
            strftime_now = staticmethod(frozen_strftime)

        def text(token: int) -> str:
            return self._lib.llama_vocab_get_text(self._vocab, token).decode() if token != -1 else ""

        formatter = Frozen(template, eos_token=text(self._llama.token_eos()), bos_token=text(self._llama.token_bos()))
        prompt: str = formatter(messages=[dict(message) for message in messages]).prompt
        return prompt

    def _tokenize(self, text: str, *, add_special: bool) -> list[int]:
        ids: list[int] = self._llama.tokenize(text.encode(), add_bos=add_special, special=True)
        return ids

    def encode(self, text: str) -> list[int]:
        """See `LoadedModel.encode`."""
        ids: list[int] = self._llama.tokenize(text.encode(), add_bos=False, special=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See `LoadedModel.decode`."""
        raw: bytes = self._llama.detokenize(list(ids))
        return raw.decode(errors="replace")

    def is_end(self, token: int) -> bool:
        """See `LoadedModel.is_end`."""
        return bool(self._lib.llama_vocab_is_eog(self._vocab, token))

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `LoadedModel.stream`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        self.logprobs = []
        self._prefill(prompt)
        yield from self._answer(max_new_tokens)

    def resume(self, prompt: Sequence[int], kept: int, max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `Continuing.resume`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        check_kept(prompt, kept, self._held)
        self.logprobs, self._kept = [], None
        memory = self._memory
        if not self._lib.llama_memory_seq_rm(memory, 0, kept, -1) or self._lib.llama_memory_seq_pos_min(memory, 0) > 0:
            raise Unavailable(f"llama.cpp cannot roll the state of this model back to its first {kept} tokens")
        self._evaluate_prompt(prompt[kept:])
        self._held = list(prompt)
        yield from self._answer(max_new_tokens)

    def stream_batch(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int
    ) -> Iterator[Prefilled | tuple[int, ...]]:
        """See `Batching.stream_batch`. The room for it is made once, and before the first item is asked for."""
        check_room(len(prompts[0]), max_new_tokens, self.context_tokens)
        told = len(self._log)
        try:
            room = self._rooms.of(len(prompts), len(prompts[0]) + max_new_tokens)
        finally:
            del self._log[told:]  # the log tells of the context for one sequence
        return room.stream(prompts, max_new_tokens)

    def _answer(self, max_new_tokens: int) -> Iterator[Prefilled | int]:
        """What was evaluated, as llama.cpp counts it, then greedy tokens on top of it."""
        lib, ctx = self._lib, self._ctx
        # n_p_eval is a floor of 1, not a count, when nothing was evaluated; no chunk but a whole prompt has one token.
        yield Prefilled(int(lib.llama_perf_context(ctx).n_p_eval))
        one = (lib.llama_token * 1)()
        for remaining in range(max_new_tokens, 0, -1):
            one[0] = self._pick()
            if self.keep_logprobs:
                self.logprobs.append(self._logprob(one[0]))
            yield one[0]
            if remaining > 1:
                if lib.llama_decode(ctx, lib.llama_batch_get_one(one, 1)) != 0:
                    raise RuntimeError("llama_decode failed while it generated")
                self._held.append(one[0])

    def _pick(self) -> int:
        """The greedy token: index of the (first) largest logit.

        The same as llama.cpp's greedy sampler, which first copies the vocabulary into an array of candidates: that is 1 to
        2 % of a decode step of a small model.
        """
        return int(self._logits().argmax())

    def _logits(self) -> Any:
        """Those of the last token, where llama.cpp keeps them: a view."""
        return self._as_array(self._lib.llama_get_logits_ith(self._ctx, -1), shape=(self._n_vocab,))

    def _logprob(self, token: int) -> float:
        """Log-probability of `token` to come next, in double precision."""
        import numpy

        logits = self._logits().astype(numpy.float64)
        logits -= logits.max()
        return float(logits[token] - numpy.log(numpy.exp(logits).sum()))

    def weigh(self, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
        """See `Weighing.weigh`."""
        check_room(len(prompt), len(answer), self.context_tokens)
        self._prefill(prompt)
        one = (self._lib.llama_token * 1)()
        found: list[float] = []
        for token in answer:
            if found and self._lib.llama_decode(self._ctx, self._lib.llama_batch_get_one(one, 1)) != 0:
                raise RuntimeError("llama_decode failed while it weighed an answer")
            one[0] = token
            found.append(self._logprob(token))
        return found

    def force(self, prompt: Sequence[int], answer: Sequence[int], *, batched: bool) -> Iterator[Any]:
        """See `Forcing.force`."""
        check_room(len(prompt), len(answer), self.context_tokens)
        yield self._return_to(prompt)
        if batched:
            for piece in cut_answer(len(answer), min(MOST_ROWS, self._n_batch)):
                yield from self._evaluate_all(answer[piece], at=len(prompt) + piece.start)
        else:
            for token in answer[:-1]:
                self._evaluate([token])
                yield self._logits()

    def _return_to(self, prompt: Sequence[int]) -> Any:
        """The state and the logits right after the prompt: what is there of it already, or else evaluated anew."""
        ids = tuple(prompt)
        if self._kept is None or self._kept[0] != ids:
            self._prefill(prompt)
            self._kept = ids, self._logits().copy()
        elif not self._lib.llama_memory_seq_rm(self._memory, 0, len(ids), -1):
            self._kept = None  # a state that cannot be rolled back, as recurrent models have
            return self._return_to(prompt)
        return self._kept[1]

    def _evaluate_all(self, ids: Sequence[int], *, at: int) -> Iterator[Any]:
        """Evaluate tokens in one batch from position `at` on, and the logits after each of them: views."""
        lib, batch = self._lib, self._lib.llama_batch_init(len(ids), 0, 1)
        try:
            batch.n_tokens = len(ids)
            for index, token in enumerate(ids):
                batch.token[index], batch.pos[index] = token, at + index
                batch.n_seq_id[index], batch.seq_id[index][0], batch.logits[index] = 1, 0, 1
            status = lib.llama_decode(self._ctx, batch)
        finally:
            lib.llama_batch_free(batch)
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status} for a batch of {len(ids)} tokens with logits")
        for index in range(len(ids)):
            yield self._as_array(lib.llama_get_logits_ith(self._ctx, index), shape=(self._n_vocab,))

    def _prefill(self, prompt: Sequence[int]) -> None:
        """Clear all state, evaluate the prompt and wait for it."""
        self._kept = None
        self._lib.llama_memory_clear(self._memory, True)
        self._evaluate_prompt(prompt)
        self._held = list(prompt)
        if self.keep_logprobs:
            self._kept = tuple(prompt), self._logits().copy()

    def _evaluate_prompt(self, ids: Sequence[int]) -> None:
        """Evaluate tokens on top of the state, count them, and wait for them."""
        self._held = []
        self._lib.llama_perf_context_reset(self._ctx)
        for chunk in cut_prompt(ids, self._n_batch):
            self._evaluate(chunk)
        self._lib.llama_synchronize(self._ctx)

    def _evaluate(self, chunk: Sequence[int]) -> None:
        tokens = (self._lib.llama_token * len(chunk))(*chunk)  # llama_batch_get_one keeps a pointer to it
        status = self._lib.llama_decode(self._ctx, self._lib.llama_batch_get_one(tokens, len(chunk)))
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status} for a batch of {len(chunk)} tokens")

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """As llama.cpp printed it when it allocated the cache for the whole context."""
        allocated = llama_cpp_log.kv_cache_bytes("".join(self._log))
        return (allocated, self.context_tokens) if allocated is not None else None

    def device_bytes(self) -> int | None:
        """llama.cpp has no allocator counter; NVML tells from outside."""
        return None

    def close(self) -> None:
        """Free the contexts and the model."""
        self._rooms.close()
        self._llama.close()


class LlamaCpp:
    """The ``llama_cpp`` backend."""

    options: ClassVar[type[Any]] = LlamaCppOptions
    requires: ClassVar[tuple[str, ...]] = ("llama_cpp",)
    weights_format: ClassVar[Literal["gguf", "safetensors", "none"]] = "gguf"
    makes: ClassVar[tuple[str, ...]] = MAKES
    makers: ClassVar[tuple[str, ...]] = ("llama_cpp",)

    def load(self, weights: Path | None, options: LlamaCppOptions, prompt_format: str) -> LlamaCppModel:
        """Load a GGUF file; LoadError carries what llama.cpp printed."""
        if weights is None:
            raise LoadError("the llama_cpp backend needs a GGUF file")
        return LlamaCppModel(weights, options, prompt_format)

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """Quantize `source` (any GGUF) to the type `recipe`, e.g. ``Q4_K_M``."""
        lib = _library()
        log: list[str] = []
        keep = _capture_log(lib, log)
        params = lib.llama_model_quantize_default_params()
        params.ftype = getattr(lib, "LLAMA_FTYPE_ALL_F32" if recipe == "F32" else f"LLAMA_FTYPE_MOSTLY_{recipe}")
        params.allow_requantize = True
        status = lib.llama_model_quantize(str(source).encode(), str(destination).encode(), ctypes.byref(params))
        del keep
        if status != 0:
            reason = llama_cpp_log.read_reason("".join(log))
            raise LoadError(f"{source}: cannot be quantized to {recipe}: {reason or f'status {status}'}")


def _array_maker() -> Any:
    import numpy

    return numpy.ctypeslib.as_array


@cache
def _library() -> Any:
    import llama_cpp.llama_cpp

    library: ModuleType = llama_cpp.llama_cpp
    library.llama_backend_init()
    return library


def _capture_log(lib: Any, log: list[str]) -> object:
    """Keep llama.cpp's messages, where the reason of a failed load and the size of the KV cache are to be found."""

    def receive(_level: int, text: bytes, _data: object) -> None:
        line = text.decode(errors="replace")
        log.append(line)
        sys.stderr.write(line)

    callback = lib.llama_log_callback(receive)
    lib.llama_log_set(callback, ctypes.c_void_p(0))
    return callback  # the caller keeps it alive for as long as llama.cpp may call it


BACKEND = LlamaCpp()
