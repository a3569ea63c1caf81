"""Which baselines an update would write. Pure: the store writes them, the plugin decides when.

What did not drift keeps its accepted value exactly, so that refreshing an unchanged variant is an empty diff.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from suite.gate.compare_speed import NOT_COMPARED
from suite.gate.differences import describe_differences, quality_identity, speed_identity
from suite.gate.flags import find_flags
from suite.gate.held import hold_answers, listed
from suite.gate.refresh import Mode, Update, refresh_quality, refresh_speed, takes_speed
from suite.metrics.catalog import SPECS
from suite.metrics.fidelity import BROKEN
from suite.metrics.kinds import belongs
from suite.records import (
    Aspect,
    Baselines,
    Finding,
    Gate,
    Protocol,
    Provenance,
    QualityBaseline,
    Run,
    SampleStatus,
    SpeedBaseline,
    SpeedSample,
    Trial,
    TrialStatus,
    VariantResult,
    Verdict,
)

MIN_LAUNCHES = 3
"""Launches behind every speed that is accepted: two say next to nothing about how launches vary."""


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
    which a scenario is missing, has no clean samples or fewer than `MIN_LAUNCHES` launches; speed from a disturbed
    machine, unless the mode is ``all`` (the flags are then stored with it); speed from a run whose gates on answers did not
    all hold (see `suite.gate.held`); new speed from a run of which other speed regressed.
    """
    writes: list[QualityBaseline | SpeedBaseline] = []
    refusals: list[Refusal] = []
    for result in run.variants:
        name = result.variant.name
        own = tuple(finding for finding in findings if finding.variant == name)
        trials = tuple(trial for trial in run.trials if trial.variant == name)
        stored = baselines.get(name, Baselines())
        if reason := _refuse_variant(result, trials, cases, request) or _refuse_broken(result):
            refusals += [Refusal(name, Aspect.QUALITY, reason), Refusal(name, Aspect.SPEED, reason)]
            continue
        provenance = _provenance(run, result, own, request)
        update = Update(run=run, result=result, trials=trials, findings=own, mode=request.mode, provenance=provenance)
        quality = _take_quality(update, stored.quality)
        speed = _take_speed(update, stored.speed, takes_quality=isinstance(quality, QualityBaseline))
        refusals += [found for found in (quality, speed) if isinstance(found, Refusal)]
        writes += [found for found in (quality, speed) if found is not None and not isinstance(found, Refusal)]
    return Acceptance(tuple(writes), tuple(refusals))


def _provenance(run: Run, result: VariantResult, findings: Sequence[Finding], request: Request) -> Provenance:
    gates = Counter(finding.verdict.value for finding in findings if finding.gate is not Gate.INFO)
    return Provenance(
        accepted=request.accepted,
        reason=request.reason.strip(),
        run=run.id,
        commit=request.commit,
        launches=len(result.launches),
        gates=dict(sorted(gates.items())),
    )


def _take_quality(update: Update, old: QualityBaseline | None) -> QualityBaseline | Refusal | None:
    """The quality baseline to write, or why not; None when nothing would change."""
    if reason := _refuse_replacing(old, quality_identity(update.result), update.mode):
        return Refusal(update.result.variant.name, Aspect.QUALITY, reason)
    return refresh_quality(update, old)


def _take_speed(update: Update, old: SpeedBaseline | None, *, takes_quality: bool) -> SpeedBaseline | Refusal | None:
    """The speed baseline to write, or why not; None when nothing would change."""
    run, result, findings, mode = update.run, update.result, update.findings, update.mode
    flags, answers = _flags(update), hold_answers(update, takes_quality=takes_quality)
    provenance = dataclasses.replace(update.provenance, flags=(*flags, *answers.flags))
    reason = (
        _refuse_unmeasured(run, result)
        or answers.lost
        or _refuse_replacing(old, speed_identity(result, run.environment), mode)
    )
    speed = None if reason else refresh_speed(dataclasses.replace(update, provenance=provenance), old)
    if speed is not None:
        reason = answers.unknown
    if speed is not None and takes_speed(speed.metrics, old.metrics if old else {}):
        reason = (
            reason
            or _refuse_few_launches(result, run.matrix.protocol)
            or _refuse_flagged(flags, mode)
            or (_refuse_slower(findings, mode) if old else None)
        )
    return Refusal(result.variant.name, Aspect.SPEED, reason) if reason else speed


