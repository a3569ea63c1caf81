"""Every quantity that is measured: identifier, unit, direction, what it is about, and the formula in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from suite.records import Aspect, Direction, MetricSpec

_POOLED = "value: median over launches of that of all the launch's clean samples together"
_PER_SAMPLE = "value: median over launches of the median over clean samples"
_OF_LAUNCH = "value: median over launches"
_NONE = "there must be none: held against nothing, whatever was accepted"


def _spec(name: str, unit: str, better: str, aspect: Aspect, *formula: str) -> MetricSpec:
    return MetricSpec(name=name, unit=unit, direction=Direction(better), aspect=aspect, formula="; ".join(formula))


_SPEED = (
    _spec(
        "prefill_tok_s", "tok/s", "higher", Aspect.SPEED, "newly evaluated prompt tokens / prefill time", _PER_SAMPLE
    ),
    _spec("ttft_s", "s", "lower", Aspect.SPEED, "request start to first token available", _PER_SAMPLE),
    _spec(
        "decode_tok_s", "tok/s", "higher", Aspect.SPEED, "(n - 1) / (last - first token time), nothing trimmed", _POOLED
    ),
    _spec(
        "itl_s",
        "s",
        "lower",
        Aspect.SPEED,
        "median gap between two tokens, the first two left out (a stall moves decode_tok_s, not this)",
        _PER_SAMPLE,
    ),
    _spec("tpot_s", "s", "lower", Aspect.SPEED, "(last - first token time) / (n - 1), nothing trimmed", _POOLED),
    _spec("itl_p95_s", "s", "lower", Aspect.SPEED, "95th percentile of all gaps of a launch, nearest rank", _OF_LAUNCH),
    _spec("itl_p99_s", "s", "lower", Aspect.SPEED, "99th percentile of all gaps of a launch, nearest rank", _OF_LAUNCH),
    _spec(
        "resent_ttft_s",
        "s",
        "lower",
        Aspect.SPEED,
        "TTFT of the last turn of a conversation when all of it is sent again",
        _PER_SAMPLE,
    ),
    _spec(
        "turn_gain",
        "x",
        "higher",
        Aspect.SPEED,
        "resent_ttft_s / ttft_s: how many times sooner the last turn begins with the KV state kept",
        _PER_SAMPLE,
    ),
    _spec(
        "late_slowdown",
        "x",
        "lower",
        Aspect.SPEED,
        "median gap in the last quarter of a generation / that in its first quarter",
        _PER_SAMPLE,
    ),
    _spec("load_s", "s", "lower", Aspect.SPEED, "start of the load to ready", "value: median over launches"),
    _spec(
        "cold_ttft_s",
        "s",
        "lower",
        Aspect.SPEED,
        "TTFT of the first request after a load",
        "value: median over launches",
    ),
    _spec(
        "yardstick_hash_bytes_s",
        "bytes/s",
        "higher",
        Aspect.SPEED,
        "bytes hashed / time, one thread, between samples: the machine itself",
        "value: median over launches",
    ),
    _spec(
        "yardstick_copy_bytes_s",
        "bytes/s",
        "higher",
        Aspect.SPEED,
        "bytes copied / time, one thread, between samples: the machine itself",
        "value: median over launches",
    ),
    _spec(
        "speedup",
        "x",
        "higher",
        Aspect.SPEED,
        "decode_tok_s of a launch / decode_tok_s of the reference's launch of the same index",
        "value: geometric mean over launches",
    ),
    _spec(
        "mbu",
        "share",
        "higher",
        Aspect.SPEED,
        "bytes read per token (weights, and keys and values looked back on) x decode_tok_s of a launch / bandwidth read by as "
        "many threads between its samples, over a buffer of that size",
        "value: geometric mean over launches",
    ),
    _spec(
        "mfu",
        "share",
        "higher",
        Aspect.SPEED,
        "(2 x weights x prompt tokens, the output matrix once, + attention) / prompt tokens x prefill_tok_s of a launch / rate "
        "of a product of float32 matrices by as many threads between its samples, or the declared one",
        "value: geometric mean over launches",
    ),
)

_MAXIMUM = "value: maximum over launches"
_MEMORY = (
    _spec(
        "peak_rss_bytes",
        "bytes",
        "lower",
        Aspect.MEMORY,
        "highest resident set of the worker, without pages of program files",
        _MAXIMUM,
    ),
    _spec("uss_bytes", "bytes", "lower", Aspect.MEMORY, "memory that only the worker holds", _MAXIMUM),
    _spec("peak_device_bytes", "bytes", "lower", Aspect.MEMORY, "highest accelerator memory in use", _MAXIMUM),
    _spec(
        "kv_cache_bytes",
        "bytes",
        "lower",
        Aspect.MEMORY,
        "2 x layers x KV heads x head size x bytes per element x context",
        _MAXIMUM,
    ),
    _spec(
        "held_bytes",
        "bytes",
        "lower",
        Aspect.MEMORY,
        "anonymous memory of the worker after a slice (mapped files, as weights, left out)",
        _PER_SAMPLE,
    ),
    _spec(
        "growth_bytes",
        "bytes",
        "lower",
        Aspect.MEMORY,
        "anonymous memory without the KV cache: Theil-Sen slope over the second half of a generation x its tokens",
        _NONE,
        _PER_SAMPLE,
    ),
    _spec(
        "unreturned_bytes",
        "bytes",
        "lower",
        Aspect.MEMORY,
        "anonymous and accelerator memory after an unload - before the load, the first cycle left out",
        _NONE,
        _PER_SAMPLE,
    ),
    _spec(
        "evaluated_tokens",
        "tokens",
        "lower",
        Aspect.MEMORY,
        "prompt tokens that the last turn of a conversation evaluated with the KV state kept, as the backend counts",
        _PER_SAMPLE,
    ),
    _spec(
        "resent_tokens",
        "tokens",
        "lower",
        Aspect.MEMORY,
        "the same with all of it sent again",
        _PER_SAMPLE,
    ),
    _spec(
        "reevaluated_tokens",
        "tokens",
        "lower",
        Aspect.MEMORY,
        "kept tokens that were evaluated again, as the backend counts, in whichever turn most were",
        _NONE,
        _PER_SAMPLE,
    ),
    _spec(
        "reevaluated_share",
        "share",
        "lower",
        Aspect.MEMORY,
        "share of the kept tokens that were evaluated again by the time it took: "
        "(ttft_s / resent_ttft_s - n) / (1 - n), where n is the share of new tokens in the prompt",
        _NONE,
        _PER_SAMPLE,
    ),
)

_QUALITY = (
    _spec(
        "score",
        "credit",
        "higher",
        Aspect.QUALITY,
        "mean credit over the answered cases, 0..1",
        "truncated, empty and unparsable answers earn none and are counted apart",
    ),
    _spec("exact", "share", "higher", Aspect.QUALITY, "share of the answered cases that count as right"),
    _spec("output_tokens", "tokens", "lower", Aspect.QUALITY, "mean number of tokens in an answer"),
    _spec(
        "truncated",
        "share",
        "lower",
        Aspect.QUALITY,
        "share of answers whose token budget ran out before an anchored answer appeared",
    ),
    _spec(
        "logprob",
        "nats",
        "higher",
        Aspect.QUALITY,
        "mean log-probability per token of the accepted answer, then and now",
        "mean over cases, template families counting once",
    ),
    _spec("empty", "share", "lower", Aspect.QUALITY, "share of answers of nothing but white space, thoughts stripped"),
    _spec("unparsable", "share", "lower", Aspect.QUALITY, "share of answers in which no rule of the scorer found one"),
    _spec(
        "looping",
        "share",
        "lower",
        Aspect.QUALITY,
        "share of answers that end in a loop: a block of 1 to 32 tokens at least 4 times, over at least 24 tokens",
        "compared with the reference only: not all accepted answers keep their token ids",
    ),
)

_LUMPED = "over the reference's 64 likeliest tokens and one bucket for the rest: a lower bound"
_ALONG = "along the reference's own answers, evaluated in batches"
_FIDELITY = (
    _spec(
        "mean_kld",
        "nats",
        "lower",
        Aspect.QUALITY,
        f"mean KL divergence from the reference, {_ALONG}",
        _LUMPED,
    ),
    _spec("median_kld", "nats", "lower", Aspect.QUALITY, "median of the same over positions"),
    _spec("p99_kld", "nats", "lower", Aspect.QUALITY, "99th percentile of the same, nearest rank"),
    _spec(
        "decode_kld",
        "nats",
        "lower",
        Aspect.QUALITY,
        "the same as mean_kld, evaluated token by token, on a fixed sample of the cases",
    ),
    _spec(
        "path_distance",
        "nats",
        "lower",
        Aspect.QUALITY,
        "mean KL divergence of the variant's own decode path from its batched path, on the same sample",
    ),
    _spec(
        "same_top_1",
        "share",
        "higher",
        Aspect.QUALITY,
        f"share of positions with the reference's likeliest token, {_ALONG}",
    ),
    _spec(
        "delta_p", "probability", "higher", Aspect.QUALITY, f"mean of p - p of the reference, of its token, {_ALONG}"
    ),
    _spec("rms_delta_p", "probability", "lower", Aspect.QUALITY, "root mean square of the same"),
    _spec(
        "ppl_ratio",
        "x",
        "lower",
        Aspect.QUALITY,
        f"perplexity of the reference's answers / that under the reference, {_ALONG}",
    ),
    _spec("broken_logits", "share", "lower", Aspect.QUALITY, "share of positions whose logits are NaN or infinite"),
)

SPECS: Mapping[str, MetricSpec] = MappingProxyType(
    {spec.name: spec for spec in (*_SPEED, *_MEMORY, *_QUALITY, *_FIDELITY)}
)
"""Metric identifier → what it means, for every quantity that we measure."""
