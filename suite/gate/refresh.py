"""One baseline after an update: what drifted or is missing is taken from the run, the rest is kept to the letter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suite.gate.answers import answer_of, is_same_answer, outcome_of_answer, pair_answers
from suite.gate.compare_fidelity import DIVERGENCES, fidelity_of
from suite.gate.compare_logprob import LOGPROB, is_known_otherwise
from suite.gate.compare_speed import NOT_COMPARED
from suite.gate.differences import quality_identity, quality_suspects, speed_identity, speed_suspects
from suite.gate.policy import metric_of
from suite.metrics.catalog import SPECS
from suite.metrics.kinds import HELD_TO_NONE
from suite.metrics.quality import PER_OUTCOME, by_scope, mean_of
from suite.metrics.speed import TAILS, YARDSTICKS, launch_medians
from suite.records import (
    ALL,
    Aspect,
    BaselineCase,
    BaselineMetric,
    CaseFidelity,
    Finding,
    Gate,
    Provenance,
    QualityBaseline,
    Run,
    SpeedBaseline,
    Tier,
    Trial,
    VariantResult,
    Verdict,
)
from suite.store.baselines import as_stored

Mode = Literal["new", "changed", "all"]

REVIEWED = frozenset({*DIVERGENCES, "same_top_1", "p99_kld", "ppl_ratio"})
"""Figures of fidelity that are stored for people to review; comparing goes by the cases."""

LATER = frozenset({*TAILS, "held_bytes"})
"""Metrics that older baselines lack. They come with the next speeds that are accepted, and are no reason to accept any."""

_DRIFTED = frozenset({Verdict.REGRESSED, Verdict.IMPROVED, Verdict.NOT_COMPARABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What an update of one variant's baselines works from."""

    run: Run
    result: VariantResult
    trials: tuple[Trial, ...]
    """Of this variant."""
    findings: tuple[Finding, ...]
    """Of this variant."""
    mode: Mode
    provenance: Provenance


def refresh_speed(update: Update, old: SpeedBaseline | None) -> SpeedBaseline | None:
    """The speed and memory baseline to write, or None when nothing would change."""
    run, result, mode = update.run, update.result, update.mode
    identity = speed_identity(result, run.environment)
    measured = _measured_metrics(result)
    suspects: Mapping[str, str] = speed_suspects(result, run.environment)
    if old is None or mode == "all":
        metrics: Mapping[str, BaselineMetric] = measured
    elif dict(old.identity) != identity:
        metrics = measured
    else:
        scopes = {scenario.name for scenario in run.matrix.scenarios} | {ALL}
        metrics = _merge_metrics(
            old.metrics, measured, _drifted(update.findings) if mode == "changed" else None, scopes
        )
        if metrics == dict(old.metrics):
            return None
        if not takes_speed(metrics, old.metrics):
            suspects = old.suspects  # of the session of the speeds, which stay
    return SpeedBaseline(
        model=run.model,
        variant=result.variant.name,
        machine=run.environment.machine,
        identity=identity,
        suspects=suspects,
        provenance=update.provenance,
        metrics=metrics,
    )


def takes_speed(metrics: Mapping[str, BaselineMetric], old: Mapping[str, BaselineMetric]) -> bool:
    """Whether any speed of `metrics` is not that of `old`; one that is only gone, or a yardstick, does not count."""
    return any(old.get(key) != value for key, value in metrics.items() if _is_speed(key) and not _is_yardstick(key))


def refresh_quality(update: Update, old: QualityBaseline | None) -> QualityBaseline | None:
    """The quality baseline to write, or None when nothing would change."""
    run, result, trials, mode = update.run, update.result, update.trials, update.mode
    fidelity = fidelity_of(one for one in run.forced if one.variant == result.variant.name)
    answers = {trial.case: replace(answer_of(trial), fidelity=fidelity.get(trial.case)) for trial in trials}
    domains = {trial.case: trial.domain for trial in trials}
    if old is None or mode == "all":
        cases = answers
        kept: Mapping[str, BaselineMetric] = {}
    elif dict(old.identity) != quality_identity(result):
        cases, kept = answers, {}
    else:
        cases = _merge_cases(update, answers, old)
        if cases == dict(old.cases):
            return None
        kept = old.metrics
    touched = _touched_scopes(cases, old.cases if old and kept else {}, domains)
    return QualityBaseline(
        model=run.model,
        variant=result.variant.name,
        identity=quality_identity(result),
        suspects=quality_suspects(result, run.environment),
        provenance=update.provenance,
        metrics={
            **_quality_metrics(cases, domains, kept, touched),
            **_fidelity_metrics(result, cases, old if kept else None),
        },
        cases=cases,
    )


