"""From what a run's journals hold to the Run: pure, so that a killed, resumed or distributed run reads the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite.metrics import SPECS, add_speedups, measure
from suite.records import (
    ALL,
    Artifact,
    Aspect,
    Case,
    Environment,
    Finding,
    Launch,
    Matrix,
    Measurement,
    Note,
    ResolvedArtifact,
    Run,
    SpeedSample,
    Trial,
    Variant,
    VariantFailure,
    VariantResult,
)

DECODING: Mapping[str, str] = {
    "sampling": "greedy",
    "temperature": "0",
    "repetition penalty": "none",
    "batch size": "1",
    "KV state": "cleared before each answer",
    "template time": "frozen",
}
"""Decoding parameters: the same for every variant, and all there are."""

RESUMED = "resumed"
"""Text of the note in a journal behind which a later process went on."""


@dataclass(slots=True)
class Ledger:
    """Everything that a run has measured so far."""

    trials: dict[tuple[str, str], Trial] = field(default_factory=dict)
    """By variant and case; a later trial of the same case replaces an earlier one."""
    samples: list[SpeedSample] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    failures: dict[str, VariantFailure] = field(default_factory=dict)
    artifacts: dict[str, ResolvedArtifact] = field(default_factory=dict)
    prompts: dict[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)
    """By variant, metric and scope."""

    def add(self, record: Any) -> None:
        """Enter one record of a journal."""
        match record:
            case Trial():
                self.trials[record.variant, record.case] = record
            case SpeedSample():
                self.samples.append(record)
            case Launch():
                self.launches.append(record)
            case VariantFailure():
                self.failures.setdefault(record.variant, record)
            case ResolvedArtifact():
                self.artifacts[record.variant] = record
            case Finding():
                self.findings[record.variant, record.metric, record.scope] = record
            case _:
                self._add_other(record)

    def _add_other(self, record: Any) -> None:
        if hasattr(record, "ids"):
            self.prompts[record.variant] = record.ids

    def launches_of(self, variant: str) -> int:
        """Number of finished launches."""
        return sum(launch.variant == variant for launch in self.launches)


def drop_superseded(records: Iterable[Any]) -> list[Any]:
    """What still holds of one journal's `records`.

    A run that was resumed measures again what had failed, and every launch that had not finished; it judges anew.
    """
    held: list[Any] = []
    for record in records:
        if isinstance(record, Note) and record.text == RESUMED:
            whole = {(r.variant, r.index) for r in held if isinstance(r, Launch)}
            held = [
                r
                for r in held
                if not isinstance(r, VariantFailure | Finding)
                and (not isinstance(r, SpeedSample) or (r.variant, r.launch) in whole)
            ]
        held.append(record)
    return held


def identity_of(variant: Variant, matrix: Matrix) -> dict[str, str]:
    """What makes it the same question, without the machine. Scenarios are in it one by one: ``scenario.<name>``."""
    identity = {
        "model": variant.model,
        "backend": variant.backend,
        "source": variant.source,
        "quantization": variant.quantization or "none",
        "make": variant.make or "none",
        "prompt format": variant.prompt_format,
        "decoding": json.dumps(DECODING, sort_keys=True),
    }
    for name, value in sorted(variant.options.items()):
        identity[f"option.{name}"] = json.dumps(value, sort_keys=True)
    for scenario in matrix.scenarios:
        identity[f"scenario.{scenario.name}"] = f"{scenario.prompt_tokens} → {scenario.new_tokens} tokens"
    return identity


def suspects_of(artifact: Artifact | None, known: Mapping[str, str], environment: Environment) -> dict[str, str]:
    """What may have changed and be to blame."""
    suspects = dict(environment.suspects) | dict(known)
    if artifact is not None:
        for file in artifact.files:
            suspects[f"sha256 of {_stable_name(file.name)}"] = file.sha256
        if artifact.revision:
            suspects["revision"] = artifact.revision
    return suspects


def _stable_name(name: str) -> str:
    """Files made here are named by the hash of what they were made from; the type at the end is the stable part."""
    head, _, tail = name.partition(".")
    return f"*.{tail}" if len(head) >= 20 and all(c in "0123456789abcdef" for c in head) else name


def keep_complete(
    measurements: Iterable[Measurement], trials: Iterable[Trial], cases: Sequence[Case]
) -> tuple[Measurement, ...]:
    """Leave out quality figures of scopes of which not every case was answered: a part is not the whole."""
    answered = {trial.case for trial in trials}
    missing = {case.domain for case in cases if case.id not in answered}
    partial = missing | ({ALL} if missing else set())
    return tuple(m for m in measurements if m.scope not in partial or SPECS[m.metric].aspect is not Aspect.QUALITY)


def result_of(
    variant: Variant, ledger: Ledger, matrix: Matrix, cases: Sequence[Case], environment: Environment
) -> VariantResult:
    """Everything measured of one variant so far."""
    known_cases = {case.id for case in cases}
    trials = [trial for (name, _), trial in ledger.trials.items() if name == variant.name]
    own = [trial for trial in trials if trial.case in known_cases]
    measurements = measure(variant.name, trials, ledger.samples, ledger.launches)
    resolved = ledger.artifacts.get(variant.name)
    artifact = resolved.artifact if resolved else None
    return VariantResult(
        variant=variant,
        artifact=artifact,
        measurements=keep_complete(measurements, own, cases),
        launches=tuple(launch for launch in ledger.launches if launch.variant == variant.name),
        failure=ledger.failures.get(variant.name),
        identity=identity_of(variant, matrix),
        suspects=suspects_of(artifact, resolved.suspects if resolved else {}, environment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What a run knows about itself from the start."""

    id: str
    created: str
    suite_version: str
    settings: Mapping[str, str]


def assemble(head: RunHead, ledger: Ledger, matrix: Matrix, cases: Sequence[Case], environment: Environment) -> Run:
    """The run, whole."""
    results: Sequence[VariantResult] = [result_of(v, ledger, matrix, cases, environment) for v in matrix.variants]
    if matrix.reference is not None:
        results = add_speedups(results, matrix.reference.name)
    return Run(
        id=head.id,
        created=head.created,
        suite_version=head.suite_version,
        model=matrix.model,
        matrix=matrix,
        environment=environment,
        variants=tuple(results),
        trials=tuple(ledger.trials.values()),
        speed_samples=tuple(ledger.samples),
        settings=dict(DECODING) | dict(head.settings),
        findings=tuple(ledger.findings.values()),
    )


def describe_loaded(artifact: Artifact | None, footprint: int | None) -> Artifact | None:
    """The artifact of weights that were quantized while they were loaded: size and bits per weight as held in memory."""
    if artifact is None or footprint is None:
        return artifact
    return dataclasses.replace(
        artifact,
        size_bytes=footprint,
        bpw=8 * footprint / artifact.parameters if artifact.parameters else None,
        derived_from=f"quantized while loading, from {artifact.derived_from or 'the files below'}",
    )
