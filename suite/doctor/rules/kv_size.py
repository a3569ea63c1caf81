"""The KV cache takes the bytes that its shape explains."""

from __future__ import annotations

from suite.doctor.phrases import percent, size
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.metrics.limits import kv_disagreement
from suite.records import Run, VariantResult


def check_size(run: Run, result: VariantResult) -> Said:
    """Layers × KV heads × head size × types × context, against what the backend reports."""
    off = kv_disagreement(run, result.variant.name)
    if off is not None:
        share = off.reported_bytes / off.computed_bytes - 1
        return found(
            f"{_told(off.computed_bytes, off.reported_bytes)}: {percent(abs(share))} {'more' if share > 0 else 'less'}",
            off.hint or "see context, types and sliding windows",
        )
    pairs = [(x.kv_cache_bytes, x.kv_cache_reported_bytes) for x in result.launches]
    known = [(computed, reported) for computed, reported in pairs if computed and reported]
    return passed(_told(*known[0])) if known else cannot_be("computed and reported bytes are not both known")


def _told(computed: int, reported: int) -> str:
    return f"{size(reported)} reported, {size(computed)} computed from its shape"


RULE = Rule(id="kv-size", title="KV-cache bytes", of_variant=check_size)
