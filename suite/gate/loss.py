"""What a variant costs against the reference of the same run: a question of its own, apart from drift.

Prompts are a sample here, so a loss of answers is bounded for prompts like these and not only for these; cases made from
one template are one draw, and count once. Speed-up and memory come from launches that stood side by side.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from suite.gate.budget_plan import ANSWERS, MEMORY, budget_for
from suite.gate.loss_wording import Background, sentence
from suite.metrics.fidelity import kld_interval, measure_fidelity
from suite.metrics.quality import MEASURED, Outcome, outcome_of
from suite.metrics.speed import speedup
from suite.records import ALL, Budget, Forced, Loss, Measurement, Trial, TrialStatus, VariantResult
from suite.stats.beta import beta_quantile
from suite.stats.binomial import net_loss_bounds
from suite.stats.intervals import interval_of, paired_mean, spend
from suite.stats.power import detectable_loss
from suite.stats.signflip import sign_flip_p

ALPHA = 0.05
"""Both ends of an interval together; each end holds at half of it."""

POWER = 0.8
"""The chance with which a loss of the stated size would be seen."""

MEAN_KLD = "mean_kld"

_GRAIN = 1e-9
_LARGEST_ENUMERATED = 1000

Answer = Literal["within budget", "over budget", "cannot tell", "no budget", "not measured"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One case answered by the reference and by the variant."""

    domain: str
    group: tuple[bool, str]
    """Cases of one template family share it, whatever their domain."""
    reference: Outcome
    variant: Outcome
    identical: bool


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every loss of one variant shares."""

    result: VariantResult
    reference: VariantResult
    pairs: tuple[_Pair, ...]
    failed: Mapping[str, tuple[str, ...]]
    """By domain, the cases of which either side has no answer because of an error."""
    budgets: Mapping[str, Budget]
    looks: int


def losses(  # noqa: PLR0913 - both sides, and what a run holds of them
    result: VariantResult,
    trials: Sequence[Trial],
    reference: VariantResult,
    reference_trials: Sequence[Trial],
    budgets: Mapping[str, Budget],
    *,
    looks: int = 1,
    forced: Sequence[Forced] = (),
) -> tuple[Loss, ...]:
    """What `result` costs against `reference`: answers and fidelity over all and by domain, speed-up by scenario, memory.

    Trials and what was `forced` of other variants are left out. `looks` is how often these data were judged so far, this
    time included: the interval of the speed-up widens with it. The reference has no loss against itself: (). A variant, or a
    reference, that failed has one loss, ``not measured``, with the reason.
    """
    if result.variant.name == reference.variant.name:
        return ()
    ground = _survey(result, trials, reference, reference_trials, budgets, looks)
    for side in (result, reference):
        if side.failure:
            return (_not_measured("score", ALL, f"{side.variant.name} is {side.failure.verdict}", ground),)
    diverged = divergences(result, forced, reference.variant.name, budgets)
    return (*_answer_losses(ground), *diverged, *_speed_losses(ground), *_memory_losses(ground))


def _survey(
    result: VariantResult,
    trials: Sequence[Trial],
    reference: VariantResult,
    reference_trials: Sequence[Trial],
    budgets: Mapping[str, Budget],
    looks: int,
) -> _Ground:
    theirs = {trial.case: trial for trial in reference_trials if trial.variant == reference.variant.name}
    both = [(theirs[t.case], t) for t in trials if t.variant == result.variant.name and t.case in theirs]
    failed: dict[str, tuple[str, ...]] = {}
    pairs = []
    for there, here in both:
        if _is_broken(there, here):
            failed[here.domain] = (*failed.get(here.domain, ()), here.case)
        else:
            pairs.append(_pair(there, here))
    return _Ground(result, reference, tuple(pairs), failed, budgets, looks)


def _is_broken(reference: Trial, variant: Trial) -> bool:
    return TrialStatus.ERROR in (reference.score.status, variant.score.status)


def _pair(reference: Trial, variant: Trial) -> _Pair:
    before, now = outcome_of(reference), outcome_of(variant)
    ids = [trial.generation.token_ids if trial.generation else None for trial in (reference, variant)]
    family = (variant.family is not None, variant.family or variant.case)
    same = ids[0] == ids[1] and dataclasses.replace(before, domain="") == dataclasses.replace(now, domain="")
    return _Pair(variant.domain, family, before, now, same)


def lost_credit(variant: str, reference: str, trials: Sequence[Trial]) -> list[float]:
    """The credit that each independent case lost (positive is worse; the mean of a family), as `losses` has it.

    A case of which either side ended in an error is left out.
    """
    theirs = {trial.case: trial for trial in trials if trial.variant == reference}
    both = [(theirs[t.case], t) for t in trials if t.variant == variant and t.case in theirs]
    pairs = [_pair(there, here) for there, here in both if not _is_broken(there, here)]
    return _by_group(pairs, lambda pair: MEASURED["score"](pair.reference) - MEASURED["score"](pair.variant))


# ------------------------------------------------------------------------------------------------------- answers


def _answer_losses(ground: _Ground) -> Iterator[Loss]:
    domains = sorted({pair.domain for pair in ground.pairs} | set(ground.failed))
    for metric in ANSWERS if domains else ():
        for scope in (ALL, *domains):
            yield _answer_loss(metric, scope, ground)


def _answer_loss(metric: str, scope: str, ground: _Ground) -> Loss:
    failed = [case for domain, cases in ground.failed.items() if scope in (ALL, domain) for case in cases]
    if failed:
        return _not_measured(metric, scope, f"{len(failed)} cases ended in an error: {', '.join(failed[:5])}", ground)
    pairs = [pair for pair in ground.pairs if scope in (ALL, pair.domain)]
    background = Background(
        reference=ground.reference.variant.name,
        cases=len(pairs),
        identical=all(pair.identical for pair in pairs),
    )
    build = _length_ratio if metric == "output_tokens" else _net_loss
    return _concluded(build(metric, scope, pairs, ground), background)


def _net_loss(metric: str, scope: str, pairs: Sequence[_Pair], ground: _Ground) -> Loss:
    """Share of credit lost net of what was gained, or the rise of a rate; each family counts once."""
    better = 1 if metric in ("score", "exact") else -1
    read = MEASURED[metric]
    groups = _by_group(pairs, lambda pair: better * (read(pair.reference) - read(pair.variant)))
    flip = MEASURED["exact" if metric == "score" else metric]
    flips = [better * (flip(pair.reference) - flip(pair.variant)) for pair in pairs]
    budget = budget_for(ground.budgets, metric, scope)
    return Loss(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        value=statistics.fmean(groups),
        interval=bounds(groups),
        n=len(groups),
        lost=sum(change > 0 for change in flips),
        gained=sum(change < 0 for change in flips),
        mde=detectable(len(groups), budget.limit if budget else None),
        budget=budget,
    )


def _length_ratio(metric: str, scope: str, pairs: Sequence[_Pair], ground: _Ground) -> Loss:
    """Geometric mean of the ratios of answer lengths; an answer of no token counts as one token."""
    logs = _by_group(pairs, lambda p: math.log(max(p.variant.tokens, 1) / max(p.reference.tokens, 1)))
    return _from_logs(metric, scope, logs, ALPHA, ground)


def _by_group(pairs: Sequence[_Pair], read: Callable[[_Pair], float]) -> list[float]:
    """The mean of each family, and of each case that has none: one number for each independent draw."""
    members: dict[tuple[bool, str], list[float]] = {}
    for pair in pairs:
        members.setdefault(pair.group, []).append(read(pair))
    return [statistics.fmean(values) for values in members.values()]


def bounds(changes: Sequence[float]) -> tuple[float, float]:
    """Bounds of the true mean of independent `changes` within -1..1 (positive is a loss); each end holds at 97.5 %.

    Credit that was lost and credit that was gained are summed to whole cases, rounded to the unfavourable side, and
    bounded as counts: with losses of 0 and 1 only, that is exact. An exact sign-flip test that finds a loss (or a gain)
    moves the end of the interval to zero, since the bounds of the counts are the more cautious of the two.
    """
    lost = math.fsum(max(change, 0.0) for change in changes)
    gained = math.fsum(max(-change, 0.0) for change in changes)
    n, tail = len(changes), ALPHA / 2
    low, _ = net_loss_bounds(_floor(lost), _ceil(gained), n, confidence=1 - ALPHA)
    _, high = net_loss_bounds(_ceil(lost), _floor(gained), n, confidence=1 - ALPHA)
    if lost > gained and sign_flip_p(changes) <= tail:
        low = max(low, 0.0)
    if gained > lost and sign_flip_p([-change for change in changes]) <= tail:
        high = min(high, 0.0)
    return low, high


def _floor(amount: float) -> int:
    return math.floor(amount + _GRAIN)


def _ceil(amount: float) -> int:
    return math.ceil(amount - _GRAIN)


@cache
def detectable(n: int, limit: float | None) -> float | None:
    """The smallest true loss (share of `n` independent cases, nothing gained) that is seen with a chance of 80 %.

    Seen means: the exact one-sided test finds a loss at all or, with a `limit`, the whole interval lies beyond it. None
    when no loss would be.
    """
    if limit is None or limit <= 0:
        return detectable_loss(min(n, _LARGEST_ENUMERATED), ALPHA / 2, POWER)
    beyond = (k for k in range(_ceil(limit * n), n + 1) if net_loss_bounds(k, 0, n)[0] > limit + _GRAIN)
    fewest = next(beyond, None)
    if not fewest:
        return None
    return beta_quantile(fewest, n - fewest + 1, POWER)  # P(Binomial(n, this) >= fewest) = POWER


# ------------------------------------------------------------------------------------------------------ fidelity


def divergences(
    result: VariantResult, forced: Sequence[Forced], reference: str, budgets: Mapping[str, Budget]
) -> tuple[Loss, ...]:
    """Mean KL divergence of a variant from the reference, nats: over all and by domain, as far as it was `forced`.

    It takes the trace, and no reference beside it. The reference has none against itself.
    """
    own = [one for one in forced if one.variant == result.variant.name and one.path == "batched"]
    if result.variant.name == reference or not own:
        return ()
    scopes = (ALL, *sorted({one.domain for one in own}))
    return tuple(
        _divergence(scope, [one for one in own if scope in (ALL, one.domain)], result, reference, budgets)
        for scope in scopes
    )


def _divergence(
    scope: str, forced: Sequence[Forced], result: VariantResult, reference: str, budgets: Mapping[str, Budget]
) -> Loss:
    measured = next((m for m in measure_fidelity(forced) if (m.metric, m.scope) == (MEAN_KLD, ALL)), None)
    loss = Loss(
        variant=result.variant.name,
        metric=MEAN_KLD,
        scope=scope,
        value=measured.value if measured else None,
        interval=kld_interval(forced, 1 - ALPHA),
        n=len({(one.family is not None, one.family or one.case) for one in forced}),
        budget=budget_for(budgets, MEAN_KLD, scope),
    )
    doubt = "" if loss.value is not None else (measured and measured.reason) or "it was not forced"
    return _concluded(loss, Background(reference=reference, cases=len(forced), doubt=doubt))


# ----------------------------------------------------------------------------------------------- speed and memory


def _speed_losses(ground: _Ground) -> Iterator[Loss]:
    found = [m for m in ground.result.measurements if m.metric == "speedup"]
    name = ground.reference.variant.name
    for measured in found or speedup([ground.result, ground.reference], name)[ground.result.variant.name]:
        if measured.value is None or not measured.samples:
            yield _not_measured("speedup", measured.scope, measured.reason or "no launch has clean samples", ground)
        else:
            yield _speed_loss(measured, ground)


def _speed_loss(measured: Measurement, ground: _Ground) -> Loss:
    alpha = 2 * spend(ALPHA, ground.looks)
    loss = _from_logs("speedup", measured.scope, [math.log(ratio) for ratio in measured.samples], alpha, ground)
    background = Background(
        reference=ground.reference.variant.name,
        confidence=1 - alpha,
        doubt=f"the machine was not ours: {measured.reason}" if measured.status == "contended" else "",
    )
    return _concluded(loss, background)


def _memory_losses(ground: _Ground) -> Iterator[Loss]:
    for metric in MEMORY:
        mine, theirs = (_value(side, metric) for side in (ground.result, ground.reference))
        if mine and theirs:
            loss = Loss(
                variant=ground.result.variant.name,
                metric=metric,
                scope=ALL,
                value=mine / theirs,
                interval=None,
                n=len(ground.result.launches),
                budget=budget_for(ground.budgets, metric, ALL),
            )
            yield _concluded(loss, Background(reference=ground.reference.variant.name))


def _value(result: VariantResult, metric: str) -> float | None:
    return next((m.value for m in result.measurements if (m.metric, m.scope) == (metric, ALL)), None)


# ------------------------------------------------------------------------------------------------------- answers


def _from_logs(metric: str, scope: str, logs: Sequence[float], alpha: float, ground: _Ground) -> Loss:
    estimate = paired_mean(logs)
    low, high = interval_of(estimate, 1 - alpha) if estimate else (0.0, 0.0)
    return Loss(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        value=math.exp(statistics.fmean(logs)),
        interval=(math.exp(low), math.exp(high)) if estimate else None,
        n=len(logs),
        mde=math.expm1((high - low) / 2) if estimate else None,
        budget=budget_for(ground.budgets, metric, scope),
    )


def _concluded(loss: Loss, background: Background) -> Loss:
    answered = dataclasses.replace(loss, answer="cannot tell" if loss.budget and background.doubt else answer(loss))
    return dataclasses.replace(answered, sentence=sentence(answered, background))


def answer(loss: Loss) -> Answer:
    """Where the interval lies: the bad end inside the budget, the good end outside, or neither.

    Memory has no interval and is answered by its value; any other quantity without an interval cannot be told.
    """
    if loss.value is None:
        return "not measured"
    if loss.budget is None:
        return "no budget"
    interval = (loss.value, loss.value) if loss.metric in MEMORY else loss.interval
    if interval is None:
        return "cannot tell"
    low, high = interval
    limit = loss.budget.limit
    if loss.metric == "speedup":  # the only one of which more is better
        low, high, limit = -high, -low, -limit
    if high <= limit + _GRAIN:
        return "within budget"
    return "over budget" if low > limit + _GRAIN else "cannot tell"


def _not_measured(metric: str, scope: str, reason: str, ground: _Ground) -> Loss:
    loss = Loss(
        variant=ground.result.variant.name,
        metric=metric,
        scope=scope,
        value=None,
        interval=None,
        n=0,
        budget=budget_for(ground.budgets, metric, scope),
        answer="not measured",
    )
    return dataclasses.replace(
        loss, sentence=sentence(loss, Background(reference=ground.reference.variant.name, doubt=reason))
    )
