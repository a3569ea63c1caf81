"""What a stored run knows of each quantity that may have a limit: an estimate, its interval, and where both come from.

Loss, divergence and speed-up are those of the run's own losses, as its report shows them. Absolute speeds are of one session,
and the next one differs: their intervals hold the spread between sessions too. Memory is the most that any launch needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suite.gate.advice.asked import QUANTITIES, Name
from suite.gate.loss import ALPHA, lost_credit
from suite.gate.policy import tolerance_for
from suite.metrics.speed import launch_values
from suite.records import ALL, Loss, Measurement, Run, Tolerance, VariantResult
from suite.stats.intervals import SESSION_SD, interval_of, session_mean, spend

POINTS = 100.0
_METRICS: Mapping[Name, str] = {
    "loss": "score", "kld": "mean_kld", "speedup": "speedup", "decode": "decode_tok_s", "ttft": "ttft_s",
}  # fmt: skip
_BY_DEFINITION: Mapping[Name, float] = {"loss": 0.0, "kld": 0.0, "speedup": 1.0}
"""What the reference is against itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One quantity of one variant."""

    quantity: Name
    metric: str
    """As it is called in the run."""
    scope: str
    value: float | None = None
    """In the quantity's unit; None where it is not known."""
    interval: tuple[float, float] | None = None
    """Of memory the least and the most that a launch needed."""
    n: int = 0
    """Independent cases, or launches."""
    confidence: float = 0.95
    """Of the interval: more where the same launches were judged more than once."""
    looks: int = 1
    """How often the launches were judged so far."""
    doubt: str = ""
    """Why it is not known, or why the numbers are not to be trusted."""
    draws: tuple[float, ...] = ()
    """What it was estimated from: points lost in each independent case, or the logarithm of each launch."""
    slack: float = 0.0
    """Half of the difference from another variant's that counts as none; of memory half of what may drift."""
    session_sd: float = 0.0
    """Standard deviation between sessions, on logs, that the interval holds."""
    exact: bool = False
    """By definition: what the reference is against itself."""


def find_estimates(run: Run, scenario: str | None) -> Mapping[str, Mapping[Name, Estimate]]:
    """All quantities of all variants of a run, by variant; speeds are those of `scenario`."""
    return {
        result.variant.name: {name: _estimate(name, result, run, scenario) for name in QUANTITIES}
        for result in run.variants
    }


def _estimate(name: Name, result: VariantResult, run: Run, scenario: str | None) -> Estimate:
    if result.failure is not None:
        return _unknown(name, scenario, f"it is {result.failure.verdict}: {result.failure.reason}")
    if name == "memory":
        return _memory(result, run.matrix.policy)
    if name in ("decode", "ttft"):
        return _rate(name, result, scenario)
    if result.variant.reference:
        value = _BY_DEFINITION[name]
        return Estimate(
            quantity=name, metric=_METRICS[name], scope=_scope(name, scenario), value=value, interval=(value, value),
            exact=True,
        )  # fmt: skip
    return _against_reference(name, result, run, scenario)


def _scope(name: Name, scenario: str | None) -> str:
    return ALL if name in ("loss", "kld", "memory") else scenario or ALL


def _unknown(name: Name, scenario: str | None, why: str) -> Estimate:
    metric = _METRICS.get(name, "peak_rss_bytes")
    return Estimate(quantity=name, metric=metric, scope=_scope(name, scenario), doubt=why)


# ----------------------------------------------------------------------------------------- against the reference


def _against_reference(name: Name, result: VariantResult, run: Run, scenario: str | None) -> Estimate:
    metric, scope, variant = _METRICS[name], _scope(name, scenario), result.variant.name
    own = [loss for loss in run.losses if loss.variant == variant]
    found = next((loss for loss in own if (loss.metric, loss.scope) == (metric, scope)), None)
    if found is None or found.value is None:
        told = found or (own[0] if len(own) == 1 else None)  # a side that failed has one loss, which says so
        return _unknown(name, scenario, _why(told) if told else _missing(name, run))
    if name == "loss":
        return _loss(found, run)
    if name == "kld":
        return Estimate(
            quantity=name, metric=metric, scope=scope, value=found.value, interval=found.interval, n=found.n
        )
    return _speedup(found, result, run)


