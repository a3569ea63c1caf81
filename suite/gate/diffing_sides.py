"""Baselines in the shape of what a run measured, so that two of them are compared by the very rules of a run.

What a baseline keeps of an answer is its hash and its length, and not always its tokens: stand-ins take their place, equal
exactly where the accepted answers are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from suite.gate.answers import hash_tokens
from suite.gate.compare_fidelity import FIDELITY, Beside, compare_fidelity
from suite.gate.compare_quality import compare_quality
from suite.gate.compare_speed import compare_speed
from suite.gate.differences import MACHINE, SCENARIO
from suite.gate.flags import find_flags
from suite.gate.policy import metric_of
from suite.gate.refresh import Update, refresh_quality, refresh_speed
from suite.metrics.speed import YARDSTICKS
from suite.records import (
    BaselineCase,
    BaselineMetric,
    Baselines,
    Comparison,
    Environment,
    Forced,
    Gate,
    Generation,
    Measurement,
    Noise,
    Provenance,
    QualityBaseline,
    Run,
    Score,
    Snapshot,
    SpeedBaseline,
    TraceFacts,
    Trial,
    TrialStatus,
    Variant,
    VariantResult,
)
from suite.store.baselines import as_stored, decode, encode

B = TypeVar("B", QualityBaseline, SpeedBaseline)

NOT_ACCEPTED = "measured, not accepted"
"""Stands for the reason of what a run holds."""
FEWEST_POSITIONS = 16
"""Positions that every case counts as where no trace tells how many it has."""

_NOWHERE = Environment(machine="", identity={}, suspects={}, readings={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How much each case weighs, and which belong together: what the trace tells, and baselines do not."""

    positions: Mapping[str, int] = field(default_factory=dict)
    families: Mapping[str, str | None] = field(default_factory=dict)


def what_is_told(base: Snapshot, head: Snapshot, model: str) -> Answered:
    """Positions and families by the traces of both states, the later one's first; families also by their runs."""
    families: dict[str, str | None] = {}
    positions: dict[str, int] = {}
    for side in (base, head):
        traces: Iterable[TraceFacts] = (trace for trace in side.traces if trace.model == model)
        for trace in traces:
            families |= trace.families
            positions |= trace.positions
        if side.run is not None and side.run.model == model:
            families |= {trial.case: trial.family for trial in side.run.trials}
            positions |= {one.case: len(one.kld) for one in side.run.forced if one.path == "batched"}
    return Answered(positions=positions, families=families)


# ------------------------------------------------------------------------------------------------------- answers


def compare_answers(was: QualityBaseline, now: QualityBaseline, told: Answered) -> tuple[Comparison, ...]:
    """The comparisons that a run which answered as `now` would have made with the baseline `was`."""
    shared = {key: now.metrics[key] for key in now.metrics if key in was.metrics}
    result = _result(now, shared)
    trials = tuple(_trial(now.variant, name, case, told) for name, case in sorted(now.cases.items()))
    then = replace(was, cases={name: _stand_in(case) for name, case in was.cases.items()})
    found = compare_quality(result, trials, then, _NOWHERE, ()) if _is_worth_testing(was, now) else ()
    if not any(metric_of(key) in FIDELITY for key in shared):
        return found
    forced = tuple(one for name, case in sorted(now.cases.items()) for one in _forced(now.variant, name, case, told))
    beside = Beside(forced=forced, cases=frozenset(now.cases))
    return (*found, *compare_fidelity(result, then, _NOWHERE, (), beside))


def _is_worth_testing(was: QualityBaseline, now: QualityBaseline) -> bool:
    """Whether any answer that can be paired is another one; if none is, a test would load its libraries for nothing."""
    known = {name: case for name, case in now.cases.items() if _is_paired(was.cases.get(name), case)}
    if dict(was.identity) != dict(now.identity) or _domains(known) != _domains(now.cases):
        return True
    pairs = [(was.cases[name], case) for name, case in known.items()]
    return any(answers_differ(then, here) or _weighs_otherwise(then, here) for then, here in pairs)


