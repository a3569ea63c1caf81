"""Memory of one variant. Peak RSS varies by 0.04 % between launches: the maximum over launches needs no statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from suite.records import Launch, Measurement

PER_LAUNCH: Mapping[str, Callable[[Launch], int | None]] = {
    "peak_rss_bytes": lambda launch: launch.peak_rss_bytes,
    "uss_bytes": lambda launch: launch.uss_bytes,
    "peak_device_bytes": lambda launch: launch.peak_device_bytes,
    "kv_cache_bytes": lambda launch: launch.kv_cache_bytes or launch.kv_cache_reported_bytes,
}
"""Metric identifier → its value for one launch, bytes."""


def measure_memory(launches: Sequence[Launch]) -> tuple[Measurement, ...]:
    """Memory of one variant, scope ``all``: maximum over launches, one sample a launch; nothing without launches.

    What no launch reported (device memory on a machine without an accelerator) is ``not_measured``, never 0.
    """
    return tuple(_measure(metric, launches) for metric in PER_LAUNCH) if launches else ()


def _measure(metric: str, launches: Sequence[Launch]) -> Measurement:
    read = PER_LAUNCH[metric]
    pairs = [(float(value), launch.index) for launch in launches if (value := read(launch)) is not None]
    if not pairs:
        reason = "no launch reported it"
        return Measurement(metric=metric, scope="all", value=None, status="not_measured", reason=reason)
    return Measurement(
        metric=metric,
        scope="all",
        value=max(value for value, _ in pairs),
        samples=tuple(value for value, _ in pairs),
        launches=tuple(index for _, index in pairs),
    )
