"""What evaluating a token demands of a machine, and what the machine gives: both sides of a roofline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayers:
    """Layers of a model whose attention is alike."""

    layers: int
    kv_bytes: int
    """Keys and values of one token in one of these layers, in the types of the KV cache."""
    attended_flop: int
    """Operations for each token that one token attends to, in one layer: 2 × heads × (key size + value size)."""
    window: int | None = None
    """Tokens that are looked back on at most; None for all."""
    keeps: bool = True
    """False where the keys and values of another layer are read again, and none are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The least that a variant must read and compute, by the headers of its weights and the types that are in force."""

    weight_bytes: int
    """Weights read for one token: of a table of embeddings one row, of experts those in use, an output matrix whole."""
    all_weight_bytes: int
    """The same for many tokens at once, which put every expert to use."""
    body_parameters: int | None
    """Weights that each token is multiplied with, the output matrix left out; None where headers do not tell their number."""
    head_parameters: int | None
    """Of the output matrix, which is needed only where a token is to be predicted."""
    attention: tuple[AttentionLayers, ...] = ()
    kv_known: bool = True
    """Whether `attention` is all there is; otherwise the KV cache is not in the sums."""
    batch_tokens: int | None = None
    """Prompt tokens that are evaluated at once at most; None for the whole prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """How fast a buffer of one size was read, by as many threads as the variant decodes with, on the same CPUs."""

    size_bytes: int
    read_bytes_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the device gave between the slices of a launch."""

    streams: tuple[Streamed, ...] = ()
    """By size, medians of the readings: a model that fits into a cache is held against the cache."""
    flop_s: float | None = None
    """Operations a second of a product of matrices, a multiplication and an addition counting as two."""
    flop_type: str = ""
    """The type of those matrices (``float32``), or ``declared`` when the matrix file gives the rate."""
    device: str = ""
    threads: int = 0
    reason: str = ""
    """Why something was not measured."""
