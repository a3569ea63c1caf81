"""How far each metric may drift, and what happens when it does. Tolerances never live in baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from suite.errors import MatrixFileError
from suite.metrics.catalog import SPECS
from suite.records import Gate, Tolerance
from suite.schema import nearest

MIB = 1024.0 * 1024.0

DEFAULT_POLICY: Mapping[str, Tolerance] = MappingProxyType(
    {
        "decode_tok_s": Tolerance(relative=0.15, duet=0.10),
        "prefill_tok_s": Tolerance(relative=0.15, duet=0.05),
        "ttft_s": Tolerance(relative=0.15, absolute=0.005, gate=Gate.WARN, duet=0.05),
        "cold_ttft_s": Tolerance(relative=0.50, absolute=0.050, gate=Gate.INFO),
        "itl_s": Tolerance(relative=0.10, duet=0.03),
        "tpot_s": Tolerance(relative=0.15, duet=0.10, gate=Gate.INFO),
        "load_s": Tolerance(relative=0.50, absolute=0.5, gate=Gate.INFO),
        "itl_p95_s": Tolerance(relative=0.25, duet=0.10, gate=Gate.INFO),
        "itl_p99_s": Tolerance(relative=0.50, duet=0.25, gate=Gate.INFO),
        "resent_ttft_s": Tolerance(relative=0.15, absolute=0.005, gate=Gate.INFO, duet=0.05),
        "turn_gain": Tolerance(relative=0.25, duet=0.10, gate=Gate.INFO),
        "late_slowdown": Tolerance(relative=0.25, duet=0.10, gate=Gate.INFO),
        "held_bytes": Tolerance(relative=0.05, absolute=16 * MIB, gate=Gate.INFO),
        "growth_bytes": Tolerance(absolute=4 * MIB),
        "unreturned_bytes": Tolerance(absolute=4 * MIB),
        "evaluated_tokens": Tolerance(gate=Gate.INFO),
        "resent_tokens": Tolerance(gate=Gate.INFO),
        "reevaluated_tokens": Tolerance(absolute=32),  # caches that keep whole blocks evaluate the rest of one again
        "reevaluated_share": Tolerance(absolute=0.5),
        "peak_rss_bytes": Tolerance(relative=0.05, absolute=16 * MIB),
        "uss_bytes": Tolerance(relative=0.05, absolute=16 * MIB, gate=Gate.WARN),
        "peak_device_bytes": Tolerance(relative=0.05, absolute=16 * MIB),
        "kv_cache_bytes": Tolerance(relative=0.02),
        "score": Tolerance(absolute=0.08),
        "score/all": Tolerance(absolute=0.05),
        "exact": Tolerance(absolute=0.08, gate=Gate.INFO),
        "truncated": Tolerance(absolute=0.10),
        "empty": Tolerance(absolute=0.05),
        "unparsable": Tolerance(absolute=0.10),
        "logprob": Tolerance(absolute=0.02, gate=Gate.INFO),
        "logprob/all": Tolerance(absolute=0.02, gate=Gate.WARN),
        "mean_kld": Tolerance(relative=0.20, absolute=0.001, gate=Gate.INFO),
        "mean_kld/all": Tolerance(relative=0.10, absolute=0.0005),
        "decode_kld": Tolerance(relative=0.20, absolute=0.001, gate=Gate.WARN),
        "path_distance": Tolerance(relative=0.50, absolute=0.001),
        "broken_logits": Tolerance(),
        "output_tokens": Tolerance(relative=0.25, gate=Gate.INFO),
    }
)
"""Tolerance by ``metric`` or, taking precedence, by ``metric/scope``."""


def merge_policy(overrides: Mapping[str, Tolerance], *, where: str) -> Mapping[str, Tolerance]:
    """`DEFAULT_POLICY` with the overrides of a matrix file, keyed ``metric`` or ``metric/scope``.

    An override replaces the whole tolerance of its key (relative, absolute and gate), and one for a ``metric`` also
    replaces the default ones for single scopes of that metric. Raises MatrixFileError, with one line for each fault,
    for an unknown metric and for a tolerance that is negative or not finite.
    """
    faults = [fault for key, tolerance in overrides.items() for fault in _faults(key, tolerance)]
    if faults:
        raise MatrixFileError("\n".join(f"{where}: {fault}" for fault in faults))
    kept = {key: limit for key, limit in DEFAULT_POLICY.items() if metric_of(key) not in overrides}
    return MappingProxyType({**kept, **overrides})


def tolerance_for(policy: Mapping[str, Tolerance], metric: str, scope: str) -> Tolerance:
    """The tolerance of ``metric/scope``, else of ``metric``; a metric without any only informs, at 10 %."""
    return policy.get(f"{metric}/{scope}") or policy.get(metric) or Tolerance(relative=0.10, gate=Gate.INFO)


def metric_of(key: str) -> str:
    """``score/all`` → ``score``."""
    return key.partition("/")[0]


def _faults(key: str, tolerance: Tolerance) -> list[str]:
    metric = metric_of(key)
    if metric not in DEFAULT_POLICY:
        known = [name for name in DEFAULT_POLICY if name in SPECS]
        return [f"key 'policy.{key}': no metric '{metric}' is gated; {nearest(metric, known)}"]
    return [
        f"key 'policy.{key}.{name}': must be a finite number, 0 or more (got {value!r})"
        for name, value in (
            ("relative", tolerance.relative),
            ("absolute", tolerance.absolute),
            ("duet", tolerance.duet or 0.0),
        )
        if not math.isfinite(value) or value < 0
    ]
