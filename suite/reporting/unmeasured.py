"""Say what a run did not measure, or only while the machine was busy, and that no finding speaks of."""

from __future__ import annotations

from suite.metrics.speed import TAILS
from suite.records import Aspect, Finding, Measurement, Run, Verdict
from suite.reporting.wording import listed, metric_name

_SPEED = frozenset({"prefill_tok_s", "decode_tok_s"})


def unmeasured(run: Run) -> tuple[str, ...]:
    """One sentence for each reason, naming the metrics, and the variants where it is not all of them."""
    spoken = {(f.variant, f.metric, f.scope) for f in run.findings if _speaks(f)}
    failed = {result.variant.name for result in run.variants if result.failure}
    found: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for result in run.variants:
        name = result.variant.name
        for measurement in result.measurements:
            if _told(measurement, name, spoken) or name in failed or _is_absent(measurement, run):
                continue
            metrics, variants = found.setdefault(_reason(measurement), ({}, {}))
            metrics[metric_name(measurement.metric)] = None
            variants[name] = None
    return (*_whole_legs(run), *(_sentence(reason, *who, len(run.variants)) for reason, who in found.items()))


def _speaks(finding: Finding) -> bool:
    return finding.verdict in (Verdict.NOT_MEASURED, Verdict.INCONCLUSIVE)


def _told(measurement: Measurement, variant: str, spoken: set[tuple[str, str, str]]) -> bool:
    return measurement.status == "measured" or (variant, measurement.metric, measurement.scope) in spoken


def _is_absent(measurement: Measurement, run: Run) -> bool:
    """The memory of an accelerator, on a machine without one, and percentiles of a few gaps: there is nothing to be missed."""
    absent = measurement.metric == "peak_device_bytes" and run.environment.identity.get("device") == "cpu"
    return absent or measurement.metric in TAILS


def _reason(measurement: Measurement) -> tuple[str, str]:
    label = "no clean sample" if measurement.status == "contended" else "not measured"
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
