"""Say what a run did not measure, or only while the machine was busy, and that no finding speaks of."""

from __future__ import annotations

from collections.abc import Mapping

from suite.metrics.speed import TAILS
from suite.records import Aspect, Finding, Measurement, Run, Verdict
from suite.reporting.wording import listed, metric_name

_CONTENDED = "no clean sample"
_SPEED = frozenset({"prefill_tok_s", "decode_tok_s"})


MOST_CONTENDED = 3
"""Scenarios without a clean sample that are told one by one; more of them are one busy machine."""


def unmeasured(run: Run) -> tuple[str, ...]:
    """One sentence for each reason, naming the metrics, and the variants where it is not all of them."""
    spoken = {(f.variant, f.metric, f.scope) for f in run.findings if _speaks(f)}
    reasons = {(f.variant, f.scope, f.comparison.reason) for f in run.findings if _speaks(f)}
    failed = {result.variant.name for result in run.variants if result.failure}
    found: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    contended: dict[tuple[str, str], str] = {}
    for result in run.variants:
        name = result.variant.name
        for measurement in result.measurements:
            if _told(measurement, name, spoken) or name in failed or _is_absent(measurement, run):
                continue
            if (name, measurement.scope, measurement.reason) in reasons:
                continue
            if measurement.status == "contended":
                contended[name, measurement.scope] = measurement.reason or "no reason given"
            metrics, variants = found.setdefault(_reason(measurement), ({}, {}))
            metrics[metric_name(measurement.metric)] = None
            variants[name] = None
    if len(contended) > MOST_CONTENDED:
        found = {reason: who for reason, who in found.items() if reason[0] != _CONTENDED}
    sentences = [_sentence(reason, *who, len(run.variants)) for reason, who in found.items()]
    return (*_whole_legs(run), *sentences, *_busy(contended))


def _busy(contended: Mapping[tuple[str, str], str]) -> list[str]:
    """One sentence where one after the other would say the same of the same machine."""
    if len(contended) <= MOST_CONTENDED:
        return []
    variants, scopes = (listed(list(dict.fromkeys(names))) for names in zip(*contended, strict=True))
    (_, scope), reason = next(iter(contended.items()))
    return [f"{_CONTENDED}: {variants} in {scopes}; in {scope}, for one: {reason}"]


def _speaks(finding: Finding) -> bool:
    return finding.verdict in (Verdict.NOT_MEASURED, Verdict.INCONCLUSIVE)


def _told(measurement: Measurement, variant: str, spoken: set[tuple[str, str, str]]) -> bool:
    return measurement.status == "measured" or (variant, measurement.metric, measurement.scope) in spoken


def _is_absent(measurement: Measurement, run: Run) -> bool:
    """The memory of an accelerator, on a machine without one, and percentiles of a few gaps: there is nothing to be missed."""
    absent = measurement.metric == "peak_device_bytes" and run.environment.identity.get("device") == "cpu"
    return absent or measurement.metric in TAILS


def _reason(measurement: Measurement) -> tuple[str, str]:
    label = _CONTENDED if measurement.status == "contended" else "not measured"
    return label, measurement.reason or "no reason given"


def _whole_legs(run: Run) -> list[str]:
    """The two legs of a run, where one was not run at all."""
    sentences = []
    spoken = {finding.comparison.aspect for finding in run.findings if finding.verdict is Verdict.NOT_MEASURED}
    if not run.trials and Aspect.QUALITY not in spoken:
        sentences.append("not measured: quality: no case was answered in this run")
    timed = any(m.metric in _SPEED for result in run.variants for m in result.measurements)
    if not timed and Aspect.SPEED not in spoken:
        sentences.append("not measured: speed: no scenario was timed in this run")
    return sentences


def _sentence(reason: tuple[str, str], metrics: dict[str, None], variants: dict[str, None], total: int) -> str:
    label, why = reason
    what = listed(list(metrics))
    if len(variants) == total:
        return f"{label}: {what}: {why}"
    return f"{label}: {what} of {listed(list(variants))}: {why}"