def _flags(update: Update) -> tuple[str, ...]:
    """What was not as it should be while speed was measured, each once; also of what was timed and not judged."""
    result = update.result
    told = [f.comparison.flags for f in update.findings if f.comparison.aspect is Aspect.SPEED]
    finished = {launch.index for launch in result.launches}
    scenarios: dict[str, list[SpeedSample]] = {}
    for sample in update.run.speed_samples:
        if sample.variant == result.variant.name and sample.launch in finished:
            scenarios.setdefault(sample.scenario, []).append(sample)
    seen = [find_flags(samples, result.launches) for samples in scenarios.values()]
    return tuple(dict.fromkeys(flag for flags in (*told, *seen) for flag in flags))


def _refuse_variant(
    result: VariantResult, trials: Sequence[Trial], cases: Collection[str], request: Request
) -> str | None:
    if not request.reason.strip():
        return 'no reason was given; say why with --matrix-reason "..."'
    if result.failure:
        return f"the variant is {result.failure.verdict.value}: {result.failure.reason}"
    failed = [trial.case for trial in trials if trial.score.status is TrialStatus.ERROR]
    if failed:
        return f"{len(failed)} cases ended in an error: {listed(failed)}"
    missing = sorted(set(cases) - {trial.case for trial in trials})
    if missing:
        rerun = f"pytest --model-matrix --matrix-variants {result.variant.name} --matrix-update={request.mode}"
        return (
            f"the run is partial, {len(missing)} of {len(cases)} cases are missing: {listed(missing)}; run all: {rerun}"
        )
    return None


def _refuse_broken(result: VariantResult) -> str | None:
    """Logits that are no numbers are nobody's baseline, whether or not their gate was selected."""
    share = next((m.value for m in result.measurements if m.metric == BROKEN), None)
    return f"{100 * share:.3g} % of its logits are no numbers" if share else None


def _refuse_replacing(
    old: QualityBaseline | SpeedBaseline | None, identity: Mapping[str, str], mode: Mode
) -> str | None:
    if old is None or mode != "new" or not (changed := describe_differences(old.identity, identity)):
        return None
    return f"what is stored answers another question ({listed(changed)}); replace it with --matrix-update=changed"


def _refuse_unmeasured(run: Run, result: VariantResult) -> str | None:
    """Speed and memory come from one session: without clean samples of every scenario, nothing is taken."""
    speed = [m for m in result.measurements if m.metric in SPECS and SPECS[m.metric].aspect is not Aspect.QUALITY]
    contended = sorted({m.scope for m in speed if m.status == "contended" and m.metric not in NOT_COMPARED})
    if contended:
        return f"no clean samples in {listed(contended)}; measure again when nothing else runs"
    measured = {m.scope for m in speed if m.metric == "decode_tok_s" and m.value is not None}
    mine = [sample for sample in run.speed_samples if sample.variant == result.variant.name]
    cannot = {sample.scenario for sample in mine if sample.status is SampleStatus.UNSUITED}
    wanted = [scenario.name for scenario in run.matrix.scenarios if belongs("decode_tok_s", scenario)]
    missing = [name for name in wanted if name not in measured | cannot]
    if missing:
        return f"the run is partial, no speed was measured in {listed(missing)}"
    return None


def _refuse_few_launches(result: VariantResult, protocol: Protocol) -> str | None:
    """What has too few launches does not tell how much launches vary, and every later verdict would rest on it."""
    counts = {m.scope: len(set(m.launches)) for m in result.measurements if m.metric == "decode_tok_s" and m.launches}
    short = {scope: count for scope, count in counts.items() if count < MIN_LAUNCHES}
    if not short:
        return None
    found = ", ".join(f"{count} in {scope}" for scope, count in sorted(short.items()))
    if protocol.launches < MIN_LAUNCHES:
        remedy = f"set launches = {MIN_LAUNCHES} or more in [protocol] of the matrix file"
    else:
        remedy = "measure again when nothing else runs"
    return f"too few launches with clean samples ({found}; at least {MIN_LAUNCHES} are needed); {remedy}"


def _refuse_flagged(flags: Sequence[str], mode: Mode) -> str | None:
    if not flags or mode == "all":
        return None
    return (
        f"the machine was disturbed ({listed(flags)}); measure again when nothing else runs, or take it as it is, "
        "with these flags stored beside it, with --matrix-update=all"
    )


def _refuse_slower(findings: Sequence[Finding], mode: Mode) -> str | None:
    """A new speed brings all speeds of its session with it; ``new`` must not excuse one that regressed that way."""
    slower = [
        f"{finding.metric}/{finding.scope}"
        for finding in findings
        if finding.comparison.aspect is Aspect.SPEED and finding.verdict is Verdict.REGRESSED
        if finding.gate is not Gate.INFO
    ]
    if not slower or mode != "new":
        return None
    return f"speed regressed in this run ({listed(slower)}); accept that too with --matrix-update=changed, or mend it"
