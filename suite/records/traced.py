"""The reference trace, and what a variant makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

EvaluationPath = Literal["batched", "decode"]
"""How an answer was evaluated: in batches, as a prompt is, or token by token, as it is generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCase:
    """The reference's own answer to one case, with its distribution before each token of it.

    Positions are those of `answer_ids`. Each has the `top` likeliest tokens, the likeliest first, and one bucket for all
    others; log-probabilities are in nats, of single precision. The likeliest tokens are packed, as `suite.packed` does: as
    Python numbers those of a thousand cases would take gigabytes.
    """

    case: str
    version: int
    domain: str
    family: str | None
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    """Greedy, with the end token where it ended by itself."""
    logprobs: tuple[float, ...]
    """Of the answer's own tokens."""
    top: int
    top_ids: str
    """int32, shape (positions, top), packed."""
    top_logprobs: str
    """Single precision, shape (positions, top), packed."""
    rest: tuple[float, ...]
    """Of all other tokens together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the reference answers, so that others can be forced through it."""

    model: str
    reference: str
    """Name of the variant that it was made from."""
    key: Mapping[str, str]
    """What it depends on: the reference as declared, and the hashes of its weights, tokenizer and template."""
    top: int
    cases: Mapping[str, TracedCase]
    made: Mapping[str, str] = field(default_factory=dict)
    """When, and by which versions: in no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """Journal entry: the reference answered one case, and its distributions were written down."""

    variant: str
    """The reference."""
    key: Mapping[str, str]
    """`Trace.key`."""
    traced: TracedCase
    cached_from: str | None = None
    """The run that wrote it down, where it was taken from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A position at which a variant's likeliest token is another one than the reference's."""

    position: int
    token: int
    """The variant's."""
    logprob: float
    """The variant's, of its own token."""
    lead: float
    """By how many nats the variant prefers it to the reference's token."""
    reference_logprob: float | None = None
    """The reference's, of the variant's token; None where that is not among those that the trace tells of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Journal entry: one variant, forced through the reference's answer to one case along one path."""

    variant: str
    case: str
    domain: str
    family: str | None
    path: EvaluationPath
    trace: str
    """Hash of the traced case."""
    kld: tuple[float, ...]
    """KL divergence from the reference at each position, nats; 0 at broken ones."""
    logprobs: tuple[float, ...]
    """Of the answer's own tokens, nats."""
    reference_logprobs: tuple[float, ...]
    """The reference's, of the same tokens."""
    departures: tuple[Departure, ...] = ()
    broken: tuple[int, ...] = ()
    """Positions whose logits were no numbers."""
    untold: int | None = None
    """Where it was a server that told: how many of the trace's tokens, over all positions, it did not tell of. They count as
    one with all others."""
    distance: tuple[float | None, ...] | None = None
    """Decode path: KL divergence of the variant's batched distribution from it, at each position; None where the logits of
    either path were no numbers."""
    peer: str | None = None
    """The unquantized variant of the same engine, if the run holds one."""
    peer_kld: tuple[float, ...] | None = None
    """KL divergence from the peer, at each position: what quantization alone did."""
    cached_from: str | None = None
    """The run that computed it, where it was taken from there."""
