"""From what a run's journals hold to the Run: pure, so that a killed, resumed or distributed run reads the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suite.engine.coverage import keep_complete, keep_covered
from suite.metrics import add_speedups, measure
from suite.records import (
    Artifact,
    Case,
    Demand,
    Environment,
    Finding,
    Forced,
    Launch,
    Matrix,
    Note,
    ResolvedArtifact,
    Run,
    SpeedSample,
    Traced,
    Trial,
    TrialStatus,
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

VOIDED = "voided"
"""Text of the note behind which nothing counts that was measured of a variant before: its weights or libraries changed."""


LOOK = "look"
"""Text of the note that a variant's speed was judged: with each further look at the same data, a level is spent."""

GROUPS = "in memory together"
"""Text of the note that tells which variants were in memory at once, where not all were; and its key in the run's settings."""

TRACE_OF = "reference trace"
"""Key among a run's settings: the reference of the stored trace."""

DROPPED = "cache dropped"
"""Text of the note that a variant's cached answers were given up, since a control differed; and its key in the settings."""

PART = "cases"
"""Key among a run's settings: ``3 of 77`` where only a part of the cases was answered."""

LONE = "lone launch"
"""Text of the note that a launch does not count, since the other side of the duet lacks it."""

CONTROL = "@control"
"""What follows a variant's name in the trials of its determinism control, under another number of threads."""

AGAIN = "@again"
"""The same of the control under the same number of threads."""

CONTROLS = (CONTROL, AGAIN)

OLD = "@old"
"""What follows a variant's name in that of its old side."""


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
    looks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Variant → how often its speed was judged, and the number of launches at the last time."""
    forced: dict[tuple[str, str, str], Forced] = field(default_factory=dict)
    """By variant, case and path."""
    traced: dict[str, Traced] = field(default_factory=dict)
    """Case → what the reference answered, as far as this run wrote it down."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Variant → why its cached answers were given up."""
    groups: list[str] = field(default_factory=list)
    """Which variants were in memory at once, where not all were."""

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
            case Forced():
                self.forced[record.variant, record.case, record.path] = record
            case Traced():
                self.traced[record.traced.case] = record
            case _:
                self._add_other(record)

    def _add_other(self, record: Any) -> None:
        if hasattr(record, "ids"):
            self.prompts[record.variant] = record.ids
        elif isinstance(record, Note) and record.text == LOOK:
            variant = record.data["variant"]
            self.looks[variant] = self.looks_of(variant) + 1, int(record.data.get("launches", 0))
        elif isinstance(record, Note) and record.text == GROUPS:
            self.groups.append(record.data[GROUPS])
        elif isinstance(record, Note) and record.text == DROPPED:
            self.dropped[record.data["variant"]] = record.data["reason"]
        elif isinstance(record, Note) and record.text == LONE:
            self._drop_launch(record.data["variant"], int(record.data["launch"]))

    def _drop_launch(self, variant: str, index: int) -> None:
        """Forget one launch; what was looked at holds one less, so that its repetition is news."""
        self.samples = [sample for sample in self.samples if (sample.variant, sample.launch) != (variant, index)]
        self.launches = [launch for launch in self.launches if (launch.variant, launch.index) != (variant, index)]
        if variant in self.looks:
            count, seen = self.looks[variant]
            self.looks[variant] = count, min(seen, self.launches_of(variant))

    def void(self, variant: str) -> None:
        """Forget everything about one variant."""
        self.trials = {key: trial for key, trial in self.trials.items() if key[0] not in _with_controls(variant)}
        self.findings = {key: finding for key, finding in self.findings.items() if key[0] != variant}
        self.forced = {key: forced for key, forced in self.forced.items() if key[0] != variant}
        self.traced = {case: traced for case, traced in self.traced.items() if traced.variant != variant}
        self.samples = [sample for sample in self.samples if sample.variant != variant]
        self.launches = [launch for launch in self.launches if launch.variant != variant]
        for of_variants in (self.failures, self.artifacts, self.prompts, self.looks):
            of_variants.pop(variant, None)

    def launches_of(self, variant: str) -> int:
        """Number of finished launches."""
        return sum(launch.variant == variant for launch in self.launches)

    def next_launch_of(self, variant: str) -> int:
        """The index of the launch that comes next."""
        return max((launch.index + 1 for launch in self.launches if launch.variant == variant), default=0)

    def looks_of(self, variant: str) -> int:
        """How often the speed of a variant has been judged on its data so far."""
        return self.looks.get(variant, (0, 0))[0]

    def is_newer_than_its_looks(self, variant: str) -> bool:
        """Whether it got launches since it was last judged: judging once more then is another look."""
        return self.launches_of(variant) > self.looks.get(variant, (0, 0))[1]

    def trials_of(self, variant: str) -> tuple[Trial, ...]:
        """The trials of one variant."""
        return tuple(trial for (name, _), trial in self.trials.items() if name == variant)

    def forced_of(self, variant: str) -> tuple[Forced, ...]:
        """What one variant made of the reference trace."""
        return tuple(forced for (name, _, _), forced in self.forced.items() if name == variant)

    def samples_of(self, variant: str) -> tuple[SpeedSample, ...]:
        """The samples of one variant's finished launches."""
        return tuple(s for s in keep_finished(self.samples, self.launches) if s.variant == variant)


