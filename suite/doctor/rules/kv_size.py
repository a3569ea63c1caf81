"""The KV cache takes the bytes that its shape explains."""

from __future__ import annotations

from suite.doctor.phrases import percent, size
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

CLOSE = 0.02
"""Share by which computed and reported bytes may differ."""


def check_size(_: Run, result: VariantResult) -> Said:
    """Layers × KV heads × head size × types × context, against what the backend reports."""
    pairs = [(x.kv_cache_bytes, x.kv_cache_reported_bytes) for x in result.launches]
    known = [(computed, reported) for computed, reported in pairs if computed and reported]
    if not known:
        return cannot_be("computed and reported bytes are not both known")
    computed, reported = max(known, key=lambda pair: abs(pair[1] / pair[0] - 1))
    off = reported / computed - 1
    told = f"{size(reported)} reported, {size(computed)} computed from its shape"
    if abs(off) > CLOSE:
        return found(
            f"{told}: {percent(abs(off))} {'more' if off > 0 else 'less'}", "see context, types and sliding windows"
        )
    return passed(told)


RULE = Rule(id="kv-size", title="KV-cache bytes", of_variant=check_size)