def _drifted(findings: Sequence[Finding]) -> set[str]:
    """``metric/scope`` of everything that drifted, gated or not; of answers also what a gate could not tell.

    Where something was held against its stored baseline, that counts; what was only measured side by side with the old
    version counts as well, since the stored value will be that of the old version.
    """
    by_key: dict[str, list[Finding]] = {}
    for finding in findings:
        by_key.setdefault(f"{finding.metric}/{finding.scope}", []).append(finding)
    return {key for key, found in by_key.items() if any(map(_is_taken, _against_stored(found) or found))}


def _is_taken(finding: Finding) -> bool:
    undecided = finding.verdict is Verdict.INCONCLUSIVE and finding.gate is not Gate.INFO
    return finding.verdict in _DRIFTED or (undecided and finding.comparison.aspect is Aspect.QUALITY)


def _against_stored(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.comparison.tier is not Tier.DUET]


def _measured_metrics(result: VariantResult) -> dict[str, BaselineMetric]:
    return {
        f"{m.metric}/{m.scope}": BaselineMetric(value=m.value, unit=SPECS[m.metric].unit, launches=launch_medians(m))
        for m in result.measurements
        if m.metric in SPECS and m.metric not in NOT_COMPARED | HELD_TO_NONE and m.value is not None
        if SPECS[m.metric].aspect is not Aspect.QUALITY
    }


def _merge_metrics(
    old: Mapping[str, BaselineMetric],
    measured: Mapping[str, BaselineMetric],
    drifted: Collection[str] | None,
    scopes: Collection[str],
) -> dict[str, BaselineMetric]:
    """Old values, and the missing ones. Unless `drifted` is None: drifted ones replaced, gone scopes dropped.

    Speeds and yardsticks are of one session, or none of the yardsticks would be a witness: with one speed replaced or
    added, all are taken from this run; otherwise the yardsticks stay as they are.
    """
    kept = {key: value for key, value in old.items() if drifted is None or key.partition("/")[2] in scopes}
    fresh = {key: value for key, value in measured.items() if not _is_yardstick(key)}
    replaced = {
        key: value
        for key, value in fresh.items()
        if key in (drifted or ()) and (key not in kept or as_stored(value) != as_stored(kept[key]))
    }
    merged = {**fresh, **kept, **replaced}
    settled = {key: value for key, value in merged.items() if key in old or metric_of(key) not in LATER}
    if not takes_speed(settled, old):
        return settled
    others = {key: value for key, value in merged.items() if not _is_speed(key)}
    return {**others, **{key: value for key, value in measured.items() if _is_speed(key)}}


def _is_speed(key: str) -> bool:
    metric = key.partition("/")[0]
    return metric in SPECS and SPECS[metric].aspect is Aspect.SPEED


def _is_yardstick(key: str) -> bool:
    return key.partition("/")[0] in YARDSTICKS


def _merge_cases(update: Update, answers: Mapping[str, BaselineCase], old: QualityBaseline) -> dict[str, BaselineCase]:
    """Old answers with the missing ones added, and in mode ``changed`` also what asks another question or drifted.

    A case drifted when its answer is another one and a gate on its domain, or one on ``all``, says so or cannot tell; or
    when that gate is on log-probabilities and its own moved. Cases that no longer exist are dropped. Accepted answers whose
    log-probability was not kept yet get it, as long as they are still given.
    """
    pairing = pair_answers(update.trials, old.cases)
    accepted = {**old.cases, **{p.case: _complete(p.was, answers[p.case]) for p in pairing.pairs}}
    if update.mode == "new":
        return {**answers, **accepted}
    quality = [finding for finding in update.findings if finding.comparison.aspect is Aspect.QUALITY]
    keys = _drifted(quality)
    scopes = {key.partition("/")[2] for key in keys}
    weighed = {key.partition("/")[2] for key in keys if metric_of(key) == LOGPROB}
    drifted = {p.case for p in pairing.pairs if scopes & {ALL, p.domain} and not is_same_answer(p)}
    moved = {p.case for p in pairing.pairs if weighed & {ALL, p.domain} and is_known_otherwise(p)}
    replaced = drifted | moved | set(pairing.changed)
    apart = {key.partition("/")[2] for key in keys if metric_of(key) in DIVERGENCES}
    domains = {trial.case: trial.domain for trial in update.trials}
    return {
        case: _with_fidelity(
            accepted[case] if case in accepted and case not in replaced else answer,
            old.cases.get(case),
            answer,
            drifted=bool(apart & {ALL, domains[case]}),
        )
        for case, answer in answers.items()
    }