def drop_superseded(records: Iterable[Any]) -> list[Any]:
    """What still holds of one journal's `records`.

    A run that was resumed measures again what had failed, and every launch that had not finished. What it judges anew
    takes the place of what was found before.
    """
    held: list[Any] = []
    for record in records:
        if _is_resumption(record):
            whole = {(r.variant, r.index) for r in held if isinstance(r, Launch)}
            held = [r for r in held if _outlives_resuming(r, whole)]
        elif (voided := _voided_by(record)) is not None:
            held = [r for r in held if not _concerns(r, voided)]
        elif isinstance(record, Note) and record.text == LONE:
            lone = record.data["variant"], int(record.data["launch"])
            held = [r for r in held if _launch_of(r) != lone]
        held.append(record)
    return held


def join_journals(journals: Iterable[Iterable[Any]]) -> Ledger:
    """What the journals of a run hold together, each of which another process may have written.

    What one process voided counts no more in the journals of the others, as far as they were written before the run was
    last resumed.
    """
    kept = [drop_superseded(records) for records in journals]
    voided = [{v for record in records if (v := _voided_by(record)) is not None} for records in kept]
    ledger = Ledger()
    for at, records in enumerate(kept):
        by_others = {variant for other, variants in enumerate(voided) if other != at for variant in variants}
        last = max((i for i, record in enumerate(records) if _is_resumption(record)), default=0)
        for index, record in enumerate(records):
            if index > last or not any(_concerns(record, variant) for variant in by_others):
                ledger.add(record)
    return ledger


def _launch_of(record: Any) -> tuple[str, int] | None:
    """The launch that a record is of, if it is of one."""
    match record:
        case Launch():
            return record.variant, record.index
        case SpeedSample():
            return record.variant, record.launch
        case _:
            return None


def _is_resumption(record: Any) -> bool:
    return isinstance(record, Note) and record.text == RESUMED


def _voided_by(record: Any) -> str | None:
    return record.data.get("variant") if isinstance(record, Note) and record.text == VOIDED else None


def _concerns(record: Any, variant: str) -> bool:
    """Whether a record is about `variant`: its controls and its looks are."""
    if isinstance(record, Note):
        return record.text in (LOOK, LONE) and record.data.get("variant") == variant
    return getattr(record, "variant", None) in _with_controls(variant)


def _with_controls(variant: str) -> tuple[str, ...]:
    return (variant, *(variant + control for control in CONTROLS))


def _outlives_resuming(record: Any, finished: Collection[tuple[str, int]]) -> bool:
    match record:
        case VariantFailure():
            return False
        case Trial():
            return record.score.status is not TrialStatus.ERROR
        case SpeedSample():
            return (record.variant, record.launch) in finished
        case _:
            return True


