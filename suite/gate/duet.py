"""Old and new measured side by side in one run: the sharpest comparison there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suite.gate.answers import answer_of
from suite.gate.differences import describe_changes, quality_identity, quality_suspects, speed_suspects
from suite.metrics.catalog import SPECS
from suite.metrics.speed import launch_values
from suite.records import (
    Aspect,
    BaselineMetric,
    Environment,
    Forced,
    Provenance,
    QualityBaseline,
    SpeedSample,
    Trial,
    TrialStatus,
    VariantResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSide:
    """The old side of a duet: what was measured of it in this run."""

    result: VariantResult
    samples: tuple[SpeedSample, ...] = ()
    trials: tuple[Trial, ...] = ()
    forced: tuple[Forced, ...] = ()
    """What it made of the reference trace."""
    described: str = "the old side"
    """What it is, for people: ``../old/bin/python`` or a file."""


def quality_beside(new: VariantResult, old: OldSide, environment: Environment) -> QualityBaseline:
    """The old side's answers in the form of a baseline, so that both are compared by the same rule."""
    trials = [trial for trial in old.trials if trial.score.status is not TrialStatus.ERROR]
    return QualityBaseline(
        model=new.variant.model,
        variant=new.variant.name,
        identity=quality_identity(new),  # by construction the same question
        suspects=quality_suspects(old.result, environment),
        provenance=Provenance(accepted="", reason=old.described, run=""),
        metrics=_metrics(old.result, {Aspect.QUALITY}),
        cases={trial.case: answer_of(trial) for trial in trials},
    )


def values_beside(old: OldSide) -> Mapping[str, BaselineMetric]:
    """Speed and memory of the old side by ``metric/scope``."""
    return _metrics(old.result, {Aspect.SPEED, Aspect.MEMORY})


def suspects_beside(new: VariantResult, old: OldSide, environment: Environment) -> tuple[str, ...]:
    """What differs between the two sides: what is to be blamed."""
    return describe_changes(speed_suspects(old.result, environment), speed_suspects(new, environment))


def describe_beside(old: OldSide) -> str:
    """What the comparison was made with."""
    return f"measured beside {old.described}"


def _metrics(result: VariantResult, aspects: set[Aspect]) -> dict[str, BaselineMetric]:
    return {
        f"{m.metric}/{m.scope}": BaselineMetric(
            value=m.value, unit=SPECS[m.metric].unit, launches=tuple(launch_values(m).values())
        )
        for m in result.measurements
        if m.metric in SPECS and SPECS[m.metric].aspect in aspects and m.value is not None
    }
