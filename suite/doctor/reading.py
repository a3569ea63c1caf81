"""What rules read of a run: facts that backends told, timed samples, answers with times. Absent is None, or empty."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from statistics import median

from suite.records import Measurement, Run, SampleStatus, SpeedSample, Trial, VariantResult

_DIGITS = 18
"""Most digits of a count: a stranger's file may hold anything."""


def facts_of(result: VariantResult) -> Mapping[str, str]:
    """What the backend told when it had loaded, and in the last launch; names as in `suite.backends.base.LoadedModel`."""
    return {**result.suspects, **(result.launches[-1].facts if result.launches else {})}


def seen_in(result: VariantResult) -> Mapping[str, str]:
    """What the worker of the last launch saw while it worked."""
    return result.launches[-1].seen if result.launches else {}


def number(facts: Mapping[str, float | str] | Mapping[str, str], name: str) -> float | None:
    """A fact that is a number; None where it is absent or none."""
    value = facts.get(name)
    try:
        told = None if value is None else float(value)
    except ValueError:
        return None
    return told if told is not None and math.isfinite(told) else None


def shares(fact: str | None) -> dict[str, int]:
    """``float16=134515008 float32=576`` → numbers by name; empty for anything else."""
    pairs = (part.rpartition("=") for part in (fact or "").split())
    return {
        name: int(count)
        for name, _, count in pairs
        if name and count.isascii() and count.isdigit() and len(count) <= _DIGITS
    }


def is_on_gpu(result: VariantResult) -> bool:
    """Whether the variant says that it runs on an accelerator."""
    facts = facts_of(result)
    offloaded = re.match(r"(\d{1,18}) of", facts.get("layers offloaded", ""))
    return not facts.get("device", "cpu").startswith("cpu") or bool(offloaded and int(offloaded[1]))


def has_gpu(run: Run) -> bool:
    """Whether the machine has an accelerator that we can see."""
    return run.environment.identity.get("device", "cpu") != "cpu"


def samples_of(run: Run, result: VariantResult, *, clean: bool = True) -> list[SpeedSample]:
    """Its timed samples; the clean ones, unless all are wanted."""
    own = [sample for sample in run.speed_samples if sample.variant == result.variant.name]
    return [sample for sample in own if sample.status is SampleStatus.CLEAN] if clean else own


def trials_of(run: Run, result: VariantResult) -> list[Trial]:
    """Its answers, those that were lost left out."""
    return [trial for trial in run.trials if trial.variant == result.variant.name and trial.generation is not None]


def measured(result: VariantResult, metric: str, scope: str) -> Measurement | None:
    """A quantity that was measured, on a machine that was ours."""
    for found in result.measurements:
        if (found.metric, found.scope) == (metric, scope) and found.status == "measured" and found.value is not None:
            return found
    return None


def first_scenario(run: Run) -> str | None:
    """The scenario that decode speeds are told of: the first of the matrix."""
    return run.matrix.scenarios[0].name if run.matrix.scenarios else None


def middle(values: list[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None


def physical_cores(run: Run) -> int | None:
    """Physical cores that the run could use: of the machine, of the affinity mask, and of the quota; None when unknown."""
    identity = run.environment.identity
    cores, usable = number(identity, "cores"), number(identity, "threads")
    if cores is None:
        return None
    return max(1, int(min(cores, usable or cores)))


def threads_of(result: VariantResult) -> int | None:
    """Threads that decode, as the backend tells them."""
    told = number(facts_of(result), "n_threads")
    return None if told is None else int(told)
