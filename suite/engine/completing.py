"""What can only be said of a whole run: the price against the reference, creeping, and other machines' speed-ups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from suite.engine.assembling import OLD, TRACE_OF
from suite.gate.creep import creep
from suite.gate.foreign import compare_speedups
from suite.gate.judge import judge_all
from suite.gate.loss import divergences, losses
from suite.records import Baselines, Finding, Gate, Loss, Run, Tier, Tolerance
from suite.settings import COMMAND
from suite.store.baselines import BaselineStore

CALIBRATED = "calibrated"
"""Key among a run's settings: when the machine was calibrated."""


def complete(run: Run, store: BaselineStore, policy: Mapping[str, Tolerance], *, command: str = COMMAND) -> Run:
    """The run with its losses, what has crept, and what other machines' baselines tell. None of it fails anything.

    `command` is how the suite was started.

    Raises StoreError for a baseline that cannot be read.
    """
    stored = {
        result.variant.name: store.read(run.model, result.variant.name, run.environment.machine)
        for result in run.variants
    }
    noise = store.read_noise(run.model, run.environment.machine)
    return dataclasses.replace(
        run,
        losses=find_losses(run),
        creep=find_creep(run, stored, policy, command),
        findings=(*run.findings, *find_foreign(run, stored, policy, command)),
        settings={**run.settings, **({CALIBRATED: noise.measured} if noise else {})},
    )


def find_losses(run: Run) -> tuple[Loss, ...]:
    """What each variant costs against the reference of this run."""
    reference = run.matrix.reference
    base = next((r for r in run.variants if reference is not None and r.variant.name == reference.name), None)
    if base is None:
        name = run.settings.get(TRACE_OF)
        return (
            ()
            if name is None
            else tuple(
                loss for result in run.variants for loss in divergences(result, run.forced, name, run.matrix.budgets)
            )
        )
    answers = tuple(trial for trial in run.trials if not trial.variant.endswith(OLD))
    return tuple(
        loss
        for result in run.variants
        if result is not base and (result.measurements or result.failure)
        for loss in losses(
            result,
            answers,
            base,
            answers,
            run.matrix.budgets,
            looks=_looks_of(result.variant.name, run.findings),
            forced=run.forced,
        )
    )


def _looks_of(variant: str, findings: Iterable[Finding]) -> int:
    """How often the speed of a variant was judged on these data, this time included."""
    return max((finding.comparison.looks for finding in findings if finding.variant == variant), default=1)


def find_creep(
    run: Run, stored: Mapping[str, Baselines], policy: Mapping[str, Tolerance], command: str
) -> tuple[Finding, ...]:
    """Each variant held against the first baseline that was accepted for it, where the latest one is another."""
    found = [
        comparison
        for result in run.variants
        if not result.failure
        for comparison in creep(
            result,
            [trial for trial in run.trials if trial.variant == result.variant.name],
            stored[result.variant.name],
            run.environment,
            run.forced,
        )
    ]
    informing = {key: dataclasses.replace(tolerance, gate=Gate.INFO) for key, tolerance in policy.items()}
    return judge_all(found, informing, command=command)


def find_foreign(
    run: Run, stored: Mapping[str, Baselines], policy: Mapping[str, Tolerance], command: str
) -> tuple[Finding, ...]:
    """Speed-ups beside those on another machine, for variants that have no baseline of this one."""
    if run.matrix.reference is None:
        return ()
    found = compare_speedups(run.variants, stored, run.matrix.reference.name)
    judged = judge_all(found, policy, command=command)
    return tuple(finding for finding in judged if finding.comparison.tier is Tier.FOREIGN)
