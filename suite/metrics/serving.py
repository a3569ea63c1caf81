"""What a server tells of itself beside what its client saw of the same requests, over the launches of a variant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.records import Launch
from suite.stats.robust import median

APART = 0.05
"""Share by which the decode rate of a client may differ from the server's own: reading chunks costs less."""
OTHERS = 0.1
"""Requests beyond those of its client, as a share, from which on the counters of a server are of somebody else's too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server over all launches of a variant. What nobody told is None."""

    client_tok_s: float | None
    """Decode rate as the client saw it: median over launches, as all that is no peak and no sum."""
    server_tok_s: float | None
    """The same as the server has it."""
    source: str
    """By which the server has it: ``timings``, ``log`` or ``metrics``; empty where it does not tell."""
    difference: float | None
    """Client / server - 1, launch by launch."""
    overhead_s: float | None
    """What reading a chunk costs the client by itself."""
    tokens_a_chunk: float | None
    kv_usage: float | None
    """Share of its KV cache that was in use when a launch was over, the largest of them."""
    kv_tokens: float | None
    """What that cache holds."""
    waiting: float | None
    """Requests in its queue when a launch was over, the most of them."""
    prefix_hits: float | None
    """Share of the prompt tokens that it looked up in its prefix cache, and found."""
    retries: float | None
    """How often it said "later", over all launches."""

    @property
    def is_apart(self) -> bool:
        """Whether client and server disagree on how fast it decoded."""
        return self.difference is not None and abs(self.difference) > APART


def served(launches: Sequence[Launch]) -> Served | None:
    """What the readings of a variant's launches amount to; None where there are none: it is no server."""
    told = [launch.readings for launch in launches if launch.readings]
    if not told:
        return None
    own = [(readings, *rate) for readings in told if (rate := _own_rate(readings))]
    source = own[0][2] if own else ""
    pairs = [(readings.get("client_decode_tok_s"), rate) for readings, rate, by in own if by == source]
    looked_up = sum(_all(told, "server_prefix_cache_queries"))
    return Served(
        client_tok_s=_middle(_all(told, "client_decode_tok_s")),
        server_tok_s=_middle([rate for _, rate in pairs]),
        source=source,
        difference=_middle([client / rate - 1 for client, rate in pairs if client]),
        overhead_s=_middle(_all(told, "client_overhead_s")),
        tokens_a_chunk=_middle(_all(told, "client_tokens_a_chunk")),
        kv_usage=max(_all(told, "server_kv_cache_usage"), default=None),
        kv_tokens=max(_all(told, "server_kv_cache_tokens"), default=None),
        waiting=max(_all(told, "server_waiting"), default=None),
        prefix_hits=sum(_all(told, "server_prefix_cache_hits")) / looked_up if looked_up > 0 else None,
        retries=sum(retried) if (retried := list(_all(told, "client_retries"))) else None,
    )


def _own_rate(readings: Mapping[str, float]) -> tuple[float, str] | None:
    """The server's own decode rate, and by what: of each request rather than of its counters, which know no client."""
    rate, counted = (readings.get(f"server_{by}_tok_s", 0.0) for by in ("decode", "metrics"))
    if rate > 0:
        return rate, "log" if "server_kernel_tok_s" in readings else "timings"
    asked, answered = readings.get("client_requests", 0.0), readings.get("server_decoded_requests", 0.0)
    return (counted, "metrics") if counted > 0 and answered <= (1 + OTHERS) * asked else None


def _all(told: Sequence[Mapping[str, float]], name: str) -> Iterator[float]:
    return (readings[name] for readings in told if name in readings)


def _middle(values: Iterator[float] | Sequence[float]) -> float | None:
    known = list(values)
    return median(known) if known else None
