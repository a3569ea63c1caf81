"""`run.json`: everything about one run, laid out for users (``.github/RUN_JSON.md``) and complete enough to read back.

The file is flatter than the records, and repeats what can be derived, so that a user needs no code of ours: rates
beside the times, formula and unit beside each metric. Reading ignores what is derived.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.atomic import write_text
from suite.errors import StoreError
from suite.records import (
    SCHEMA_VERSION,
    Finding,
    Generation,
    Launch,
    Measurement,
    MetricSpec,
    Run,
    SpeedSample,
    Trial,
    VariantResult,
)
from suite.schema import dump, parse
from suite.store import codec
from suite.store.layout import RUN_FILE

KIND = "run"
RENEW = "pytest --model-matrix"
"""The command that makes a new one."""

Plain = dict[str, Any]

_GENERATION = tuple(field.name for field in dataclasses.fields(Generation))
_SAMPLE = tuple(field.name for field in dataclasses.fields(SpeedSample))
_SCORE_KEYS = {
    "status": "status",
    "score": "value",
    "correct": "correct",
    "answer": "answer",
    "rule": "rule",
    "explanation": "explanation",
}
"""Key of a trial in the file → field of `Score`."""
_TRIAL_KEYS = tuple(f.name for f in dataclasses.fields(Trial) if f.name not in ("score", "generation"))


def write_run(run: Run, directory: Path, *, specs: Mapping[str, MetricSpec]) -> Path:
    """Write ``run.json`` into `directory`, atomically, and return its path.

    `specs` gives unit, direction and formula of each metric; a metric without one is written with nulls. Raises
    StoreError for a number that is not finite, for two measurements of one metric and scope, and for a full disk.
    """
    file = directory / RUN_FILE
    write_text(file, codec.to_json(encode_run(run, specs), where=str(file)))
    return file


def read_run(file: Path) -> Run:
    """Read a ``run.json``. Raises StoreError naming the file and key when it is damaged, too old or too new."""
    return decode_run(codec.read_document(file, kind=KIND, renew=RENEW), where=str(file))


def decode_run(document: Plain, *, where: str) -> Run:
    """The run in a document of the present schema. Raises StoreError naming the key that is wrong."""
    try:
        plain = _decode_run(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"{where}: not laid out as a run: {type(error).__name__}: {error}") from error
    return parse(Run, plain, where=where, error=StoreError)


def encode_run(run: Run, specs: Mapping[str, MetricSpec]) -> Plain:
    """Turn the run into the plain data of ``run.json``."""
    return {
        "schema": SCHEMA_VERSION,
        "kind": KIND,
        "id": run.id,
        "created": run.created,
        "suite_version": run.suite_version,
        "model": run.model,
        "matrix": dump(run.matrix),
        "environment": dump(run.environment),
        "settings": dict(run.settings),
        "variants": [_encode_variant(result, specs) for result in run.variants],
        "against": [_encode_variant(result, specs) for result in run.against],
        "findings": [_encode_finding(finding) for finding in run.findings],
        "losses": [dump(loss) for loss in run.losses],
        "creep": [_encode_finding(finding) for finding in run.creep],
        "trials": [_encode_trial(trial) for trial in run.trials],
        "speed_samples": [_encode_sample(sample) for sample in run.speed_samples],
        "forced": [dump(forced) for forced in run.forced],
    }


def _decode_run(document: Plain) -> Plain:
    kept = ("id", "created", "suite_version", "model", "matrix", "environment", "settings")
    return {
        **{key: document[key] for key in kept if key in document},
        "variants": [_decode_variant(row) for row in document["variants"]],
        "against": [_decode_variant(row) for row in document.get("against", [])],
        "findings": [_decode_finding(row) for row in document["findings"]],
        "losses": list(document.get("losses", [])),
        "creep": [_decode_finding(row) for row in document.get("creep", [])],
        "trials": [_decode_trial(row) for row in document["trials"]],
        "speed_samples": [_pick(row, _SAMPLE) for row in document["speed_samples"]],
        "forced": list(document.get("forced", [])),
    }


# ---------------------------------------------------------------------------------------------- variants


def _encode_variant(result: VariantResult, specs: Mapping[str, MetricSpec]) -> Plain:
    return {
        "name": result.variant.name,
        "variant": dump(result.variant),
        "artifact": None if result.artifact is None else dump(result.artifact),
        "identity": dict(result.identity),
        "suspects": dict(result.suspects),
        "failure": None if result.failure is None else dump(result.failure),
        "metrics": _encode_metrics(result, specs),
        "launches": [_encode_launch(launch) for launch in result.launches],
    }


def _decode_variant(row: Plain) -> Plain:
    kept = ("variant", "artifact", "identity", "suspects", "failure", "launches")
    measurements = [
        {"metric": metric, "scope": scope, **found}
        for metric, entry in row["metrics"].items()
        for scope, found in entry["scopes"].items()
    ]
    return {**_pick(row, kept), "measurements": measurements}


def _encode_launch(launch: Launch) -> Plain:
    plain: Plain = dump(launch)
    return plain


def _encode_metrics(result: VariantResult, specs: Mapping[str, MetricSpec]) -> Plain:
    by_metric: dict[str, dict[str, Measurement]] = {}
    for found in result.measurements:
        scopes = by_metric.setdefault(found.metric, {})
        if found.scope in scopes:
            raise StoreError(f"variant {result.variant.name!r}: {found.metric}/{found.scope} was measured twice")
        scopes[found.scope] = found
    return {metric: _encode_metric(specs.get(metric), scopes) for metric, scopes in by_metric.items()}


def _encode_metric(spec: MetricSpec | None, scopes: Mapping[str, Measurement]) -> Plain:
    primary = scopes.get("all", next(iter(scopes.values())))
    plain = {
        scope: _pick(dump(found), ("value", "samples", "launches", "status", "reason"))
        for scope, found in scopes.items()
    }
    return {
        "unit": spec.unit if spec else None,
        "direction": spec.direction.value if spec else None,
        "formula": spec.formula if spec else None,
        "scope": primary.scope,
        **_pick(plain[primary.scope], ("value", "samples", "status", "reason")),
        "scopes": plain,
    }


# ---------------------------------------------------------------------------------------------- trials and samples


def _encode_trial(trial: Trial) -> Plain:
    score, generation = dump(trial.score), trial.generation
    return {
        **_pick(dump(trial), _TRIAL_KEYS),
        **{key: score[name] for key, name in _SCORE_KEYS.items()},
        **(dump(generation) if generation else dict.fromkeys(_GENERATION)),
        **_derived_of(generation),
    }


def _decode_trial(row: Plain) -> Plain:
    generation = _pick(row, _GENERATION)
    return {
        **_pick(row, _TRIAL_KEYS),
        "score": {name: row[key] for key, name in _SCORE_KEYS.items() if key in row},
        "generation": None if all(value is None for value in generation.values()) else generation,
    }


def _derived_of(generation: Generation | None) -> Plain:
    if generation is None:
        return {"new_tokens": None, **_rates(None, 0, (), None)}
    return {
        "new_tokens": len(generation.token_ids),
        **_rates(generation.prefill_s, generation.evaluated_tokens, generation.itl_s, generation.ttft_s),
    }


def _encode_sample(sample: SpeedSample) -> Plain:
    rates = _rates(sample.prefill_s, sample.evaluated_tokens, sample.itl_s, sample.ttft_s)
    rates["decode_tok_s"] = _ratio(sample.batch * len(sample.itl_s), math.fsum(sample.itl_s))
    return {**dump(sample), **{key: value for key, value in rates.items() if key not in _SAMPLE}}


def _rates(prefill_s: float | None, evaluated: int, itl_s: Sequence[float], ttft_s: float | None) -> Plain:
    """Derive rates from the times of one generation or sample; None where it is not defined."""
    elapsed = math.fsum(itl_s)
    return {
        "ttft_s": ttft_s,
        "prefill_tok_s": _ratio(evaluated, prefill_s),
        "itl_s": list(itl_s),
        "decode_tok_s": _ratio(len(itl_s), elapsed),
        "tpot_s": _ratio(elapsed, len(itl_s)),
    }


def _ratio(numerator: float, denominator: float | None) -> float | None:
    if denominator is None or denominator <= 0:
        return None
    value = numerator / denominator
    return value if math.isfinite(value) else None


# ---------------------------------------------------------------------------------------------- findings


def _encode_finding(finding: Finding) -> Plain:
    comparison = finding.comparison
    return {
        "variant": finding.variant,
        "metric": finding.metric,
        "scope": finding.scope,
        "verdict": finding.verdict.value,
        "gate": finding.gate.value,
        "tier": comparison.tier.value,
        "estimate": comparison.drift,
        "interval": None if comparison.interval is None else list(comparison.interval),
        "tolerance": None if finding.tolerance is None else dump(finding.tolerance),
        "mde": comparison.mde,
        "reason": finding.sentence,
        "next_step": finding.next_step,
        "p_value": finding.p_value,
        "p_needed": finding.p_needed,
        "family": finding.family,
        "comparison": dump(comparison),
    }


def _decode_finding(row: Plain) -> Plain:
    kept = (
        "variant", "metric", "scope", "verdict", "gate", "tolerance", "next_step", "p_value", "p_needed", "family",
        "comparison",
    )  # fmt: skip
    return {**_pick(row, kept), "sentence": row["reason"]}


def _pick(row: Plain, keys: Iterable[str]) -> Plain:
    return {key: row[key] for key in keys if key in row}
