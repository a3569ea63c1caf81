"""Quality now beside the accepted answers, paired case by case over the cases that ask the same question.

Both sides are computed over the same paired cases, so a run of some cases, or a case whose version was raised, does not
move what is compared; it is named instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from suite.gate.answers import CREDIT_GRAIN, Pair, Pairing, is_same_answer, outcome_of_answer, pair_answers
from suite.gate.compare_logprob import LOGPROB, describe_coverage, logprob_fields, why_unknown
from suite.gate.differences import (
    describe_accepted,
    describe_changes,
    describe_differences,
    quality_identity,
    quality_suspects,
)
from suite.gate.duet import OldSide, describe_beside, quality_beside
from suite.gate.plan import GateItem
from suite.metrics.catalog import SPECS
from suite.metrics.quality import PER_OUTCOME, Outcome, mean_of
from suite.records import (
    ALL,
    Aspect,
    Comparison,
    Direction,
    Environment,
    Flip,
    QualityBaseline,
    Tier,
    Trial,
    TrialStatus,
    VariantResult,
    Verdict,
)
from suite.stats.binomial import ALPHA, net_loss_bounds, net_loss_interval, share_interval
from suite.stats.signflip import least_p, sign_flip_p, sum_by_family

PAIRED = frozenset({"score", "exact", "truncated", "empty", "unparsable"})
"""Metrics of which each case is a pair of its own; lengths are compared as they are."""

_COMPARED = frozenset({*PER_OUTCOME, LOGPROB})
"""Metrics that are compared here."""

_HALF = 0.5 - 1e-9
"""Credit from which on a change counts as a flip in the bounds; the rest moves them as partial credit."""
_MOST_TOLD = 2


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every comparison of one variant's quality shares."""

    result: VariantResult
    trials: tuple[Trial, ...]
    baseline: QualityBaseline | None
    pairing: Pairing
    differences: tuple[str, ...]
    suspects: tuple[str, ...]
    old: OldSide | None
    mute: tuple[Pair, ...]
    """Pairs of cases that cannot testify; `pairing` holds the others."""
    unsteady: tuple[str, ...]
    """Those of them that differ from one run to the next."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """The cases that cannot testify."""
        return tuple(pair.case for pair in self.mute)

    @property
    def tier(self) -> Tier:
        """What it is compared with."""
        return Tier.DUET if self.old is not None else Tier.STORED if self.baseline else Tier.NONE

    @property
    def accepted(self) -> str:
        """The same, for people."""
        if self.old is not None:
            return describe_beside(self.old)
        return describe_accepted(self.baseline) if self.baseline else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What may stand beside a variant's answers: an old side measured in this run, and cases that cannot testify."""

    old: OldSide | None = None
    silent: Collection[str] = ()
    """They depend on the number of threads."""
    unsteady: Collection[str] = ()
    """They differ from one run to the next, under the same number of threads."""


def compare_quality(
    result: VariantResult,
    trials: Sequence[Trial],
    baseline: QualityBaseline | None,
    environment: Environment,
    planned: Sequence[GateItem],
    beside: Beside | None = None,
) -> tuple[Comparison, ...]:
    """Comparisons of ``all`` and each domain, then one for each case that cannot be paired (scope: the case)."""
    beside = beside or Beside()
    if beside.old is not None:
        baseline = quality_beside(result, beside.old, environment)
    ground = _survey(result, trials, baseline, environment, beside)
    wanted = [(item.metric, item.scope) for item in planned if item.metric in _COMPARED]
    keys = dict.fromkeys([*wanted, *(_default_keys(ground) if ground.trials or not planned else [])])
    whole = tuple(_compare_one(metric, scope, ground) for metric, scope in keys)
    return whole + tuple(_compare_unpaired(ground))


