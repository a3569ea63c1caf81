"""Many requests at once: what a server delivers at each number of clients, and from where on more clients gain little. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from suite.metrics.speed import spread_chunks

LEAST_GAIN = 0.10
"""Throughput that doubling the clients must add, as a share, for the server not to be past its knee."""
QUANTILES = (0.5, 0.95, 0.99)
FULL = 0.95
"""Usage from which on some may have waited."""
LEAST_USAGE = 0.001
"""Share of a KV cache below which nothing is concluded from how full it was: mostly it is one block, or rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a client. Times are seconds since the level began."""

    started_s: float
    ended_s: float
    token_times_s: tuple[float, ...] = ()
    prompt_tokens: int = 0
    error: str | None = None
    """Why it has no answer; its times count for nothing then."""

    @property
    def ttft_s(self) -> float:
        """Request sent → first token."""
        return self.token_times_s[0] - self.started_s

    @property
    def gaps_s(self) -> tuple[float, ...]:
        """Between tokens; one for each chunk, spread over its tokens, where a chunk holds several."""
        return tuple(spread_chunks([later - earlier for earlier, later in pairwise(self.token_times_s)]))

    @property
    def tpot_s(self) -> float:
        """(last - first token time) / tokens that came after the first; 0 where none did."""
        first, last = self.token_times_s[0], self.token_times_s[-1]
        later = sum(time > first for time in self.token_times_s)
        return (last - first) / later if later else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request must keep to count as good. None asks nothing."""

    ttft_s: float | None = None
    tpot_s: float | None = None

    @property
    def asks(self) -> bool:
        """Whether it asks anything."""
        return self.ttft_s is not None or self.tpot_s is not None

    def is_met_by(self, request: Request) -> bool:
        """Whether a request that was answered keeps it."""
        return (self.ttft_s is None or request.ttft_s <= self.ttft_s) and (
            self.tpot_s is None or request.tpot_s <= self.tpot_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One number of clients, each of which sends its next request when it has its answer."""

    concurrency: int
    requests: int
    wall_s: float
    """First request sent → last answer, over all clients."""
    request_s: float
    """Answered requests a second."""
    new_tok_s: float
    """New tokens a second, over all clients."""
    prompt_tokens: int
    ttft_s: Mapping[str, float] = field(default_factory=dict)
    """``p50``, ``p95``, ``p99`` over the requests; empty where none was answered."""
    itl_s: Mapping[str, float] = field(default_factory=dict)
    """The same over the gaps of all requests together."""
    goodput_s: float | None = None
    """Requests a second that met the target; None without one."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """How many requests failed, by reason. They count in nothing else."""
    readings: Mapping[str, float] = field(default_factory=dict)
    """What the server said of itself meanwhile: peaks of what goes up and down, growth of what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Where more clients begin to gain little."""

    concurrency: int | None
    """The last level up to which every doubling gained enough; None when no level was answered."""
    reached: bool
    """False when the last level gained enough too: the knee lies beyond it."""
    gain: float | None = None
    """Per doubling, of the step that did not gain enough, or else of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many requests of a sweep's length the KV cache of the server holds at once: more of them wait, or are preempted."""

    requests: float
    request_tokens: float
    """Of one request: its prompt, as it was counted, and its answer."""
    cache_tokens: float | None = None
    """What the cache holds, where the server tells."""
    seen_at: int | None = None
    """Else the number of clients by whose usage it is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All levels of one server, and what was asked."""

    server: str
    prompt_tokens: int
    new_tokens: int
    requests_a_client: int
    target: Target
    levels: tuple[Level, ...]
    knee: Knee
    budget: Budget | None = None
    """None where the server tells neither what its KV cache holds nor how full it was."""
    least_gain: float = LEAST_GAIN
    stopped: str = ""
    """At which number of clients it ended early, and why; empty where it went to its end."""


def measure_level(
    concurrency: int, requests: Sequence[Request], target: Target, readings: Mapping[str, float]
) -> Level:
    """One level from its requests. Those that failed are counted apart, and nowhere else."""
    answered = [request for request in requests if request.error is None and request.token_times_s]
    begin = min((request.started_s for request in requests), default=0.0)
    wall = max((request.ended_s for request in requests), default=0.0) - begin
    rate = 1 / wall if wall > 0 else 0.0
    return Level(
        concurrency=concurrency,
        requests=len(requests),
        wall_s=wall,
        request_s=len(answered) * rate,
        new_tok_s=sum(len(request.token_times_s) for request in answered) * rate,
        prompt_tokens=sum(request.prompt_tokens for request in answered),
        ttft_s=quantiles([request.ttft_s for request in answered]),
        itl_s=quantiles([gap for request in answered for gap in request.gaps_s]),
        goodput_s=sum(map(target.is_met_by, answered)) * rate if target.asks else None,
        errors=dict(Counter(request.error or "no token came" for request in requests if request not in answered)),
        readings=readings,
    )


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """``p50``, ``p95``, ``p99``, linear between order statistics (Hyndman and Fan's type 7); empty for no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    found = {}
    for quantile in QUANTILES:
        place = quantile * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        found[f"p{quantile * 100:g}"] = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return found


def find_knee(levels: Sequence[Level], least_gain: float = LEAST_GAIN) -> Knee:
    """The last level up to which each doubling of the clients gained at least `least_gain` of throughput (new tokens a second).

    Steps that are no doublings are taken as the share of one that they are: gain = (T₂/T₁)^(1/log₂(C₂/C₁)) − 1.
    """
    usable = [level for level in sorted(levels, key=lambda level: level.concurrency) if level.new_tok_s > 0]
    if not usable:
        return Knee(concurrency=None, reached=False)
    gain = None
    for here, there in pairwise(usable):
        gain = (there.new_tok_s / here.new_tok_s) ** (1 / math.log2(there.concurrency / here.concurrency)) - 1
        if gain < least_gain:
            return Knee(concurrency=here.concurrency, reached=True, gain=gain)
    return Knee(concurrency=usable[-1].concurrency, reached=False, gain=gain)


def find_budget(levels: Sequence[Level], prompt_tokens: int, new_tokens: int) -> Budget | None:
    """What fits into the KV cache, in whole blocks where the server tells its size; else by how full the most clients made it.

    Only clients none of whom is known to have waited count for that, since what waits is in no cache; and it is the most that
    fit, since not all of them need hold all of their tokens when the cache is fullest. `prompt_tokens` is what was asked for,
    where nobody counted. None where neither is told, and where the cache was full and nobody tells of a queue.
    """
    answered = sum(level.requests - sum(level.errors.values()) for level in levels)
    counted = sum(level.prompt_tokens for level in levels)
    length = (counted / answered if answered and counted else prompt_tokens) + new_tokens
    for level in levels:
        held = level.readings.get("server_kv_cache_tokens", 0.0)
        block = max(level.readings.get("server_kv_block_tokens", 1.0), 1.0)
        if held > 0:
            fitting = held // (math.ceil(length / block) * block)
            return Budget(requests=fitting, request_tokens=length, cache_tokens=held)
    for level in sorted(levels, key=lambda level: level.concurrency, reverse=True):
        usage, waiting = (level.readings.get(f"server_{name}_peak", 0.0) for name in ("kv_cache_usage", "waiting"))
        is_seen = usage < FULL or "server_waiting_peak" in level.readings
        if LEAST_USAGE <= usage <= 1 and is_seen and not waiting and not level.errors:
            return Budget(requests=level.concurrency / usage, request_tokens=length, seen_at=level.concurrency)
    return None
