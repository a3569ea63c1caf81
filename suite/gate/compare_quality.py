"""Quality now beside the accepted answers, paired case by case over the cases that ask the same question.

Both sides are computed over the same paired cases, so a run of some cases, or a case whose version was raised, does not
move what is compared; it is named instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suite.gate.answers import Pair, Pairing, is_same_answer, outcome_of_answer, pair_answers
from suite.gate.differences import describe_accepted, describe_differences, quality_identity, quality_suspects
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
from suite.stats.binomial import ALPHA, net_loss_interval, smallest_significant_loss
from suite.stats.signflip import sign_flip_p

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


def compare_quality(
    result: VariantResult,
    trials: Sequence[Trial],
    baseline: QualityBaseline | None,
    environment: Environment,
    planned: Sequence[GateItem],
) -> tuple[Comparison, ...]:
    """Comparisons of ``all`` and each domain, then one for each case that cannot be paired (scope: the case)."""
    ground = _survey(result, trials, baseline, environment)
    wanted = [(item.metric, item.scope) for item in planned if item.aspect is Aspect.QUALITY]
    keys = dict.fromkeys([*wanted, *(_default_keys(ground) if ground.trials or not planned else [])])
    whole = tuple(_compare_one(metric, scope, ground) for metric, scope in keys)
    return whole + tuple(_compare_unpaired(ground))


def _survey(
    result: VariantResult, trials: Sequence[Trial], baseline: QualityBaseline | None, environment: Environment
) -> _Ground:
    own = tuple(trial for trial in trials if trial.variant == result.variant.name)
    suspects = quality_suspects(result, environment)
    return _Ground(
        result=result,
        trials=own,
        baseline=baseline,
        pairing=pair_answers(own, baseline.cases if baseline else {}),
        differences=describe_differences(baseline.identity, quality_identity(result)) if baseline else (),
        suspects=describe_differences(baseline.suspects, suspects) if baseline else (),
    )


def _default_keys(ground: _Ground) -> Iterable[tuple[str, str]]:
    domains = sorted({trial.domain for trial in ground.trials})
    for metric in PER_OUTCOME if domains else ():
        for scope in [*domains, ALL] if metric in ("score", "exact") else [ALL]:
            yield metric, scope


def _compare_one(metric: str, scope: str, ground: _Ground) -> Comparison:
    pairs = [pair for pair in ground.pairing.pairs if scope in (ALL, pair.domain)]
    unresolved = _unresolved(scope, pairs, ground)
    if unresolved:
        return _unresolved_comparison(metric, scope, *unresolved, ground)
    was, now = (
        [outcome_of_answer(p.domain, a) for p, a in zip(pairs, side, strict=True)]
        for side in ([p.was for p in pairs], [p.now for p in pairs])
    )
    then, observed = mean_of(metric, was), mean_of(metric, now)
    paired = _Paired.of(metric, pairs, was, now) if metric in ("score", "exact") else None
    drift = then - observed if SPECS[metric].direction is Direction.HIGHER else observed - then
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=Aspect.QUALITY,
        tier=Tier.STORED,
        observed=observed,
        baseline=then,
        drift=drift,
        interval=paired.interval(drift) if paired else None,
        mde=paired.mde if paired else None,
        p_value=sign_flip_p(paired.losses) if paired else None,
        p_gain=sign_flip_p([-loss for loss in paired.losses]) if paired else None,
        n=len(pairs),
        identical=all(is_same_answer(pair) for pair in pairs),
        flips=paired.flips if paired else (),
        reason=_coverage(scope, pairs, ground),
        suspects=ground.suspects,
        accepted=describe_accepted(ground.baseline) if ground.baseline else "",
    )


@dataclass(frozen=True, slots=True)
class _Paired:
    """Flips and losses of credit among paired cases."""

    flips: tuple[Flip, ...]
    losses: tuple[float, ...]
    """Was - now, for each case."""

    @classmethod
    def of(cls, metric: str, pairs: Sequence[Pair], was: Sequence[Outcome], now: Sequence[Outcome]) -> _Paired:
        flips = tuple(
            Flip(case=p.case, was_correct=w.correct, is_correct=n.correct, was=p.was.answer, now=p.now.answer)
            for p, w, n in zip(pairs, was, now, strict=True)
            if w.correct is not n.correct
        )
        credit = PER_OUTCOME[metric]
        return cls(flips, tuple(credit(w) - credit(n) for w, n in zip(was, now, strict=True)))

    @property
    def n(self) -> int:
        return len(self.losses)

    @property
    def lost(self) -> int:
        return sum(flip.was_correct for flip in self.flips)

    @property
    def gained(self) -> int:
        return len(self.flips) - self.lost

    @property
    def mde(self) -> float | None:
        """Smallest net loss, as a share of the cases, that McNemar's test would call one, given these gains."""
        smallest = smallest_significant_loss(self.n, gained=self.gained)
        return None if smallest is None else smallest / self.n

    def interval(self, drift: float) -> tuple[float, float]:
        """Bounds of the net loss from flips, shifted by the partial credit that was lost without a flip.

        Each bound holds at the one-sided level of the test: the lower one is above zero exactly when McNemar's test is
        significant.
        """
        low, high = net_loss_interval(self.lost, self.gained, self.n, confidence=1 - 2 * ALPHA)
        partial = drift - (self.lost - self.gained) / self.n
        return low + partial, high + partial