def _with_fidelity(taken: BaselineCase, was: BaselineCase | None, now: BaselineCase, *, drifted: bool) -> BaselineCase:
    """The answer that is taken, with the accepted fidelity unless that drifted, is of another trace or was never measured."""
    if now.fidelity is None:
        asked_alike = was is not None and was.prompt_sha256 == now.prompt_sha256
        return replace(taken, fidelity=was.fidelity if was is not None and asked_alike else None)
    if was is None or was.fidelity is None or was.fidelity.trace != now.fidelity.trace or drifted:
        return replace(taken, fidelity=now.fidelity)
    return replace(taken, fidelity=_fill(was.fidelity, now.fidelity))


def _fill(was: CaseFidelity, now: CaseFidelity) -> CaseFidelity:
    """The accepted fidelity, with the decode path where it was not taken before: another case may be in the sample now."""
    if was.decode_kld is not None or was.trace != now.trace:
        return was
    return replace(was, decode_kld=now.decode_kld, path_distance=now.path_distance)


def _complete(was: BaselineCase, now: BaselineCase) -> BaselineCase:
    """The accepted answer with its fidelity now, and the log-probability of the very same one now, where nothing was kept."""
    if now.fidelity is not None:
        was = replace(was, fidelity=_fill(was.fidelity, now.fidelity) if was.fidelity else now.fidelity)
    if was.logprob is not None or was.output_sha256 != now.output_sha256:
        return was
    return replace(was, output_ids=now.output_ids, logprob=now.logprob)


def _graded(case: BaselineCase | None) -> BaselineCase | None:
    """The answer without its log-probability and its fidelity, which no other metric goes by."""
    return replace(case, output_ids=None, logprob=None, fidelity=None) if case else None


def _touched_scopes(
    cases: Mapping[str, BaselineCase], old: Mapping[str, BaselineCase], domains: Mapping[str, str]
) -> set[str]:
    """Scopes in which a case was added, replaced or dropped: only their metrics are computed anew."""
    changed = {case for case in {*cases, *old} if _graded(cases.get(case)) != _graded(old.get(case))}
    return {ALL, *(domains.get(case, case.partition("/")[0]) for case in changed)} if changed else set()


def _quality_metrics(
    cases: Mapping[str, BaselineCase],
    domains: Mapping[str, str],
    kept: Mapping[str, BaselineMetric],
    touched: Collection[str],
) -> dict[str, BaselineMetric]:
    domain_of = {case: domains.get(case, case.partition("/")[0]) for case in cases}
    scopes = by_scope(outcome_of_answer(domain_of[case], answer) for case, answer in cases.items())
    metrics: dict[str, BaselineMetric] = {}
    for metric in PER_OUTCOME:
        for scope, outcomes in scopes.items():
            key = f"{metric}/{scope}"
            fresh = BaselineMetric(value=mean_of(metric, outcomes), unit=SPECS[metric].unit)
            metrics[key] = fresh if scope in touched or key not in kept else kept[key]
    return metrics


def _fidelity_metrics(
    result: VariantResult, cases: Mapping[str, BaselineCase], old: QualityBaseline | None
) -> dict[str, BaselineMetric]:
    """The figures of fidelity, for people to review: of this run where any case's were taken from it, else as they were."""
    taken = _fidelity_in(cases)
    if not taken:
        return {}
    accepted = {key: metric for key, metric in old.metrics.items() if metric_of(key) in REVIEWED} if old else {}
    if old is not None and _fidelity_in(old.cases) == taken:
        return accepted
    fresh = {
        f"{m.metric}/{m.scope}": BaselineMetric(value=m.value, unit=SPECS[m.metric].unit)
        for m in result.measurements
        if m.metric in REVIEWED and m.value is not None
    }
    return fresh or accepted


def _fidelity_in(cases: Mapping[str, BaselineCase]) -> dict[str, CaseFidelity]:
    return {case: answer.fidelity for case, answer in cases.items() if answer.fidelity is not None}
