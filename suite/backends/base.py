"""The seam between the suite and what runs a model. A backend is one file; the core never knows one by name.

The parent process imports a backend's module only to read its declarations (`Backend.options`, `requires`,
`weights_format`, `makes`); so heavy libraries are imported inside functions, which run in a worker.

A minimal backend::

    class Echo:
        options = EchoOptions                     # a frozen dataclass; every field has a default
        requires = ()
        weights_format = "none"
        makes = ()
        makers = ()

        def load(self, weights, options, prompt_format):
            return EchoModel()

        def make(self, recipe, source, destination):
            raise UsageError("echo makes nothing")

    BACKEND = Echo()

and in the matrix file ``backend = "my_package.echo:BACKEND"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from suite.clock import Clock

Message = Mapping[str, str]
"""One chat message: ``role`` and ``content``."""

LAUNCH_VARIABLE = "QUANTDRIFT_LAUNCH"
"""Environment variable that tells a worker which launch of its variant it is."""

EVALUATED, ASSUMED = "evaluated tokens", "assumed"
"""What a server has `Seeing.seen` hold, where it does not tell how many prompt tokens it evaluated."""

FOOTPRINT = "footprint_bytes"
"""Fact that a backend gives when it quantizes while it loads: bytes of the weights in memory, unlike those on disk."""

ELSEWHERE = "weights elsewhere"
"""Fact that a backend gives when nobody here can tell which weights answer: no earlier answer stands for another then."""

FROZEN_DATE = "2026-01-01"
"""What templates that print today's date are told, so that a baseline does not change at midnight."""

FROZEN_FORMATS: Mapping[str, str] = {
    "%Y": "2026",
    "%m": "01",
    "%d": "01",
    "%b": "Jan",
    "%B": "January",
    "%A": "Thursday",
}


def frozen_strftime(fmt: str) -> str:
    """`strftime` of `FROZEN_DATE`, for chat templates; unknown directives stay as they are."""
    for directive, value in FROZEN_FORMATS.items():
        fmt = fmt.replace(directive, value)
    return fmt


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt has been evaluated and the device is synchronized."""

    evaluated_tokens: int
    """As counted by the backend, not by us: fewer than the prompt's means that a cache answered."""
    started_at: float | None = None
    """Reading of the model's clock when the request began, where that is not when its stream was asked for."""
    at: float | None = None
    """Reading when the prompt had been evaluated, where that is not now."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A token that came earlier than it is yielded: what reads a stream to its end first has the times of its parts."""

    token: int
    at: float
    """Reading of the model's clock."""


class LoadedModel(Protocol):
    """A model in memory, inside a worker. Batch size is 1 and decoding is greedy."""

    clock: Clock
    """What times this model, in seconds. `suite.clock.monotonic` unless time is simulated."""
    context_tokens: int
    """Prompt and answer together may not be longer."""
    threads: int
    """CPU threads that decode, for the witness."""
    facts: Mapping[str, str]
    """Versions, build flags and the options that are really in force.

    Names that others read, as far as a backend knows them; all values are text, and what it does not know it leaves out:

    - ``device``: ``cpu``, ``cuda:0``; ``n_threads``, ``n_threads_batch``, ``interop threads``; ``n_ctx``, if allocated
    - ``attention`` (transformers' name), ``flash attention`` (``on``, ``off``): what is in force, whatever was asked
    - ``KV types``: of K and V, ``f16 q8_0``
    - ``layers offloaded``: ``12 of 31``; ``gpu_offload``: whether the build can (``True``, ``False``); ``cuda``: for which
      version the build is, or ``None``
    - ``eval mode``, ``use_cache``, ``gradient checkpointing``: ``yes`` or ``no``
    - ``parameters by dtype``, ``parameters by device``: ``float16=134515008 float32=576``, elements as stored
    - ``llama.cpp system``, ``cpu capability``: the instruction sets of the kernels
    - ``simulated``: time is a script's
    """

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a chat through the model's own template with time frozen, or of the raw prompt."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text without special tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of answer tokens, special tokens left out."""
        ...

    def is_end(self, token: int) -> bool:
        """Whether this token ends an answer."""
        ...

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | Arrived | int]:
        """Clear all state, evaluate `prompt`, and yield `Prefilled`, then up to `max_new_tokens` greedy tokens.

        Each item is yielded when it is available to the program (device synchronized), or tells when it was. Does not
        stop at end tokens: that is the caller's decision (but see `Stopping`). Raises ValueError if prompt and answer do
        not fit the context.
        """
        ...

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """Bytes of the KV cache as the backend reports them, and the number of tokens that they hold."""
        ...

    def device_bytes(self) -> int | None:
        """Peak device memory of this process as the backend's own allocator counts it."""
        ...

    def close(self) -> None:
        """Free what can be freed. Only the end of the process frees everything."""
        ...