def _domains(cases: Iterable[str]) -> set[str]:
    return {name.partition("/")[0] for name in cases}


def _weighs_otherwise(was: BaselineCase, now: BaselineCase) -> bool:
    return was.logprob is not None and now.logprob is not None and was.logprob != now.logprob


def _is_paired(was: BaselineCase | None, now: BaselineCase) -> bool:
    return was is not None and question_of(was) == question_of(now)


def question_of(case: BaselineCase) -> dict[str, str]:
    """What makes it the same question, for people."""
    return {"version": str(case.version), "scorer": case.scorer, "prompt": case.prompt_sha256}


def answers_differ(was: BaselineCase, now: BaselineCase) -> bool:
    """Whether the answers, or how they were graded, are not the same."""
    fields = ("output_sha256", "status", "score", "correct", "answer", "output_tokens")
    return any(getattr(was, name) != getattr(now, name) for name in fields)


def _tokens(case: BaselineCase) -> tuple[int, ...]:
    """As many tokens as the answer has; the first one stands for its hash."""
    length = case.output_tokens
    return (int(hash_tokens(tuple(case.output_sha256.encode()))[:12], 16), *(0,) * (length - 1)) if length > 0 else ()


def _stand_in(case: BaselineCase) -> BaselineCase:
    return replace(case, output_sha256=hash_tokens(_tokens(case)), output_ids=None)


def _trial(variant: str, name: str, case: BaselineCase, told: Answered) -> Trial:
    tokens = _tokens(case)
    generation = Generation(
        token_ids=tokens,
        text="",
        finish_reason="stop",
        prompt_tokens=0,
        evaluated_tokens=0,
        prefill_s=0.0,
        token_times_s=(),
        logprobs=None if case.logprob is None else (case.logprob,) * len(tokens),
    )
    return Trial(
        variant=variant,
        case=name,
        case_version=case.version,
        domain=name.partition("/")[0],
        family=told.families.get(name),
        scorer=case.scorer,
        prompt_sha256=case.prompt_sha256,
        score=Score(status=case.status, value=case.score, correct=case.correct, answer=case.answer),
        generation=None if case.status is TrialStatus.ERROR else generation,
    )


def _forced(variant: str, name: str, case: BaselineCase, told: Answered) -> Iterable[Forced]:
    """The means of a case as if each of its positions had them: sums over cases come out as they were."""
    if (known := case.fidelity) is None:
        return
    size = max(told.positions.get(name, FEWEST_POSITIONS), 1)

    def along(kld: float, **fields: object) -> Forced:
        made = Forced(
            variant=variant, case=name, domain=name.partition("/")[0], family=told.families.get(name), path="batched",
            trace=known.trace, kld=(kld,) * size, logprobs=(0.0,) * size, reference_logprobs=(0.0,) * size,
        )  # fmt: skip
        return replace(made, **fields)  # type: ignore[arg-type]

    yield along(known.kld)
    if known.decode_kld is not None:
        distance = None if known.path_distance is None else (None, *(known.path_distance,) * (size - 1))
        yield along(known.decode_kld, path="decode", distance=distance)


# --------------------------------------------------------------------------------------------------------- speed


def compare_times(was: SpeedBaseline, now: SpeedBaseline, noise: Noise | None) -> tuple[Comparison, ...]:
    """The comparisons that a run which was as fast as `now` would have made with the baseline `was`, of what differs.

    What the machine was accused of when `now` was accepted goes with it: never a PASS.
    """
    moved = {key for key in was.metrics.keys() & now.metrics.keys() if _differs(was.metrics[key], now.metrics[key])}
    kept = {key for key in now.metrics if key in moved or metric_of(key) in YARDSTICKS}
    result = _result(now, {key: now.metrics[key] for key in sorted(kept)})
    machine = {name.removeprefix(MACHINE): value for name, value in now.identity.items() if name.startswith(MACHINE)}
    environment = Environment(machine=now.machine, identity=machine, suspects={}, readings={})
    then = replace(was, metrics={key: value for key, value in was.metrics.items() if key in kept})
    own = Baselines(speed=then, noise=noise) if was.machine == now.machine else Baselines(foreign=(then,), noise=noise)
    found = compare_speed(result, own, environment, ())
    flags = machine_flags(now.provenance)
    return tuple(
        replace(comparison, flags=flags if comparison.aspect == "speed" else ())
        for comparison in found
        if f"{comparison.metric}/{comparison.scope}" in moved
    )