def _survey(
    result: VariantResult,
    trials: Sequence[Trial],
    baseline: QualityBaseline | None,
    environment: Environment,
    beside: Beside,
) -> _Ground:
    own = tuple(trial for trial in trials if trial.variant == result.variant.name)
    suspects = quality_suspects(result, environment)
    pairing = pair_answers(own, baseline.cases if baseline else {})
    muted = {*beside.silent, *beside.unsteady}
    heard = tuple(pair for pair in pairing.pairs if pair.case not in muted)
    return _Ground(
        result=result,
        trials=own,
        baseline=baseline,
        pairing=replace(pairing, pairs=heard),
        differences=describe_differences(baseline.identity, quality_identity(result)) if baseline else (),
        suspects=describe_changes(baseline.suspects, suspects) if baseline else (),
        old=beside.old,
        mute=tuple(pair for pair in pairing.pairs if pair.case in muted),
        unsteady=tuple(pair.case for pair in pairing.pairs if pair.case in beside.unsteady),
    )


def _default_keys(ground: _Ground) -> Iterable[tuple[str, str]]:
    domains = sorted({trial.domain for trial in ground.trials})
    for metric in PER_OUTCOME if domains else ():
        for scope in [*domains, ALL] if metric in ("score", "exact") else [ALL]:
            yield metric, scope
    if any(trial.generation is not None and trial.generation.logprobs for trial in ground.trials):
        yield from ((LOGPROB, scope) for scope in [*domains, ALL])


def _compare_one(metric: str, scope: str, ground: _Ground) -> Comparison:
    pairs = [pair for pair in ground.pairing.pairs if scope in (ALL, pair.domain)]
    unresolved = _unresolved(scope, pairs, ground)
    if unresolved:
        return _unresolved_comparison(metric, scope, *unresolved, ground)
    if metric == LOGPROB:
        return _compare_logprob(scope, pairs, ground)
    was, now = _outcomes(pairs)
    then, observed = mean_of(metric, was), mean_of(metric, now)
    paired = _Paired.of(metric, pairs) if metric in PAIRED else None
    drift, left_out = _drift(metric, pairs), _concerning(ground.left_out, scope)
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=Aspect.QUALITY,
        tier=ground.tier,
        observed=observed,
        baseline=then,
        drift=drift,
        interval=_interval(metric, scope, pairs, ground) if paired else None,
        p_value=sign_flip_p(paired.clusters) if paired else None,
        p_least=least_p(paired.clusters) if paired else 0.0,
        p_gain=sign_flip_p([-loss for loss in paired.clusters]) if paired else None,
        n=len(pairs),
        draws=len(paired.clusters) if paired else 0,
        draws_gained=paired.gained if paired else 0,
        identical=not left_out and all(is_same_answer(pair) for pair in pairs),
        flips=paired.flips if paired and metric in ("score", "exact") else (),
        reason=_coverage(scope, pairs, ground),
        suspects=ground.suspects,
        accepted=ground.accepted,
        left_out=left_out,
        unsteady=_concerning(ground.unsteady, scope),
    )


def _interval(metric: str, scope: str, pairs: Sequence[Pair], ground: _Ground) -> tuple[float, float]:
    """Bounds of the net loss. The upper one, by which answers pass, counts as lost what a case that cannot testify lost: a
    fault that shows under one number of threads alone silences the very cases that it breaks.
    """
    low, high = _Paired.of(metric, pairs).interval(_drift(metric, pairs))
    mute = [pair for pair in ground.mute if scope in (ALL, pair.domain)]
    if not mute:
        return low, high
    worst = [*pairs, *(pair if _drift(metric, [pair]) > 0 else replace(pair, now=pair.was) for pair in mute)]
    _, high = _Paired.of(metric, worst).interval(_drift(metric, worst))
    return low, max(low, high)


def _outcomes(pairs: Sequence[Pair]) -> tuple[list[Outcome], list[Outcome]]:
    """Both sides of the pairs, as the metrics see them."""
    was = [outcome_of_answer(pair.domain, pair.was) for pair in pairs]
    return was, [outcome_of_answer(pair.domain, pair.now) for pair in pairs]


def _drift(metric: str, pairs: Sequence[Pair]) -> float:
    """How much worse the metric is now, over these pairs."""
    was, now = _outcomes(pairs)
    rise = mean_of(metric, now) - mean_of(metric, was)
    return -rise if SPECS[metric].direction is Direction.HIGHER else rise