@runtime_checkable
class Weighing(Protocol):
    """What a `LoadedModel` may be able to do besides: say how likely its tokens are.

    A model without these three members is measured in everything else, and its log-probabilities are "not measured".
    """

    keep_logprobs: bool
    """False after loading. While True, `stream` also fills `logprobs`, at whatever cost: it is never set when speed is
    measured."""
    logprobs: list[float]
    """Natural logarithm of the probability of each token that the last `stream` yielded, under the softmax over the whole
    vocabulary; empty unless `keep_logprobs` was set."""

    def weigh(self, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
        """Clear all state, evaluate `prompt`, then feed `answer` token by token as `stream` would; the log-probability of each.

        The way is that of generating, with the same batches, so that a model's own greedy answer weighs what it weighed when
        it was generated. Raises ValueError if prompt and answer do not fit the context.
        """
        ...


@runtime_checkable
class Telling(Protocol):
    """The part of `Weighing` that a server may have: it says how likely its own tokens are, and cannot be asked of others."""

    keep_logprobs: bool
    logprobs: list[float]


@runtime_checkable
class Stopping(Protocol):
    """What a `LoadedModel` may be able to do besides: end an answer by itself, as servers do.

    Its `stream` still yields a token for which `is_end` is true where the answer ended.
    """

    stop_at_end: bool
    """True after loading. While False, `stream` goes on past end tokens: what is timed has a fixed length."""


@runtime_checkable
class Remote(Protocol):
    """What a `LoadedModel` is besides, when its weights are not in this process."""

    def process_ids(self) -> Sequence[int]:
        """The processes of this machine that hold the model; none where they are elsewhere or nobody knows them."""
        ...

    def readings(self) -> Mapping[str, float]:
        """What the server itself says of the requests since it was loaded, with units in names: finite numbers."""
        ...


@runtime_checkable
class Sparing(Protocol):
    """What a `Backend` may be able to say besides: that a variant of its can do without weights on this disk."""

    def needs_weights(self, options: Mapping[str, Any]) -> bool:
        """Whether a variant with these options needs them."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """What a `Backend` may be able to say besides: that its variants may outlive a run, and what they were asked in it.

    Prompts that are timed then begin otherwise in each run and for each such variant, since several may be at one server.
    """

    def remembers(self, options: Mapping[str, Any]) -> bool:
        """Whether nothing keeps a variant with these options from answering a prompt out of a cache."""
        ...


@runtime_checkable
class Forcing(Protocol):
    """What a `LoadedModel` may be able to do besides: be forced through an answer that is not its own (teacher forcing).

    A model without this member is measured in everything else, and its fidelity is "not measured".
    """

    def force(self, prompt: Sequence[int], answer: Sequence[int], *, batched: bool) -> Iterator[Any]:
        """The logits, float32 of shape (vocabulary,), before each token of `answer`, one array after another.

        An array is valid until the next one is asked for, so that memory does not grow with the length. The prompt is
        evaluated as `stream` does; then ``answer[:-1]`` in batches, as a prompt would be (`batched`), or token by token, as
        it is when it is generated. What is left of the same prompt from the last `stream` or `force` may be used again where
        that changes no logit. Raises ValueError if prompt and answer do not fit the context.
        """
        ...


@runtime_checkable
class Seeing(Protocol):
    """What a `LoadedModel` may be able to do besides: tell what shows only when it has worked."""

    seen: Mapping[str, str]
    """In no key, and no suspect. ``evaluated tokens``: ``assumed`` where a server did not tell how many it evaluated.
    ``inference mode``: ``yes`` where the last logits were made under it, else ``no``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """One reading of what a device gives."""

    device: str
    threads: int
    """CPU threads; 0 where that is not what decides."""
    size_bytes: int
    """Of the buffer that was read."""
    read_bytes_s: float
    flop_s: float
    """Operations a second of a product of matrices; a multiplication and an addition are two."""
    flop_type: str
    """The type of those matrices."""


@runtime_checkable
class Probing(Protocol):
    """What a `LoadedModel` may be able to do besides: say what the accelerator gives that it lies on.

    Of a model on the CPU nobody asks that: the CPUs are probed by a process of their own. A model on an accelerator without
    this member has no roofline.
    """

    def probe(self, size_bytes: int) -> DeviceRates:
        """Read a buffer of that size, and multiply matrices of the type that the model computes in, synchronized.

        What it allocates must be free again afterwards, and must not count in `LoadedModel.device_bytes`.
        """
        ...


@runtime_checkable
class Continuing(Protocol):
    """What a `LoadedModel` may be able to do besides: go on from a state that it holds, instead of from nothing.

    A model without this member is "not measured" where a scenario keeps its state.
    """

    def resume(self, prompt: Sequence[int], kept: int, max_new_tokens: int) -> Iterator[Prefilled | int]:
        """As `LoadedModel.stream`, but the first `kept` tokens of `prompt` are not evaluated again.

        They are those that the state of the last `stream` or `resume` begins with; what lies behind them is rolled back.
        `Prefilled` counts what was evaluated now. Raises ValueError when the state does not begin with them, when they are
        all of the prompt or do not fit the context; Unavailable, with the reason, when such a state cannot be rolled back.
        """
        ...


@runtime_checkable
class Batching(Protocol):
    """What a `LoadedModel` may be able to do besides: decode several sequences together, one token of each a step.

    A model without this member is "not measured" where a scenario has a batch.
    """

    def stream_batch(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int
    ) -> Iterator[Prefilled | tuple[int, ...]]:
        """Evaluate all `prompts`, as long as one another, from empty states, and yield `Prefilled` with the tokens of all
        together, then up to `max_new_tokens` tuples of one greedy token for each sequence. What is evaluated besides, to
        pad a sequence, counts in `Prefilled` as well.

        Raises ValueError as `LoadedModel.stream` does; Unavailable, with the reason, when there is no room for so many.
        """
        ...


@runtime_checkable
class Scoring(Protocol):
    """The part of `Forcing` that a server may have: it says how likely the tokens of a prompt are, in batches alone."""

    def score(self, prompt: Sequence[int], answer: Sequence[int]) -> Sequence[Mapping[int, float]] | None:
        """Of each token of `answer`, after `prompt` and what is before it: the natural logarithm of its probability under the
        softmax over the whole vocabulary, by token, and beside it those of the likeliest tokens that the server tells.

        A value that is no number stands for logits that are none. None where the server was not to be asked for them. Raises
        ValueError if prompt and answer do not fit the context.
        """
        ...


MOST_ROWS = 64
"""Positions whose logits `Forcing.force` lets a library hold at once: memory is bounded by it, whatever the context."""


def cut_answer(length: int, most: int = MOST_ROWS) -> Iterator[slice]:
    """Slices of ``answer[:-1]`` for an answer of `length` tokens, in batches of at most `most`.

    None is of a single token unless there is but one: a batch of one runs the kernels of decoding.
    """
    start, left = 0, length - 1
    while left > 0:
        step = most - 1 if left == most + 1 and most > 2 else min(most, left)
        yield slice(start, start + step)
        start, left = start + step, left - step


class Backend(Protocol):
    """A way of running models."""

    options: ClassVar[type[Any]]
    """Frozen dataclass of the options, each with a default; validated before anything is loaded."""
    requires: ClassVar[tuple[str, ...]]
    """Names of the modules that must be importable; otherwise the variant is NOT_MEASURED."""
    makes: ClassVar[tuple[str, ...]]
    """Recipes that `make` knows, e.g. GGUF types."""
    makers: ClassVar[tuple[str, ...]]
    """Modules of `requires` whose version decides what `make` writes."""

    @property
    def weights_format(self) -> Literal["gguf", "safetensors", "none", "any"]:
        """A class variable. ``any`` takes either as it is."""
        ...

    def load(self, weights: Path | None, options: Any, prompt_format: str) -> LoadedModel:
        """Load from a local file or directory.

        Raises LoadError with the reason that the library gave.
        """
        ...

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """Make weights in this backend's format from `source`: a recipe of `makes`."""
        ...


def check_room(prompt_tokens: int, max_new_tokens: int, context_tokens: int) -> None:
    """Raise ValueError when prompt and answer do not fit the context: never clamp in silence."""
    if prompt_tokens + max_new_tokens > context_tokens:
        raise ValueError(
            f"{prompt_tokens} prompt tokens + {max_new_tokens} new tokens do not fit a context of {context_tokens}; "
            "raise n_ctx or shorten the case"
        )


def check_kept(prompt: Sequence[int], kept: int, held: Sequence[int]) -> None:
    """Raise ValueError when the `held` tokens of a state do not begin with the first `kept` of `prompt`, or nothing is left."""
    if not 0 <= kept < len(prompt):
        raise ValueError(f"{kept} kept tokens leave nothing of {len(prompt)} prompt tokens to evaluate")
    if list(held[:kept]) != list(prompt[:kept]):
        raise ValueError(f"the state, of {len(held)} tokens, does not begin with the {kept} tokens that are to be kept")
