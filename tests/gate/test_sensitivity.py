"""What could have been seen is told at the level that was in force, and so that it would have been called REGRESSED."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Baselines, Comparison, Finding, Gate, Tier, Tolerance, Trial, Verdict

TIGHT = "which makes the tolerance tighter than the noise allows"


def speed(mean: float, *, se: float = 0.02, metric: str = "decode_tok_s", **changes: Any) -> Comparison:
    return Comparison(
        variant="q4", metric=metric, scope="short", aspect=Aspect.SPEED, tier=Tier.STORED, observed=100.0,
        baseline=100.0, drift=mean, interval=(mean, mean), log_drift=mean, log_se=se, log_df=4, n=5, n_baseline=5,
        **changes,
    )  # fmt: skip


def found(made: Any, then: Sequence[Trial], now: Sequence[Trial], **policy: Tolerance) -> Finding:
    baselines = Baselines(quality=made.quality_baseline(then))
    compared = compare(made.result(trials=now), now, baselines, made.environment)
    findings = judge_all(compared, {**DEFAULT_POLICY, **policy})
    return next(f for f in findings if (f.metric, f.scope) == ("score", "all"))


@pytest.mark.parametrize("metric", ["decode_tok_s", "itl_s"])
@pytest.mark.parametrize("crowd", [1, 12])
@pytest.mark.parametrize("looks", [1, 2])
def test_a_slowdown_as_large_as_printed_is_regressed_and_a_smaller_one_is_not(
    metric: str, crowd: int, looks: int
) -> None:
    others = [speed(0.0, metric=metric)] * (crowd - 1)
    printed = judge_all([speed(0.0, metric=metric, looks=looks), *others], DEFAULT_POLICY)[0].comparison.mde
    assert printed is not None
    log = math.log1p(printed) if metric == "itl_s" else -math.log1p(-printed)
    for shift, verdict in ((1e-6, Verdict.REGRESSED), (-1e-6, Verdict.INCONCLUSIVE)):
        compared = speed(log + shift, metric=metric, looks=looks)
        assert judge_all([compared, *others], DEFAULT_POLICY)[0].verdict is verdict


@pytest.mark.parametrize("lost", range(6))
def test_of_72_unrelated_cases_five_are_printed_however_many_were_lost(made: Any, lost: int) -> None:
    then = made.trials(*[1.0] * 72)
    now = made.trials(*[0.0] * lost, *[1.0] * (72 - lost))
    finding = found(made, then, now)
    assert finding.comparison.mde == 5 / 72
    assert (finding.verdict is Verdict.REGRESSED) is (lost >= 5)
    assert "could have seen 6.9 points" in finding.sentence


def test_a_family_is_one_draw_in_what_could_be_seen(made: Any) -> None:
    then = [made.trial(f"math/{n:02}", 1.0, family=f"f{n // 2}") for n in range(40)]
    now = [*then[:-1], dataclasses.replace(then[-1], generation=made.trial("math/x", 1.0, tokens=(1, 2)).generation)]
    assert found(made, then, now).comparison.mde == 5 / 20


def test_gains_make_it_harder_to_see_a_loss(made: Any) -> None:
    then, now = made.trials(0.0, *[1.0] * 71), made.trials(1.0, *[1.0] * 71)
    assert found(made, then, now).comparison.mde == 6 / 72  # 7 lost and 1 gained: 9 of 256


def test_too_few_cases_show_no_loss_at_all(made: Any) -> None:
    then, now = made.trials(*[1.0] * 4), made.trials(0.0, *[1.0] * 3)
    finding = found(made, then, now)
    assert finding.comparison.mde is None
    assert "4 cases are too few to show any loss" in finding.sentence


def test_what_only_informs_is_told_at_a_level_of_its_own(made: Any) -> None:
    then, now = made.trials(*[1.0] * 72), made.trials(0.0, *[1.0] * 71)
    informing = Tolerance(absolute=0.05, gate=Gate.INFO)
    assert found(made, then, now, **{"score/all": informing}).comparison.mde == 5 / 72


@pytest.mark.parametrize(("se", "tight"), [(0.02, False), (0.08, True)])
def test_a_tolerance_is_too_tight_when_an_unchanged_speed_could_not_have_passed(se: float, tight: bool) -> None:
    (finding,) = judge_all([speed(0.0, se=se)], DEFAULT_POLICY)
    assert (finding.verdict is not Verdict.PASS) is tight
    assert (TIGHT in finding.sentence) is tight


@pytest.mark.parametrize(("cases", "tight"), [(72, False), (40, True)])
def test_a_tolerance_is_too_tight_when_not_even_zero_flips_could_have_passed(
    made: Any, cases: int, tight: bool
) -> None:
    then = made.trials(*[1.0] * cases)
    now = [made.trial(trial.case, 1.0, tokens=(7, 7)) for trial in then]  # other words, the same grades
    finding = found(made, then, now)
    assert (finding.verdict is not Verdict.PASS) is tight
    assert (TIGHT in finding.sentence) is tight


def test_identical_answers_pass_whatever_the_tolerance(made: Any) -> None:
    then = made.trials(*[1.0] * 12)
    finding = found(made, then, then)
    assert (finding.verdict, TIGHT in finding.sentence) == (Verdict.PASS, False)
    assert finding.comparison.mde == 5 / 12