def _unresolved(scope: str, pairs: Sequence[Pair], ground: _Ground) -> tuple[Verdict, str] | None:
    """Why there is nothing to compare, the nearest cause first; None when there is."""
    if failure := ground.result.failure:
        return failure.verdict, failure.reason
    trials = [trial for trial in ground.trials if scope in (ALL, trial.domain)]
    if reason := _unmeasured(trials):
        return Verdict.NOT_MEASURED, reason
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
    return Verdict.UNBASELINED, f"no case of '{scope}' was accepted yet"


def _told(changed: Sequence[Sequence[str]]) -> str:
    """What the changed cases differ in, each once and at most two; hashes of prompts tell nobody anything."""
    found = list(dict.fromkeys(text for texts in changed for text in texts if not text.startswith("prompt_sha256")))
    more = f" and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return f" ({'; '.join(found[:_MOST_TOLD])}{more})" if found else ""


def _unresolved_comparison(metric: str, scope: str, verdict: Verdict, reason: str, ground: _Ground) -> Comparison:
    found = next((m for m in ground.result.measurements if (m.metric, m.scope) == (metric, scope)), None)
    stored = ground.baseline.metrics.get(f"{metric}/{scope}") if ground.baseline else None
    return Comparison(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        aspect=Aspect.QUALITY,
        tier=Tier.STORED if ground.baseline else Tier.NONE,
        observed=found.value if found else None,
        baseline=stored.value if stored else None,
        n=len(found.samples) if found else 0,
        unresolved=verdict,
        reason=reason,
        suspects=ground.suspects,
        accepted=describe_accepted(ground.baseline) if ground.baseline else "",
    )


def _compare_unpaired(ground: _Ground) -> Iterable[Comparison]:
    """The cases that are not compared, each by name, when the others are."""
    if ground.result.failure or ground.baseline is None or ground.differences:
        return
    for case, differences in ground.pairing.changed.items():
        yield _unresolved_comparison("score", case, Verdict.NOT_COMPARABLE, "; ".join(differences), ground)
    for case in ground.pairing.added:
        reason = "nothing was accepted for this case yet"
        yield _unresolved_comparison("score", case, Verdict.UNBASELINED, reason, ground)


def _coverage(scope: str, pairs: Sequence[Pair], ground: _Ground) -> str:
    """A note when not every accepted case was compared; a case's domain is the first part of its id."""
    accepted = ground.baseline.cases if ground.baseline else {}
    total = sum(scope in (ALL, case.partition("/")[0]) for case in accepted)
    return "" if len(pairs) == total else f"{len(pairs)} of {total} accepted cases compared"