def _loss(found: Loss, run: Run) -> Estimate:
    reference = run.matrix.reference
    changes = lost_credit(found.variant, reference.name, run.trials) if reference else []
    low_high = None if found.interval is None else (POINTS * found.interval[0], POINTS * found.interval[1])
    return Estimate(
        quantity="loss",
        metric=found.metric,
        scope=found.scope,
        value=POINTS * (found.value or 0.0),
        interval=low_high,
        n=found.n,
        draws=tuple(POINTS * change for change in changes),
    )


def _speedup(found: Loss, result: VariantResult, run: Run) -> Estimate:
    looks = max((f.comparison.looks for f in run.findings if f.variant == found.variant), default=1)
    measured = _find(result, "speedup", found.scope)
    return Estimate(
        quantity="speedup",
        metric=found.metric,
        scope=found.scope,
        value=found.value,
        interval=found.interval,
        n=found.n,
        confidence=1 - 2 * spend(ALPHA, looks),
        looks=looks,
        doubt=next((doubt for one in _beside(found, result, run) if (doubt := _contended(one))), ""),
        draws=tuple(math.log(ratio) for ratio in measured.samples if ratio > 0) if measured else (),
    )


def _beside(found: Loss, result: VariantResult, run: Run) -> Iterator[Measurement | None]:
    """What a speed-up is made of."""
    yield _find(result, "speedup", found.scope)
    for side in run.variants:
        if side.variant.reference or side is result:
            yield _find(side, "decode_tok_s", found.scope)


def _why(found: Loss) -> str:
    """The reason that its sentence gives, without the variant, whose line it will stand on."""
    return found.sentence.rpartition("was not measured: ")[2] or "it was not measured in this run"


def _missing(name: Name, run: Run) -> str:
    reference = run.matrix.reference
    measured = reference and any(result.variant.name == reference.name for result in run.variants)
    if not measured and name != "kld":
        return "the reference was not measured in this run"
    return "it was not forced through the reference trace" if name == "kld" else "it was not measured in this run"


# ---------------------------------------------------------------------------------------------- by itself


def _memory(result: VariantResult, policy: Mapping[str, Tolerance]) -> Estimate:
    """Of the accelerator where the variant used any, else of the process."""
    device, process = _find(result, "peak_device_bytes", ALL), _find(result, "peak_rss_bytes", ALL)
    chosen = device if device and device.value else process
    if chosen is None or chosen.value is None:
        why = (chosen.reason if chosen else None) or "it was not measured in this run"
        return Estimate(quantity="memory", metric="peak_rss_bytes", scope=ALL, doubt=why)
    seen = chosen.samples or (chosen.value,)
    most = max(chosen.value, *seen)
    tolerance = tolerance_for(policy, chosen.metric, ALL)
    return Estimate(
        quantity="memory",
        metric=chosen.metric,
        scope=ALL,
        value=most,
        interval=(min(seen), most),
        n=len(set(chosen.launches)) or len(seen),
        slack=max(tolerance.relative * most, tolerance.absolute) / 2,
    )


def _rate(name: Name, result: VariantResult, scenario: str | None) -> Estimate:
    measured = _find(result, _METRICS[name], scenario or ALL)
    if measured is None or measured.value is None:
        return _unknown(name, scenario, (measured.reason if measured else None) or "it was not timed in this run")
    logs = [math.log(value) for value in launch_values(measured).values() if value > 0]
    estimate = session_mean(logs)
    low, high = interval_of(estimate) if estimate else (0.0, 0.0)
    return Estimate(
        quantity=name,
        metric=measured.metric,
        scope=measured.scope,
        value=_middle(logs, measured.value),
        interval=(math.exp(low), math.exp(high)) if estimate else None,
        n=len(logs),
        doubt=_contended(measured),
        draws=tuple(logs),
        session_sd=SESSION_SD,
    )


def _middle(logs: Sequence[float], otherwise: float) -> float:
    """The centre of the interval: the geometric mean over launches, where a report shows their median."""
    return math.exp(math.fsum(logs) / len(logs)) if logs else otherwise


def _find(result: VariantResult, metric: str, scope: str) -> Measurement | None:
    return next((m for m in result.measurements if (m.metric, m.scope) == (metric, scope)), None)


def _contended(measured: Measurement | None) -> str:
    if measured is None or measured.status != "contended":
        return ""
    return f"the machine was not ours: {measured.reason or 'no clean sample'}"
