"""Which baselines an update would write. Pure: the store writes them, the plugin decides when.

What did not drift keeps its accepted value exactly, so that refreshing an unchanged variant is an empty diff.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from suite.gate.compare_speed import NOT_COMPARED
from suite.gate.differences import describe_differences, quality_identity, speed_identity
from suite.gate.refresh import Mode, Update, refresh_quality, refresh_speed, takes_speed
from suite.metrics.catalog import SPECS
from suite.records import (
    Aspect,
    Baselines,
    Finding,
    Gate,
    Provenance,
    QualityBaseline,
    Run,
    SpeedBaseline,
    Trial,
    TrialStatus,
    VariantResult,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a variant's baseline is not written."""

    variant: str
    aspect: Aspect
    """QUALITY, or SPEED for speed and memory together."""
    reason: str


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an update would write, and what it refuses to."""

    writes: tuple[QualityBaseline | SpeedBaseline, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the person who updates asked for."""

    mode: Mode
    """``new``: only what has no baseline yet; ``changed``: that, and what drifted or asks another question; ``all``."""
    reason: str
    accepted: str
    """ISO 8601 date and time, UTC."""
    commit: str | None = None


def accept(
    run: Run, findings: Sequence[Finding], baselines: Mapping[str, Baselines], cases: Collection[str], request: Request
) -> Acceptance:
    """Work out the baselines that `request` would write from `run`, judged as `findings`.

    `baselines` holds what is stored, by variant; `cases` the ids of the full set. Refused, with a reason each: an update
    without a reason; a variant with a failure, without all cases, or with an answer that ended in an error; speed of
    which a scenario is missing or has no clean samples; new speed from a run whose quality or other speed regressed.
    """
    writes: list[QualityBaseline | SpeedBaseline] = []
    refusals: list[Refusal] = []
    for result in run.variants:
        name = result.variant.name
        own = tuple(finding for finding in findings if finding.variant == name)
        trials = tuple(trial for trial in run.trials if trial.variant == name)
        stored = baselines.get(name, Baselines())
        provenance = Provenance(
            accepted=request.accepted,
            reason=request.reason.strip(),
            run=run.id,
            commit=request.commit,
            launches=len(result.launches),
        )
        if reason := _refuse_variant(result, trials, cases, request):
            refusals += [Refusal(name, Aspect.QUALITY, reason), Refusal(name, Aspect.SPEED, reason)]
            continue
        update = Update(run=run, result=result, trials=trials, findings=own, mode=request.mode, provenance=provenance)
        if reason := _refuse_replacing(stored.quality, quality_identity(result), request):
            refusals.append(Refusal(name, Aspect.QUALITY, reason))
        elif quality := refresh_quality(update, stored.quality):
            writes.append(quality)
        identity = speed_identity(result, run.environment)
        reason = _refuse_speed(run, result, own, request.mode) or _refuse_replacing(stored.speed, identity, request)
        if reason:
            refusals.append(Refusal(name, Aspect.SPEED, reason))
        elif speed := refresh_speed(update, stored.speed):
            if reason := _refuse_slower(speed, stored.speed, own, request.mode):
                refusals.append(Refusal(name, Aspect.SPEED, reason))
            else:
                writes.append(speed)
    return Acceptance(tuple(writes), tuple(refusals))


def _refuse_variant(
    result: VariantResult, trials: Sequence[Trial], cases: Collection[str], request: Request
) -> str | None:
    if not request.reason.strip():
        return 'no reason was given; say why with --matrix-reason "..."'
    if result.failure:
        return f"the variant is {result.failure.verdict.value}: {result.failure.reason}"
    failed = [trial.case for trial in trials if trial.score.status is TrialStatus.ERROR]
    if failed:
        return f"{len(failed)} cases ended in an error: {_listed(failed)}"
    missing = sorted(set(cases) - {trial.case for trial in trials})
    if missing:
        rerun = f"pytest --model-matrix --matrix-variants {result.variant.name} --matrix-update={request.mode}"
        return f"the run is partial, {len(missing)} of {len(cases)} cases are missing: {_listed(missing)}; run all: {rerun}"
    return None


def _refuse_replacing(
    old: QualityBaseline | SpeedBaseline | None, identity: Mapping[str, str], request: Request
) -> str | None:
    if old is None or request.mode != "new" or not (changed := describe_differences(old.identity, identity)):
        return None
    return f"what is stored answers another question ({_listed(changed)}); replace it with --matrix-update=changed"


def _refuse_speed(run: Run, result: VariantResult, findings: Sequence[Finding], mode: Mode) -> str | None:
    speed = [m for m in result.measurements if m.metric in SPECS and SPECS[m.metric].aspect is not Aspect.QUALITY]
    contended = sorted({m.scope for m in speed if m.status == "contended" and m.metric not in NOT_COMPARED})
    if contended:
        return f"no clean samples in {_listed(contended)}; measure again when nothing else runs"
    measured = {m.scope for m in speed if m.metric == "decode_tok_s" and m.value is not None}
    missing = [scenario.name for scenario in run.matrix.scenarios if scenario.name not in measured]
    if missing:
        return f"the run is partial, no speed was measured in {_listed(missing)}"
    lost = [f for f in findings if f.comparison.aspect is Aspect.QUALITY and f.verdict is Verdict.REGRESSED]
    if lost and mode == "new":
        names = _listed(f"{finding.metric}/{finding.scope}" for finding in lost)
        return f"quality regressed in this run ({names}); accept that too with --matrix-update=changed, or mend it"
    return None


def _refuse_slower(
    speed: SpeedBaseline, old: SpeedBaseline | None, findings: Sequence[Finding], mode: Mode
) -> str | None:
    """A new speed brings all speeds of its session with it; ``new`` must not excuse one that regressed that way."""
    if mode != "new" or old is None or not takes_speed(speed.metrics, old.metrics):
        return None
    slower = [
        f"{finding.metric}/{finding.scope}"
        for finding in findings
        if finding.comparison.aspect is Aspect.SPEED and finding.verdict is Verdict.REGRESSED
        if finding.gate is not Gate.INFO
    ]
    if not slower:
        return None
    return f"speed regressed in this run ({_listed(slower)}); accept that too with --matrix-update=changed, or mend it"


def _listed(names: Iterable[str], limit: int = 5) -> str:
    everything = list(names)
    more = f" and {len(everything) - limit} more" if len(everything) > limit else ""
    return ", ".join(everything[:limit]) + more