def _compare_logprob(scope: str, pairs: Sequence[Pair], ground: _Ground) -> Comparison:
    unknown = why_unknown(pairs)
    reasons = (_coverage(scope, pairs, ground), describe_coverage(pairs))
    verdict, reason = unknown or (None, "; ".join(filter(None, reasons)))
    bare = _unresolved_comparison(LOGPROB, scope, verdict, reason, ground)
    if unknown:
        return bare
    left_out, fields = _concerning(ground.left_out, scope), logprob_fields(pairs)
    fields["identical"] = fields["identical"] and not left_out
    return replace(bare, left_out=left_out, unsteady=_concerning(ground.unsteady, scope), **fields)


def _concerning(cases: Sequence[str], scope: str) -> tuple[str, ...]:
    return tuple(case for case in cases if scope in (ALL, _domain_of(case)))


@dataclass(frozen=True, slots=True)
class _Paired:
    """Flips and losses among paired cases."""

    flips: tuple[Flip, ...]
    losses: tuple[float, ...]
    """What each case lost; positive is worse."""
    clusters: tuple[float, ...]
    """The same, summed over each template family: variations of one prompt are one draw."""

    @classmethod
    def of(cls, metric: str, pairs: Sequence[Pair]) -> _Paired:
        """The pairs as `metric` sees them."""
        was, now = _outcomes(pairs)
        flips = tuple(
            Flip(case=p.case, was_correct=w.correct, is_correct=n.correct, was=p.was.answer, now=p.now.answer)
            for p, w, n in zip(pairs, was, now, strict=True)
            if w.correct is not n.correct
        )
        credit, worse = PER_OUTCOME[metric], 1 if SPECS[metric].direction is Direction.HIGHER else -1
        losses = tuple(worse * (credit(w) - credit(n)) for w, n in zip(was, now, strict=True))
        return cls(flips, losses, tuple(sum_by_family(losses, [pair.family for pair in pairs])))

    @property
    def lost(self) -> int:
        """Cases (families count once) that lost more than they gained; partial credit lost is none."""
        return sum(loss > _HALF for loss in self.clusters)

    @property
    def gained(self) -> int:
        """The same, the other way."""
        return sum(loss < -_HALF for loss in self.clusters)

    def interval(self, drift: float) -> tuple[float, float]:
        """Bounds of the net loss, each at the one-sided level of 5 %, shifted by partial credit.

        The lower one asks what of this loss may be luck among the cases that flipped: it is above zero exactly when
        McNemar's test is significant. The upper one asks how much may be lost on cases like these.
        """
        n, lost, gained = len(self.clusters), self.lost, self.gained
        low, _ = net_loss_interval(lost, gained, n, confidence=1 - 2 * ALPHA)
        _, high = net_loss_bounds(lost, gained, n, confidence=1 - 2 * ALPHA)
        partial = drift - (lost - gained) / n
        return low + partial, max(high + partial, low + partial) + self.doubt

    @property
    def doubt(self) -> float:
        """How much more of partial credit may be lost on cases like these than was lost here; 0 where none changed.

        The largest change, times by how much the shares of cases that fell and rose may differ from those seen.
        """
        n = len(self.clusters)
        parts = [loss for loss in self.clusters if CREDIT_GRAIN < abs(loss) <= _HALF]
        if not parts:
            return 0.0
        fell = sum(part > 0 for part in parts)
        more = share_interval(fell, n, confidence=1 - 2 * ALPHA)[1] - fell / n
        fewer = (len(parts) - fell) / n - share_interval(len(parts) - fell, n, confidence=1 - 2 * ALPHA)[0]
        return max(map(abs, parts)) * (more + fewer)


def _unresolved(scope: str, pairs: Sequence[Pair], ground: _Ground) -> tuple[Verdict, str] | None:
    """Why there is nothing to compare, the nearest cause first; None when there is."""
    if failure := ground.result.failure:
        return failure.verdict, failure.reason
    trials = [trial for trial in ground.trials if scope in (ALL, trial.domain)]
    if reason := _unmeasured(trials):
        return Verdict.NOT_MEASURED, reason
    if ground.old is not None and not ground.pairing.pairs and not ground.left_out:
        failure = ground.old.result.failure
        why = failure.reason if failure else "none of these cases was asked of it"
        return Verdict.NOT_MEASURED, f"{ground.old.described} gave no answers: {why}"
    if ground.baseline is None:
        return Verdict.UNBASELINED, "nothing was accepted for this variant yet"
    if ground.differences:
        return Verdict.NOT_COMPARABLE, "; ".join(ground.differences)
    return None if pairs else _unpaired(scope, trials, ground)