def keep_finished(samples: Iterable[SpeedSample], launches: Iterable[Launch]) -> tuple[SpeedSample, ...]:
    """The samples of launches that were finished: a launch that broke off half-way was not measured as the others were."""
    finished = {(launch.variant, launch.index) for launch in launches}
    return tuple(sample for sample in samples if (sample.variant, sample.launch) in finished)


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
        identity[f"scenario.{scenario.name}"] = scenario.described
    return identity


def suspects_of(artifact: Artifact | None, known: Mapping[str, str], environment: Environment) -> dict[str, str]:
    """What may have changed and be to blame."""
    suspects = dict(environment.suspects) | dict(known)
    if artifact is not None:
        for file in artifact.files:
            suspects[f"sha256 of {stable_name(file.name)}"] = file.sha256
        if artifact.revision:
            suspects["revision"] = artifact.revision
    return suspects


def stable_name(name: str) -> str:
    """Files made here are named by the hash of what they were made from; the type at the end is the stable part."""
    head, _, tail = name.partition(".")
    return f"*.{tail}" if len(head) >= 20 and all(c in "0123456789abcdef" for c in head) else name


def result_of(
    variant: Variant, ledger: Ledger, matrix: Matrix, cases: Sequence[Case], environment: Environment
) -> VariantResult:
    """Everything measured of one variant so far."""
    known_cases = {case.id for case in cases}
    trials = ledger.trials_of(variant.name)
    own = [trial for trial in trials if trial.case in known_cases]
    resolved = ledger.artifacts.get(variant.name)
    artifact = resolved.artifact if resolved else None
    samples = keep_finished(ledger.samples, ledger.launches)
    demand = artifact.demand if artifact else None
    measurements = measure(variant.name, trials, samples, ledger.launches, demand=demand, scenarios=matrix.scenarios)
    return VariantResult(
        variant=variant,
        artifact=artifact,
        measurements=(*keep_complete(measurements, own, cases), *keep_covered(ledger.forced_of(variant.name), cases)),
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


def assemble(
    head: RunHead,
    ledger: Ledger,
    matrix: Matrix,
    cases: Sequence[Case],
    environment: Environment,
    shadows: Sequence[Variant] = (),
) -> Run:
    """The run, whole. `shadows` are the old sides of a duet."""
    results: Sequence[VariantResult] = [result_of(v, ledger, matrix, cases, environment) for v in matrix.variants]
    against = tuple(result_of(v, ledger, matrix, cases, environment) for v in shadows)
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
        trials=tuple(trial for trial in ledger.trials.values() if not trial.variant.endswith(CONTROLS)),
        speed_samples=tuple(ledger.samples),
        forced=tuple(ledger.forced.values()),
        settings={**DECODING, **head.settings, **_told(ledger), **_part(ledger, cases)},
        findings=tuple(ledger.findings.values()),
        against=against,
    )


def _part(ledger: Ledger, cases: Sequence[Case]) -> dict[str, str]:
    """How many of the cases were answered, where some were and not all."""
    answered = {case.id for case in cases} & {trial.case for trial in ledger.trials.values()}
    return {PART: f"{len(answered)} of {len(cases)}"} if 0 < len(answered) < len(cases) else {}


def _told(ledger: Ledger) -> dict[str, str]:
    """What happened on the way that readers of the run must know."""
    dropped = "; ".join(f"{variant}: {reason}" for variant, reason in ledger.dropped.items())
    found = {GROUPS: "; ".join(ledger.groups), DROPPED: dropped}
    return {name: text for name, text in found.items() if text}


def describe_loaded(artifact: Artifact | None, footprint: int | None, demand: Demand | None = None) -> Artifact | None:
    """The artifact of weights that were quantized while they were loaded: size and bits per weight as held in memory."""
    if artifact is not None and demand is not None:
        artifact = dataclasses.replace(artifact, demand=demand)
    if artifact is None or footprint is None:
        return artifact
    return dataclasses.replace(
        artifact,
        size_bytes=footprint,
        bpw=8 * footprint / artifact.parameters if artifact.parameters else None,
        derived_from=f"quantized while loading, from {artifact.derived_from or 'the files below'}",
    )
