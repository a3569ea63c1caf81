"""Properties of the items in a JUnit file, so that a dashboard can read numbers without parsing messages."""

from __future__ import annotations

from collections.abc import Sequence

from suite.metrics.catalog import SPECS
from suite.records import Finding, Loss, Trial, VariantFailure
from suite.reporting.hostile import one_line, plain

Properties = list[tuple[str, str]]
_ANSWER = 200


def case_properties(trial: Trial) -> Properties:
    """Properties of a case item: how the answer was graded and how long it took. Absent numbers are left out."""
    score, generation = trial.score, trial.generation
    properties: list[tuple[str, object]] = [
        ("variant", trial.variant),
        ("case", trial.case),
        ("case_version", trial.case_version),
        ("domain", trial.domain),
        ("scorer", trial.scorer),
        ("status", score.status),
        ("score", score.value),
        ("correct", score.correct),
        ("answer", None if score.answer is None else one_line(score.answer, _ANSWER)),
        ("rule", score.rule),
        ("error", trial.error),
    ]
    if generation is not None:
        properties += [
            ("prompt_tokens", generation.prompt_tokens),
            ("evaluated_tokens", generation.evaluated_tokens),
            ("output_tokens", len(generation.token_ids)),
            ("finish_reason", generation.finish_reason),
            ("ttft_s", generation.ttft_s),
            ("decode_tok_s", generation.decode_tok_s),
        ]
    return _written(properties)


def gate_properties(findings: Sequence[Finding], scope: str) -> Properties:
    """Properties of a gate item: verdicts and the numbers behind them. Absent numbers are left out.

    The finding of the gate's own `scope` has plain names. Each further one, of a single case that could not be paired, has
    its scope behind them (``quantdrift.verdict[math/apples]``), so that no name comes twice.
    """
    own = next((finding for finding in findings if finding.scope == scope), findings[0] if findings else None)
    return [
        (name if finding is own else f"{name}[{plain(finding.scope)}]", value)
        for finding in findings
        for name, value in _finding_properties(finding)
    ]


def _finding_properties(finding: Finding) -> Properties:
    comparison = finding.comparison
    low, high = comparison.interval or (None, None)
    limit, spec = finding.tolerance, SPECS.get(finding.metric)
    return _written(
        [
            ("variant", finding.variant),
            ("metric", finding.metric),
            ("scope", finding.scope),
            ("unit", spec.unit if spec else None),
            ("direction", spec.direction if spec else None),
            ("aspect", comparison.aspect),
            ("verdict", finding.verdict),
            ("gate", finding.gate),
            ("tier", comparison.tier),
            ("observed", comparison.observed),
            ("baseline", comparison.baseline),
            ("drift", comparison.drift),
            ("drift_low", low),
            ("drift_high", high),
            ("mde", comparison.mde),
            ("p_value", finding.p_value),
            ("p_needed", finding.p_needed),
            ("family", finding.family or None),
            ("flags", "; ".join(comparison.flags) or None),
            ("tolerance_relative", limit.relative if limit else None),
            ("tolerance_absolute", limit.absolute if limit else None),
            ("tolerance_duet", limit.duet if limit else None),
            ("n", comparison.n),
            ("n_baseline", comparison.n_baseline or None),
            ("flips", len(comparison.flips) or None),
            ("suspects", "; ".join(comparison.suspects) or None),
            ("sentence", finding.sentence),
            ("next_step", finding.next_step or None),
        ]
    )


def budget_properties(loss: Loss) -> Properties:
    """Properties of a budget item: what the variant costs against the reference. Absent numbers are left out."""
    low, high = loss.interval or (None, None)
    return _written(
        [
            ("variant", loss.variant),
            ("metric", loss.metric),
            ("scope", loss.scope),
            ("answer", loss.answer),
            ("gate", loss.budget.gate if loss.budget else None),
            ("limit", loss.budget.limit if loss.budget else None),
            ("loss", loss.value),
            ("loss_low", low),
            ("loss_high", high),
            ("mde", loss.mde),
            ("n", loss.n),
            ("sentence", loss.sentence or None),
        ]
    )


def failure_properties(failure: VariantFailure) -> Properties:
    """Properties of any item of a variant that failed as a whole: it has no numbers, and its verdict must not be missing."""
    return _written([("variant", failure.variant), ("verdict", failure.verdict), ("reason", failure.reason)])


def _written(properties: list[tuple[str, object]]) -> Properties:
    return [(f"quantdrift.{name}", _text(value)) for name, value in properties if value is not None]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return plain(str(value))
