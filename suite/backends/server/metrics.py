"""What a server says of itself in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from suite.backends.server.faults import ServerFault
from suite.backends.server.wire import Endpoint

LINE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[^\s]+)(?:\s+-?\d+)?\s*$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
COUNT = re.compile(r"[0-9]{1,15}")
MOST_LINES = 100_000

KNOWN: Mapping[str, tuple[str, ...]] = {
    "server_running": ("vllm:num_requests_running", "llamacpp:requests_processing"),
    "server_waiting": ("vllm:num_requests_waiting", "llamacpp:requests_deferred"),
    "server_kv_cache_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"),
    "server_prefix_cache_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "server_prefix_cache_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "server_prompt_tokens": ("vllm:prompt_tokens_total", "llamacpp:prompt_tokens_total"),
    "server_new_tokens": ("vllm:generation_tokens_total", "llamacpp:tokens_predicted_total"),
    "server_total_prompt_s": ("vllm:request_prefill_time_seconds_sum", "llamacpp:prompt_seconds_total"),
    "server_total_decode_s": ("vllm:request_decode_time_seconds_sum", "llamacpp:tokens_predicted_seconds_total"),
    "server_decoded_requests": ("vllm:request_decode_time_seconds_count",),
    "server_preemptions": ("vllm:num_preemptions_total",),
}
"""Our name → its names, the first that is there counts. Summed over labels: engines of one server."""

TOTALS = frozenset(
    {
        "server_prefix_cache_queries", "server_prefix_cache_hits", "server_prompt_tokens", "server_new_tokens",
        "server_total_prompt_s", "server_total_decode_s", "server_decoded_requests", "server_preemptions",
    }
)  # fmt: skip
"""Counters: what counts is how much they grew."""


def fetch_metrics(endpoint: Endpoint, path: str) -> dict[str, float]:
    """What a server tells at `path` now, by our names; empty without a path, and where nothing of it can be read."""
    try:
        status, body = endpoint.get(path, timeout_s=10) if path else (404, b"")
    except ServerFault:
        return {}
    return parse_metrics(body.decode("utf-8", "replace")) if status == 200 else {}


def parse_metrics(text: str) -> dict[str, float]:
    """The known quantities, by our name; what is no finite number, as a sum too, or not there, is left out."""
    sums: dict[str, float] = {}
    cache: dict[str, float] = {}
    for line in text.splitlines()[:MOST_LINES]:
        found = LINE.match(line) if line and not line.startswith("#") else None
        if found is None:
            continue
        value = _number(found["value"])
        if value is not None:
            sums[found["name"]] = sums.get(found["name"], 0.0) + value
        if found["name"] == "vllm:cache_config_info":
            cache = _capacity(dict(LABEL.findall(found["labels"] or "")))
    sums = finite(sums)
    told = {
        name: next(sums[candidate] for candidate in candidates if candidate in sums)
        for name, candidates in KNOWN.items()
        if any(candidate in sums for candidate in candidates)
    }
    return {**told, **cache}


def growth(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Counters by how much they grew, other readings as they are now. A counter that fell was started anew."""
    grown = {
        name: value - before.get(name, 0.0) if name in TOTALS and value >= before.get(name, 0.0) else value
        for name, value in after.items()
    }
    return finite(grown)


def finite(readings: Mapping[str, float]) -> dict[str, float]:
    """Without what is no number: of two that a server tells, the difference or the share may be none."""
    return {name: value for name, value in readings.items() if math.isfinite(value)}


def decode_rate(grown: Mapping[str, float]) -> dict[str, float]:
    """The decode rate by counters that grew: tokens but the first of each request / time between first and last (vLLM)."""
    requests, tokens = grown.get("server_decoded_requests", 0.0), grown.get("server_new_tokens", 0.0)
    seconds = grown.get("server_total_decode_s", 0.0)
    return {"server_metrics_tok_s": (tokens - requests) / seconds} if requests and seconds > 0 else {}


def _capacity(labels: Mapping[str, str]) -> dict[str, float]:
    """Tokens that vLLM's KV cache holds, and tokens of a block, which no two requests share; empty where it does not tell."""
    blocks = labels.get("num_gpu_blocks", "")
    if blocks in ("", "None", "0"):
        blocks = labels.get("num_cpu_blocks", "")
    size = labels.get("block_size", "")
    if not COUNT.fullmatch(blocks) or not COUNT.fullmatch(size):
        return {}
    return {"server_kv_cache_tokens": float(int(blocks) * int(size)), "server_kv_block_tokens": float(size)}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
