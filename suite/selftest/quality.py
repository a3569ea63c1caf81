"""Dosed damage: k of 72 labelled answers are corrupted, and the gate has to say what k deserves."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from suite.gate.answers import answer_of
from suite.gate.compare import compare
from suite.gate.decide import flip_counts
from suite.gate.family import share_out
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY
from suite.metrics import measure
from suite.metrics.catalog import SPECS
from suite.records import (
    ALL,
    Aspect,
    BaselineMetric,
    Baselines,
    Environment,
    Finding,
    Generation,
    Provenance,
    QualityBaseline,
    Score,
    Trial,
    TrialStatus,
    Variant,
    VariantResult,
    Verdict,
)

CASES = 72
DOMAINS = ("code", "extract", "facts", "logic", "math", "words")
DOSES: dict[int, Verdict] = {
    0: Verdict.PASS,
    2: Verdict.INCONCLUSIVE,
    5: Verdict.REGRESSED,
    9: Verdict.REGRESSED,
}
"""Corrupted answers → the verdict on the score over all cases."""
LONE_LEVEL = share_out(["score", "answers"])["score"]
"""What the score over all cases may spend in a run of answers only, where too few changed to be tested."""
MACHINE = Environment(machine="selftest", identity={}, suspects={}, readings={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dosed:
    """What the gate made of one dose."""

    corrupted: int
    verdict: Verdict
    lost: int
    mde: float | None
    """As the finding prints it."""
    enumerated: float | None
    """By counting all outcomes, at the level that was in force."""
    sentence: str


def dose(corrupted: int) -> Dosed:
    """Corrupt so many of the labelled answers and judge all of them as a run would."""
    accepted = [_trial(number, right=True) for number in range(CASES)]
    step = CASES // max(corrupted, 1)
    damaged = {number * step for number in range(corrupted)}  # spread over the domains
    trials = tuple(_trial(number, right=number not in damaged) for number in range(CASES))
    finding = next(f for f in judge_quality(accepted, trials) if (f.metric, f.scope) == ("score", ALL))
    lost, gained = flip_counts(finding.comparison)
    return Dosed(
        corrupted=corrupted,
        verdict=finding.verdict,
        lost=lost,
        mde=finding.comparison.mde,
        enumerated=enumerate_mde(CASES, gained, alpha=finding.p_needed or LONE_LEVEL),
        sentence=finding.sentence,
    )


def judge_quality(accepted: list[Trial], trials: tuple[Trial, ...]) -> tuple[Finding, ...]:
    """The findings of a run with these answers against a baseline of the accepted ones."""
    result = VariantResult(
        variant=Variant(name="dosed", model="kernel", backend="kernel", source="none"),
        artifact=None,
        measurements=measure("dosed", trials, (), ()),
        launches=(),
        failure=None,
        identity={},
        suspects={},
    )
    comparisons = compare(result, trials, Baselines(quality=_accept(accepted)), MACHINE)
    return judge_all([c for c in comparisons if c.aspect is Aspect.QUALITY], DEFAULT_POLICY)


def enumerate_mde(n: int, gained: int, alpha: float = 0.05) -> float | None:
    """The smallest net loss, as a share of `n` cases, that the exact test calls one: all outcomes of the flips are counted."""
    for net in range(1, n - 2 * gained + 1):
        flips = 2 * gained + net
        as_bad = sum(math.comb(flips, lost) for lost in range(gained + net, flips + 1))
        if as_bad / 2**flips <= alpha:
            return net / n
    return None


def _trial(number: int, *, right: bool) -> Trial:
    domain = DOMAINS[number % len(DOMAINS)]
    said = str(number) if right else f"not {number}"
    ids = tuple(said.encode())
    return Trial(
        variant="dosed",
        case=f"{domain}/{number:02}",
        case_version=1,
        domain=domain,
        family=None,
        scorer="exact@1",
        prompt_sha256=f"{number:064x}",
        score=Score(status=TrialStatus.SCORED, value=float(right), correct=right, answer=said),
        generation=Generation(
            token_ids=ids,
            text=said,
            finish_reason="stop",
            prompt_tokens=8,
            evaluated_tokens=8,
            prefill_s=0.1,
            token_times_s=tuple(0.1 * (place + 1) for place in range(len(ids))),
        ),
    )


def _accept(trials: list[Trial]) -> QualityBaseline:
    mine = [dataclasses.replace(trial, variant="dosed") for trial in trials]
    return QualityBaseline(
        model="kernel",
        variant="dosed",
        identity={},
        suspects={},
        provenance=Provenance(accepted="2026-01-01T00:00:00+00:00", reason="labelled answers", run="selftest"),
        metrics={
            f"{m.metric}/{m.scope}": BaselineMetric(value=m.value, unit=SPECS[m.metric].unit)
            for m in measure("dosed", mine, (), ())
            if m.value is not None
        },
        cases={trial.case: answer_of(trial) for trial in mine},
    )
