"""Everything that a run tests, judged together: how the 5 % are shared out, and what is called."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy
import pytest

from suite.gate.compare import compare
from suite.gate.family import ALPHA, INFORMING, SHARES, decide_all, share_out
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY
from suite.metrics.catalog import SPECS
from suite.records import Baselines, Comparison, Finding, Gate, Tier, Tolerance, Trial, Verdict
from suite.stats.binomial import mcnemar_p

DOMAINS = ("code", "math", "reasoning")
SPEEDS = ("itl_s", "decode_tok_s", "prefill_tok_s", "ttft_s")


def speed(log_drift: float, *, metric: str = "itl_s", se: float = 0.01, looks: int = 1, **changes: Any) -> Comparison:
    """A comparison of speed with 8 degrees of freedom."""
    return Comparison(
        **{
            "variant": "q4", "metric": metric, "scope": "short", "aspect": SPECS[metric].aspect, "tier": Tier.STORED,
            "observed": 1.0, "baseline": 1.0, "drift": math.expm1(log_drift), "log_drift": log_drift, "log_se": se,
            "log_df": 8.0, "n": 5, "n_baseline": 5, "looks": looks, **changes,
        }
    )  # fmt: skip


def answers(lost: int, *, scope: str = "all", variant: str = "q4", n: int = 72, metric: str = "score") -> Comparison:
    """A comparison of answers of which so many were lost and none gained."""
    return Comparison(
        variant=variant, metric=metric, scope=scope, aspect=SPECS[metric].aspect, tier=Tier.STORED, observed=0.5,
        baseline=0.5 + lost / n, drift=lost / n, interval=(0.0, 1.0), p_value=mcnemar_p(lost, 0), p_least=2.0**-lost,
        p_gain=1.0, n=n,
    )  # fmt: skip


def judged(*comparisons: Comparison) -> list[Finding]:
    return list(judge_all(comparisons, DEFAULT_POLICY))


def corrupted(made: Any, lost: int) -> tuple[Sequence[Trial], Sequence[Trial]]:
    """72 right answers in three domains, and the same with some of them wrong, spread over the domains."""
    cases = [f"{domain}/{number:02}" for number in range(24) for domain in DOMAINS]
    then = [made.trial(case, 1.0) for case in cases]
    return then, [made.trial(case, 0.0 if index < lost else 1.0) for index, case in enumerate(cases)]


def whole_run(made: Any, lost: int) -> dict[tuple[str, str], Finding]:
    """Everything that a run says of a variant with so many corrupted answers and the speed that it always had."""
    then, now = corrupted(made, lost)
    launches = {f"{metric}/short": (100.0, 101.0, 99.0, 100.5, 99.5) for metric in SPEEDS}
    timed = [made.speed(key.partition("/")[0], values) for key, values in launches.items()]
    baselines = Baselines(quality=made.quality_baseline(then), speed=made.speed_baseline(launches))
    found = compare(made.result(*timed, trials=now), now, baselines, made.environment)
    return {(finding.metric, finding.scope): finding for finding in judge_all(found, DEFAULT_POLICY)}


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (0, Verdict.PASS), (2, Verdict.INCONCLUSIVE), (4, Verdict.INCONCLUSIVE), (5, Verdict.REGRESSED),
        (9, Verdict.REGRESSED),
    ],
)  # fmt: skip
def test_corrupted_answers_of_72_are_called_by_how_many_they_are(made: Any, lost: int, verdict: Verdict) -> None:
    findings = whole_run(made, lost)
    finding = findings["score", "all"]
    assert finding.verdict is verdict
    smallest = next(net for net in itertools.count(1) if sum(math.comb(net, k) for k in (net,)) / 2**net <= 0.05)
    assert finding.comparison.mde == smallest / 72 == 5 / 72
    assert "could have seen 6.9 points" in finding.sentence
    blocked = {key for key, f in findings.items() if f.verdict is Verdict.REGRESSED and f.gate is Gate.BLOCK}
    assert blocked == ({("score", "all")} if verdict is Verdict.REGRESSED else set())
    assert {findings["itl_s", "short"].verdict, findings["decode_tok_s", "short"].verdict} <= {
        Verdict.PASS, Verdict.INCONCLUSIVE
    }  # fmt: skip


def test_other_words_with_the_same_grades_pass_with_72_cases(made: Any) -> None:
    then, _ = corrupted(made, 0)
    now = [made.trial(trial.case, 1.0, tokens=(7, 7)) for trial in then]
    found = compare(made.result(trials=now), now, Baselines(quality=made.quality_baseline(then)), made.environment)
    finding = next(f for f in judge_all(found, DEFAULT_POLICY) if (f.metric, f.scope) == ("score", "all"))
    assert (finding.verdict, finding.comparison.identical) == (Verdict.PASS, False)


def test_the_level_is_shared_out_among_what_the_run_holds() -> None:
    assert sum(SHARES.values()) == pytest.approx(1)
    assert share_out(["score", "speed", "answers"]) == pytest.approx(
        {"score": 0.032, "speed": 0.012, "answers": 0.006, INFORMING: ALPHA}
    )
    assert share_out(["speed", "speed"]) == {"speed": ALPHA, INFORMING: ALPHA}
    assert sum(share_out(["score", "speed"]).values()) == pytest.approx(2 * ALPHA)
    assert share_out([]) == {INFORMING: ALPHA}


def test_each_gate_needs_the_level_of_its_share_and_its_number() -> None:
    run = [answers(9), answers(9, scope="math"), *(speed(0.0, metric=metric) for metric in SPEEDS[:3])]
    findings = judged(*run)
    assert [f.p_needed for f in findings] == pytest.approx([0.032, 0.006, *[0.012 / 3 / 4] * 3])
    assert [f.family for f in findings] == [1, 1, 3, 3, 3]
    assert findings[0].p_value == mcnemar_p(9, 0)
    alone = judged(speed(0.0))[0]
    assert alone.p_needed == pytest.approx(ALPHA / 4)
    assert alone.family == 1


def test_what_could_not_be_called_whatever_happened_leaves_its_share_to_the_others() -> None:
    silent = judged(answers(4), answers(4, scope="math"), speed(0.0))
    assert silent[2].p_needed == pytest.approx(ALPHA / 4)
    assert [f.p_needed for f in silent[:2]] == [0.0, 0.0]
    assert {f.verdict for f in silent[:2]} == {Verdict.INCONCLUSIVE}


def test_five_losses_are_a_verdict_once_and_not_in_nine_variants_at_once() -> None:
    assert judged(answers(5), speed(0.0))[0].verdict is Verdict.REGRESSED
    nine = judged(*(answers(5, variant=f"v{number}") for number in range(9)))
    assert {f.verdict for f in nine} == {Verdict.INCONCLUSIVE}
    assert "so few changed answers may be luck" in nine[0].sentence
    heavy = judged(*(answers(9, variant=f"v{number}") for number in range(9)))
    assert {f.verdict for f in heavy} == {Verdict.REGRESSED}


def test_five_losses_are_a_verdict_beside_a_variant_that_lost_nearly_everything() -> None:
    findings = judged(answers(5), answers(60, variant="broken"), *(answers(2, variant=f"v{n}") for n in range(7)))
    assert [f.verdict for f in findings[:2]] == [Verdict.REGRESSED] * 2


def test_a_drift_that_would_be_called_alone_is_not_among_many_and_says_so() -> None:
    drift = math.log1p(0.10) + 0.03
    assert judged(speed(drift))[0].verdict is Verdict.REGRESSED
    crowd = judged(speed(drift), *(speed(0.0, variant=f"v{number}") for number in range(40)))
    assert crowd[0].verdict is Verdict.INCONCLUSIVE
    assert (crowd[0].p_value or 1) > (crowd[0].p_needed or 0)
    assert crowd[0].family == 41


def test_pass_is_earned_by_each_alone() -> None:
    drift = math.log1p(0.10) - 0.025
    assert judged(speed(drift))[0].verdict is Verdict.PASS
    assert {f.verdict for f in judged(*(speed(drift, variant=f"v{number}") for number in range(40)))} == {Verdict.PASS}


def test_what_only_informs_takes_nothing_from_the_gates_and_is_judged_by_itself() -> None:
    gates = [speed(0.3), answers(5)]
    informing = [speed(1.0, metric="load_s", variant=f"v{number}") for number in range(30)]
    informing += [answers(12, metric="exact", variant=f"v{number}") for number in range(30)]
    alone, beside = judged(*gates), judged(*gates, *informing)
    assert [f.p_needed for f in beside[:2]] == [f.p_needed for f in alone]
    assert [f.verdict for f in beside[:2]] == [Verdict.REGRESSED] * 2
    assert {(f.verdict, f.gate) for f in beside[2:]} == {(Verdict.REGRESSED, Gate.INFO)}


def test_an_accusation_may_spend_most_at_the_second_look_and_the_rest_half_of_what_is_left() -> None:
    drift = math.log1p(0.10) + 0.0265
    first, second, third = (judged(speed(drift, looks=looks))[0] for looks in (1, 2, 3))
    assert [f.p_needed for f in (first, second, third)] == pytest.approx([ALPHA / 4, ALPHA / 2, ALPHA / 8])
    assert first.p_value == second.p_value == third.p_value
    assert [f.verdict for f in (first, second)] == [Verdict.INCONCLUSIVE, Verdict.REGRESSED]
    within = math.log1p(0.10) - 0.025
    assert [judged(speed(within, looks=looks))[0].verdict for looks in (1, 2)] == [Verdict.PASS, Verdict.INCONCLUSIVE]
    gained = -math.log1p(0.10) - 0.025
    assert [judged(speed(gained, looks=looks))[0].verdict for looks in (1, 2)] == [Verdict.IMPROVED, Verdict.PASS]


def test_another_look_at_one_variant_makes_it_no_easier_for_the_rest() -> None:
    others = [speed(0.0, variant=f"v{number}") for number in range(3)]
    once = judged(speed(0.3), *others)
    again = judged(speed(0.3, looks=3), *others)
    assert again[0].p_needed == pytest.approx((once[0].p_needed or 0) / 2)
    assert [f.p_needed for f in again[1:]] == [f.p_needed for f in once[1:]]


def test_what_has_no_numbers_takes_part_in_nothing() -> None:
    gone = speed(0.0, unresolved=Verdict.NOT_MEASURED)
    busy = speed(0.0, contended="pressure 50 %")
    bare = dataclasses.replace(speed(0.0), log_drift=None)
    findings = judged(speed(0.0), gone, busy, bare)
    assert [f.verdict for f in findings] == [
        Verdict.PASS, Verdict.NOT_MEASURED, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE
    ]  # fmt: skip
    assert findings[0].family == 1
    assert {f.p_value for f in findings[1:]} == {None}


def test_decisions_do_not_depend_on_the_order() -> None:
    run = [answers(5), answers(9, scope="math"), *(speed(0.1 + 0.02 * k, variant=f"v{k}") for k in range(5))]
    items = [(found, DEFAULT_POLICY.get(found.metric, Tolerance())) for found in run]
    assert decide_all(items[::-1]) == decide_all(items)[::-1]


def test_a_run_in_which_everything_sits_on_its_tolerance_is_called_at_most_at_the_level() -> None:
    """Twenty speeds whose truth is the tolerance itself and two sets of answers that flip by chance, judged once."""
    generator = numpy.random.default_rng(13)
    runs, wrong = 500, 0
    draws = math.log1p(0.10) + 0.01 * generator.standard_t(8, (runs, 20))
    flips = generator.binomial(12, 0.5, (runs, 2))
    for speeds, lost in zip(draws.tolist(), flips.tolist(), strict=True):
        run = [speed(value, variant=f"v{number}") for number, value in enumerate(speeds)]
        run += [
            dataclasses.replace(answers(5, scope=scope), p_value=mcnemar_p(k, 12 - k), p_least=2.0**-12, drift=1.0)
            for scope, k in zip(("all", "math"), lost, strict=True)
        ]
        items = [(found, Tolerance(relative=0.10) if found.metric == "itl_s" else Tolerance()) for found in run]
        wrong += any(decision.verdict is Verdict.REGRESSED for decision in decide_all(items))
    assert 0 < wrong / runs <= 0.05


def test_processes_that_see_a_part_each_share_the_level(made: Any) -> None:
    now = made.speed("itl_s", (0.0100, 0.0101, 0.0099))
    baselines = Baselines(speed=made.speed_baseline({"itl_s/short": (0.01, 0.01, 0.0101)}))
    found = [c for c in compare(made.result(now), (), baselines, made.environment) if c.metric == "itl_s"]
    alone, one_of_six = (judge_all(found, DEFAULT_POLICY, alpha=alpha)[0] for alpha in (0.05, 0.05 / 6))
    assert alone.p_needed is not None
    assert one_of_six.p_needed == pytest.approx(alone.p_needed / 6)