def machine_flags(provenance: Provenance) -> tuple[str, ...]:
    """What was wrong with the machine when a speed was accepted; that some answers could not be told is another matter."""
    return tuple(flag for flag in provenance.flags if not flag.endswith(ABOUT_ANSWERS))


ABOUT_ANSWERS = "on answers could not be told"
"""How `suite.gate.held` ends the flag that is about answers."""


def _differs(was: BaselineMetric, now: BaselineMetric) -> bool:
    return as_stored(was) != as_stored(now)


# ---------------------------------------------------------------------------------------------------------- both


def _result(baseline: QualityBaseline | SpeedBaseline, metrics: Mapping[str, BaselineMetric]) -> VariantResult:
    asked = {name: value for name, value in baseline.identity.items() if not _is_of_machine(name, baseline)}
    return VariantResult(
        variant=Variant(
            name=baseline.variant,
            model=baseline.model,
            backend=asked.get("backend", ""),
            source=asked.get("source", ""),
        ),
        artifact=None,
        measurements=tuple(_measurement(key, metric) for key, metric in metrics.items()),
        launches=(),
        failure=None,
        identity=asked,
        suspects=baseline.suspects,
    )


def _is_of_machine(name: str, baseline: QualityBaseline | SpeedBaseline) -> bool:
    return isinstance(baseline, SpeedBaseline) and name.startswith(MACHINE)


def _measurement(key: str, metric: BaselineMetric) -> Measurement:
    name, _, scope = key.partition("/")
    launches = tuple(range(len(metric.launches)))
    return Measurement(metric=name, scope=scope, value=metric.value, samples=metric.launches, launches=launches)


def scenarios_differ(differences: Collection[str]) -> bool:
    """Whether all that makes it another question is how speed is timed."""
    return bool(differences) and all(difference.startswith(SCENARIO) for difference in differences)


# ---------------------------------------------------------------------------------------------------------- runs


def baselines_of(run: Run) -> tuple[tuple[QualityBaseline, ...], tuple[SpeedBaseline, ...]]:
    """What a run measured, in the form in which it would be accepted: to the digits that are stored."""
    quality: list[QualityBaseline] = []
    speed: list[SpeedBaseline] = []
    for result in run.variants:
        if result.failure is not None:
            continue
        update = _update(run, result)
        if update.trials and (answers := refresh_quality(update, None)) is not None:
            quality.append(_as_read(answers))
        if result.launches and (times := refresh_speed(update, None)) is not None and times.metrics:
            speed.append(_as_read(times))
    return tuple(quality), tuple(speed)


def _update(run: Run, result: VariantResult) -> Update:
    name = result.variant.name
    findings = tuple(finding for finding in run.findings if finding.variant == name)
    gates = Counter(finding.verdict.value for finding in findings if finding.gate is not Gate.INFO)
    samples = [sample for sample in run.speed_samples if sample.variant == name]
    provenance = Provenance(
        accepted=run.created,
        reason=NOT_ACCEPTED,
        run=run.id,
        launches=len(result.launches),
        flags=find_flags(samples, result.launches),
        gates=dict(sorted(gates.items())),
    )
    answered = (trial for trial in run.trials if trial.variant == name)
    trials = tuple(trial for trial in answered if trial.score.status is not TrialStatus.ERROR)
    return Update(run=run, result=result, trials=trials, findings=findings, mode="all", provenance=provenance)


def _as_read(baseline: B) -> B:
    """As it reads after it was written."""
    where, place = f"run {baseline.provenance.run}", {"variant": baseline.variant}
    return decode(type(baseline), encode(baseline).encode(), where=where, place=place)
