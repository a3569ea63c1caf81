"""Which gates exist, before anything is measured, so that each can be a test item of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.gate.compare_logprob import LOGPROB
from suite.gate.policy import tolerance_for
from suite.metrics.catalog import SPECS
from suite.metrics.fidelity import BROKEN, DECODE_KLD, PATH_DISTANCE
from suite.metrics.kinds import belongs
from suite.metrics.memory import PER_LAUNCH as MEMORY_METRICS
from suite.metrics.quality import PER_OUTCOME as QUALITY_METRICS
from suite.metrics.speed import OF_SCENARIOS
from suite.records import ALL, Aspect, Gate, Scenario, Tolerance

_USUAL = {
    "score",
    "truncated",
    "empty",
    "unparsable",
    "logprob",
    "mean_kld",
    "decode_kld",
    "path_distance",
    "broken_logits",
    "prefill_tok_s",
    "ttft_s",
    "decode_tok_s",
    "itl_s",
    "peak_rss_bytes",
    "peak_device_bytes",
    "kv_cache_bytes",
}
"""Gated unless the policy makes them INFO; the others are gated only when the policy makes them BLOCK."""


@dataclass(frozen=True, slots=True, order=True)
class GateItem:
    """One gate of one variant. A finding with the same metric and scope decides it."""

    aspect: Aspect
    metric: str
    scope: str


def plan_gates(
    scenarios: Sequence[Scenario],
    domains: Iterable[str],
    policy: Mapping[str, Tolerance],
    *,
    has_accelerator: bool = True,
    fidelity: bool = False,
) -> tuple[GateItem, ...]:
    """The gates of every variant: quality, then speed, then memory.

    Score (and log-probability, where the policy says so) is gated for each domain and for ``all``, the other quality metrics
    for ``all``; speed for each scenario;
    load time, cold TTFT and memory for ``all``. Without an accelerator there is no gate on its memory. A metric that
    the policy only informs about has no gate. `fidelity` says whether there is a reference trace to be held against.
    """
    return tuple(
        GateItem(SPECS[metric].aspect, metric, scope)
        for metric, scopes in _candidates(scenarios, sorted(set(domains)), fidelity=fidelity).items()
        for scope in scopes
        if _is_gated(metric, tolerance_for(policy, metric, scope))
        if has_accelerator or metric != "peak_device_bytes"
    )


def _candidates(scenarios: Sequence[Scenario], domains: Sequence[str], *, fidelity: bool) -> dict[str, Sequence[str]]:
    quality = {metric: [*domains, ALL] if metric in ("score", "exact") else [ALL] for metric in QUALITY_METRICS}
    return {
        **({**quality, LOGPROB: [*domains, ALL]} if domains else {}),
        **({"mean_kld": [*domains, ALL], DECODE_KLD: [ALL], PATH_DISTANCE: [ALL], BROKEN: [ALL]} if fidelity else {}),
        **{metric: [s.name for s in scenarios if belongs(metric, s)] for metric in OF_SCENARIOS},
        **{metric: [ALL] for metric in ("load_s", "cold_ttft_s", *MEMORY_METRICS)},
    }


def _is_gated(metric: str, tolerance: Tolerance) -> bool:
    return tolerance.gate is Gate.BLOCK or (metric in _USUAL and tolerance.gate is Gate.WARN)
