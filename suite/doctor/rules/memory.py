"""How near a variant comes to the end of the memory that it may use."""

from __future__ import annotations

import re

from suite.doctor.phrases import percent, size
from suite.doctor.reading import is_on_gpu, number
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, VariantResult

FULL = 0.9
"""Share of the memory beyond which the next longer prompt, or a neighbour, ends in swapping or a kill."""


def check_headroom(run: Run, result: VariantResult) -> Said:
    """Peak of weights, KV cache and work space, against the memory of the device, or of the machine or its limit."""
    device = _peak(result, "peak_device_bytes")
    if device and is_on_gpu(result):
        if _has_several(run):
            return cannot_be("its peak is known of all devices together, and the fullest of them decides")
        return _judge(result, device, _device_bytes(run), "the device")
    limits = {
        name: value
        for name, key in (("the machine", "memory_bytes"), ("the limit of its group", "memory_limit_bytes"))
        if (value := number(run.environment.readings, key)) is not None
    }
    where = min(limits, key=lambda name: limits[name], default="the machine")
    return _judge(result, _peak(result, "peak_rss_bytes"), limits.get(where), where)


def _judge(result: VariantResult, used: int | None, there: float | None, where: str) -> Said:
    if not used:
        return cannot_be("no peak memory was measured of it")
    if not there:
        return cannot_be(f"the run does not tell how much memory {where} has")
    told = f"{_split(result, used)} of {size(there)} of {where}: {percent(used / there)}"
    if used > FULL * there:
        return found(told, "a smaller variant, a smaller n_ctx, or a quantized KV cache")
    return passed(told)


def _split(result: VariantResult, used: int) -> str:
    """``330 MB (weights 271 MB, KV cache 47.2 MB)``, as far as known."""
    cache = _peak(result, "kv_cache_bytes") or _peak(result, "kv_cache_reported_bytes")
    weights = result.artifact.size_bytes if result.artifact else None
    parts = [f"{name} {size(value)}" for name, value in (("weights", weights), ("KV cache", cache)) if value]
    return f"{size(used)} ({', '.join(parts)})" if parts else size(used)


def _peak(result: VariantResult, field: str) -> int | None:
    return max((value for launch in result.launches if (value := getattr(launch, field)) is not None), default=None)


def _has_several(run: Run) -> bool:
    """Whether the machine's devices are more than the ``1x NAME`` of one."""
    name = run.environment.identity.get("device", "")
    return " + " in name or (re.match(r"\d+x ", name) is not None and not name.startswith("1x "))


def _device_bytes(run: Run) -> float | None:
    told = re.match(r"(\d{1,9}) GiB", run.environment.identity.get("device memory", ""))
    return float(told[1]) * 2**30 if told else None


RULE = Rule(id="memory", title="memory headroom", of_variant=check_headroom)