def _unmeasured(trials: Sequence[Trial]) -> str | None:
    failed = [trial.case for trial in trials if trial.score.status is TrialStatus.ERROR]
    if failed:
        return f"{len(failed)} of {len(trials)} cases ended in an error: {', '.join(failed[:5])}"
    return None if trials else "it was not part of this run"


def _unpaired(scope: str, trials: Sequence[Trial], ground: _Ground) -> tuple[Verdict, str]:
    changed = [ground.pairing.changed[trial.case] for trial in trials if trial.case in ground.pairing.changed]
    if changed:
        return Verdict.NOT_COMPARABLE, f"every accepted case of '{scope}' asks another question now{_told(changed)}"
    if left_out := _concerning(ground.left_out, scope):
        return Verdict.INCONCLUSIVE, f"no case of it can testify, for {_told_mute(left_out, ground)}"
    if ground.old is not None:
        return Verdict.NOT_MEASURED, f"{ground.old.described} answered no case of '{scope}'"
    return Verdict.UNBASELINED, f"no case of '{scope}' was accepted yet"


def _told_mute(left_out: Sequence[str], ground: _Ground) -> str:
    """Why these cases, all there are, cannot testify."""
    swaying = sum(case in ground.unsteady for case in left_out)
    if not swaying:
        return "all depend on the number of threads"
    if swaying == len(left_out):
        return "all differ from one run to the next"
    rest = len(left_out) - swaying
    return f"{swaying} differ from one run to the next and {rest} depend on the number of threads"


def _told(changed: Sequence[Sequence[str]]) -> str:
    """What the changed cases differ in, each once and at most two; hashes of prompts tell nobody anything."""
    found = list(dict.fromkeys(text for texts in changed for text in texts if not text.startswith("prompt_sha256")))
    more = f" and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return f" ({'; '.join(found[:_MOST_TOLD])}{more})" if found else ""


def _unresolved_comparison(
    metric: str, scope: str, verdict: Verdict | None, reason: str, ground: _Ground
) -> Comparison:
    found = next((m for m in ground.result.measurements if (m.metric, m.scope) == (metric, scope)), None)
    stored = ground.baseline.metrics.get(f"{metric}/{scope}") if ground.baseline else None
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=Aspect.QUALITY,
        tier=ground.tier,
        observed=found.value if found else None,
        baseline=stored.value if stored else None,
        n=len(found.samples) if found else 0,
        unresolved=verdict,
        reason=reason,
        suspects=ground.suspects,
        accepted=ground.accepted,
    )


def _compare_unpaired(ground: _Ground) -> Iterable[Comparison]:
    """The cases that are not compared, each by name, when the others are."""
    if ground.result.failure or ground.baseline is None or ground.differences:
        return
    for case, differences in ground.pairing.changed.items():
        yield _unresolved_comparison("score", case, Verdict.NOT_COMPARABLE, "; ".join(differences), ground)
    missing = (Verdict.UNBASELINED, "nothing was accepted for this case yet")
    if ground.old is not None:
        if ground.old.result.failure:
            return  # said once, of the whole
        missing = (Verdict.NOT_MEASURED, f"{ground.old.described} gave no answer to it")
    for case in ground.pairing.added:
        yield _unresolved_comparison("score", case, *missing, ground)


def _coverage(scope: str, pairs: Sequence[Pair], ground: _Ground) -> str:
    """A note when not every accepted case (side by side: not every case of this run) was compared."""
    accepted = ground.baseline.cases if ground.baseline else {}
    cases = accepted if ground.old is None else [trial.case for trial in ground.trials]
    total = sum(scope in (ALL, _domain_of(case)) for case in cases)
    word = "accepted cases" if ground.old is None else "cases"
    return "" if len(pairs) == total else f"{len(pairs)} of {total} {word} compared"


def _domain_of(case: str) -> str:
    """The first part of a case's id."""
    return case.partition("/")[0]
