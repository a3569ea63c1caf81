"""What parent and worker say to each other: one JSON object a line.

Standard library only: a worker may run under another interpreter that has just a backend installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load the weights. Answered by `Loaded`."""

    backend: str
    weights: str | None
    options: Mapping[str, Any]
    prompt_format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The model is in memory."""

    load_s: float
    """Process ready → model in memory, imports of the backend's libraries left out."""
    import_s: float
    context_tokens: int
    threads: int
    facts: Mapping[str, str]
    simulated: bool = False
    """Times are the script's, not the machine's."""
    python: str = ""
    """Version of the interpreter."""
    prefixes: Sequence[str] = ()
    """Where it lies, where what it was made from lies, and where its packages are installed."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Module that the backend requires → its file."""
    remote: bool = False
    """The model lies in other processes: what this one holds and reads says nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """Render chats to token ids. Answered by `Rendered`."""

    chats: Mapping[str, list[dict[str, str]]]
    """Messages by case id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Token ids by case id."""

    ids: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encode:
    """Token ids of plain text. Answered by `Encoded`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Token ids, no special tokens."""

    ids: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """One greedy generation, state cleared before. Answered by `Generated`."""

    prompt: list[int]
    max_new_tokens: int
    stop_at_end: bool = True
    """False for timing: the number of tokens is fixed, whatever they are."""
    logprobs: bool = False
    """Ask for the log-probability of each token too: never for timing, since it takes time itself."""
    kept: int | None = None
    """So many tokens of the prompt lie in the state of the last generation and are not evaluated again. None clears it."""
    watch: int = 0
    """Read the memory every so many tokens, the clock stopped meanwhile; 0 for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The tokens with their times in seconds since the request started, and what the witnesses saw."""

    token_ids: list[int]
    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    evaluated_tokens: int
    prefill_s: float
    token_times_s: list[float]
    witness: Mapping[str, float | int | None]
    logprobs: list[float] | None = None
    """Natural logarithm of each token's probability; None when not asked for, or the backend or the model gives none."""
    held_bytes: int | None = None
    """Anonymous memory right after it."""
    memory: list[list[int]] = field(default_factory=list)
    """While it generated: tokens, and bytes without those that the backend says its KV cache holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateBatch:
    """Greedy generation of several sequences together, state cleared before. Answered by `GeneratedBatch`."""

    prompts: list[list[int]]
    """As long as one another."""
    max_new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedBatch:
    """The tokens of each sequence, and the time of each step in seconds since the request started."""

    token_ids: list[list[int]]
    prompt_tokens: int
    """Of all sequences together, as what was evaluated."""
    evaluated_tokens: int
    prefill_s: float
    token_times_s: list[float]
    witness: Mapping[str, float | int | None]
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unload:
    """Free the model, if there is one; the worker lives on. Answered by `Unloaded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """What the process still holds."""

    held_bytes: int | None
    """Anonymous memory and accelerator memory; None where the system does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weigh:
    """How likely is this answer to this prompt? Answered by `Weighed`."""

    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The log-probability of each token of the answer, or None when the backend or the model gives none."""

    logprobs: list[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """Force the model through an answer (teacher forcing). Answered by `Examined`."""

    prompt: list[int]
    answer: list[int]
    batched: bool
    """Along the batched path, as a prompt is evaluated; otherwise token by token, as an answer is generated."""
    top: int = 0
    """How many of the likeliest tokens are told at each position, where none are `asked` for."""
    asked: list[list[int]] | None = None
    """Tokens whose log-probabilities are told, for each position of the answer; as many for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the logits before each token of the answer say. Arrays are base64 of little-endian numbers of four bytes, one for
    each position, log-probabilities in nats; all "" when the backend cannot be forced.
    """

    width: int
    """Tokens told of at each position."""
    chosen: str
    """Of the answer's own token."""
    best: str
    """The likeliest token, int32."""
    best_logprob: str
    ids: str
    """Shape (positions, width), int32: the likeliest tokens, "" where they were asked for."""
    logprobs: str
    """Shape (positions, width)."""
    rest: str
    """Of all other tokens together."""
    broken: list[int]
    """Positions whose logits are no numbers."""
    told: bool = False
    """By a server, of some tokens alone: what was asked for may be missing (NaN)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Read memory. Answered by `Memory`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of the worker process, bytes."""

    peak_rss_bytes: int | None
    uss_bytes: int | None
    peak_device_bytes: int | None
    kv_cache_bytes: int | None
    kv_cache_tokens: int | None
    """Tokens that the reported KV cache holds or is allocated for."""
    seen: Mapping[str, str] = field(default_factory=dict)
    """What the worker saw since the model was loaded: see `suite.records.Launch.seen`."""
    held_bytes: int | None = None
    """Anonymous memory and accelerator memory, now."""
    readings: Mapping[str, float] = field(default_factory=dict)
    """What a server says of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What does the device give? Of the accelerator that the model lies on, or without a model of the CPUs of the worker.
    Answered by `Probed`.
    """

    size_bytes: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """One reading; see `DeviceRates`."""

    device: str
    threads: int
    size_bytes: int
    read_bytes_s: float
    flop_s: float
    flop_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Make weights. Answered by `Made`."""

    backend: str
    recipe: str
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The weights are at their destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The request failed, the worker lives on."""

    kind: Literal["load", "unavailable", "usage", "invalid", "failure"]
    message: str


Request = Load | Render | Encode | Generate | GenerateBatch | Weigh | Force | Measure | Probe | Unload | Make
Response = (
    Loaded
    | Rendered
    | Encoded
    | Generated
    | GeneratedBatch
    | Weighed
    | Examined
    | Memory
    | Probed
    | Unloaded
    | Made
    | Failed
)

_TYPES: Mapping[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Load,
        Loaded,
        Render,
        Rendered,
        Encode,
        Encoded,
        Generate,
        Generated,
        GenerateBatch,
        GeneratedBatch,
        Weigh,
        Weighed,
        Force,
        Examined,
        Measure,
        Memory,
        Probe,
        Probed,
        Unload,
        Unloaded,
        Make,
        Made,
        Failed,
    )
}


def pack(message: Request | Response) -> bytes:
    """One line. Raises ValueError for a number that is not finite."""
    return json.dumps([type(message).__name__, asdict(message)], allow_nan=False).encode() + b"\n"


def unpack(line: bytes) -> Any:
    """The message in a line. Raises ValueError when it is none."""
    try:
        name, fields = json.loads(line)
        return _TYPES[name](**fields)
    except (ValueError, TypeError, KeyError) as fault:
        raise ValueError(f"not a message: {line[:200]!r} ({fault})") from fault
