"""The least that a scenario reads and computes, and how long a device needs for it at best.

The model is the roofline of S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52 (2009): work takes at least bytes / bandwidth, and at least operations / rate; the longer
of the two bounds it. What is written, activations, and what a cache keeps from one token to the next, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from suite.records import Demand, Limits, Streamed
from suite.stats.robust import median

Bound = Literal["memory", "arithmetic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a slice of a scenario evaluates."""

    prompt_tokens: int
    """Of each sequence."""
    new_tokens: int
    """The same of what is generated."""
    kept_tokens: int = 0
    """Prompt tokens that lie in the KV state already."""
    batch: int = 1
    """Sequences that are decoded together."""

    @property
    def evaluated_tokens(self) -> int:
        """Prompt tokens that are evaluated, of all sequences together."""
        return self.batch * (self.prompt_tokens - self.kept_tokens)


def decode_bytes(demand: Demand, work: Work) -> float:
    """Bytes read for each token that is decoded, the mean over a slice: weights, and keys and values looked back on.

    The first token comes out of the prompt; each of the ``new_tokens - 1`` others is evaluated behind all before it, and
    looks back on those and itself: ``prompt + 1 … prompt + new_tokens - 1`` tokens, or a layer's window. Sequences that are
    decoded together share the weights.
    """
    return shared_weight_bytes(demand, work) + sum(
        group.layers * group.kv_bytes * _mean_attended(work, group.window) for group in demand.attention
    )


def shared_weight_bytes(demand: Demand, work: Work) -> float:
    """The part of `decode_bytes` that is weights."""
    return min(demand.all_weight_bytes, demand.weight_bytes * work.batch) / work.batch


def decode_flop(demand: Demand, work: Work) -> float | None:
    """Operations for each token that is decoded: ``2 × weights``, and those of attention; None where weights are not counted.

    Source: J. Kaplan et al., "Scaling laws for neural language models", arXiv:2001.08361, table 1, for the forward pass.
    """
    if demand.body_parameters is None or demand.head_parameters is None:
        return None
    attention = sum(
        group.layers * group.attended_flop * _mean_attended(work, group.window) for group in demand.attention
    )
    return 2 * (demand.body_parameters + demand.head_parameters) + attention


def prefill_flop(demand: Demand, work: Work) -> float | None:
    """Operations for the prompts: as for decoding, but only the last token of each is multiplied with the output matrix."""
    if demand.body_parameters is None or demand.head_parameters is None:
        return None
    attention = sum(
        group.layers
        * group.attended_flop
        * (_sum_attended(work.prompt_tokens, group.window) - _sum_attended(work.kept_tokens, group.window))
        for group in demand.attention
    )
    weights = demand.body_parameters * work.evaluated_tokens + demand.head_parameters * work.batch
    return 2 * weights + work.batch * attention


def prefill_bytes(demand: Demand, work: Work) -> float:
    """Bytes read for the prompts: the weights once for each batch of tokens, and all keys and values once."""
    size = demand.batch_tokens or work.evaluated_tokens
    whole, rest = divmod(work.evaluated_tokens, max(size, 1))
    parts = [*[size] * whole, *[rest] * (rest > 0)]
    weights = sum(min(demand.all_weight_bytes, demand.weight_bytes * tokens) for tokens in parts)
    return weights + work.batch * sum(
        group.layers * group.kv_bytes * min(work.prompt_tokens, group.window or work.prompt_tokens)
        for group in demand.attention
    )


def _mean_attended(work: Work, window: int | None) -> float:
    """Tokens that one decoded token looks back on, itself among them, the mean over a slice."""
    steps = range(1, max(work.new_tokens, 2))
    seen = [work.prompt_tokens + step for step in steps]
    return sum(seen if window is None else [min(tokens, window) for tokens in seen]) / len(seen)


def _sum_attended(tokens: int, window: int | None) -> int:
    """Σ over the tokens of a prompt of how many each looks back on, itself among them."""
    near = tokens if window is None else min(tokens, window)
    return near * (near + 1) // 2 + (tokens - near) * near


# -------------------------------------------------------------------------------------------------- with a device


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """How long the device needs at best for one token, or for one prompt; None where a side is not known."""

    read_bytes: float
    flop: float | None
    memory_s: float | None
    arithmetic_s: float | None

    @property
    def bound(self) -> Bound | None:
        """Which of the two takes longer; None when one of them is not known."""
        if self.memory_s is None or self.arithmetic_s is None:
            return None
        return "memory" if self.memory_s >= self.arithmetic_s else "arithmetic"


def roofline(read_bytes: float, flop: float | None, limits: Limits | None, *, at_once: float | None = None) -> Roofline:
    """That much work on that device. `at_once`: bytes that are gone through before any is read again, where it is more."""
    bandwidth = bandwidth_for(limits, at_once or read_bytes) if limits else None
    rate = limits.flop_s if limits else None
    return Roofline(
        read_bytes=read_bytes,
        flop=flop,
        memory_s=read_bytes / bandwidth if bandwidth else None,
        arithmetic_s=flop / rate if flop is not None and rate else None,
    )


def bandwidth_for(limits: Limits, read_bytes: float) -> float | None:
    """Bytes a second of the reading whose buffer was nearest in size; None without readings."""
    if not limits.streams or read_bytes <= 0:
        return None
    nearest = min(limits.streams, key=lambda stream: abs(math.log(stream.size_bytes / read_bytes)))
    return nearest.read_bytes_s


def middle(limits: Iterable[Limits]) -> Limits | None:
    """One for several launches: by size of the buffer, and for the rate, the median; None without any."""
    everything = list(limits)
    if not everything:
        return None
    sizes = dict.fromkeys(stream.size_bytes for one in everything for stream in one.streams)
    rates = [one.flop_s for one in everything if one.flop_s is not None]
    last = everything[-1]
    return Limits(
        streams=tuple(Streamed(size_bytes=size, read_bytes_s=_rate_at(everything, size)) for size in sizes),
        flop_s=median(rates) if rates else None,
        flop_type=last.flop_type,
        device=last.device,
        threads=last.threads,
        reason=last.reason,
    )


def _rate_at(limits: Iterable[Limits], size: int) -> float:
    return median([stream.read_bytes_s for one in limits for stream in one.streams if stream.size_bytes == size])
