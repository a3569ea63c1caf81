"""Fidelity beside the accepted one: the ratio of the damage now and then, case by case, over what numerics alone do."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from suite.gate.compare import compare
from suite.gate.compare_fidelity import FIDELITY, LEAST_FLOOR, Beside, compare_fidelity, fidelity_of
from suite.gate.decide import limit_of
from suite.gate.duet import OldSide
from suite.gate.family import decide_all
from suite.gate.judge import judge_all
from suite.gate.plan import plan_gates
from suite.gate.policy import DEFAULT_POLICY, tolerance_for
from suite.metrics.fidelity import measure_fidelity
from suite.records import (
    Baselines,
    CaseFidelity,
    Departure,
    Finding,
    Forced,
    Gate,
    Measurement,
    QualityBaseline,
    Tier,
    VariantFailure,
    Verdict,
)
from suite.store.codec import round_significant

TRACE = "ab" * 32
FLOOR = 0.003
"""Nats that the two paths of a quantized file are apart."""
PLANNED = plan_gates((), ["code", "math"], DEFAULT_POLICY, fidelity=True)


def forced(case: str, kld: float, *, positions: int = 20, **changes: Any) -> Forced:
    """One answer that is equally far from the reference at every position."""
    made = Forced(
        variant="q4", case=case, domain=case.partition("/")[0], family=None, path="batched", trace=TRACE,
        kld=(kld,) * positions, logprobs=(-0.5,) * positions, reference_logprobs=(-0.4,) * positions,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def decoded(case: str, kld: float, distance: float = FLOOR, *, positions: int = 20, **changes: Any) -> Forced:
    return forced(case, kld, positions=positions, path="decode", distance=(distance,) * positions, **changes)


def spread(mean: float = 0.05, count: int = 24, sd: float = 0.8, seed: int = 7) -> list[float]:
    """Divergences that differ from case to case as real ones do, the same every time."""
    luck = random.Random(seed)
    return [mean * luck.lognormvariate(-(sd**2) / 2, sd) for _ in range(count)]


def answers(values: Sequence[float], *, distance: float = FLOOR, **changes: Any) -> list[Forced]:
    """Cases of two domains along the batched path, every second one along the decode path too."""
    found = []
    for number, value in enumerate(values):
        case = f"{('math', 'code')[number % 2]}/{number:02}"
        found.append(forced(case, value, **changes))
        if number % 4 < 2:
            found.append(decoded(case, value, distance, **changes))
    return found


def scaled(records: Sequence[Forced], factor: float, **changes: Any) -> list[Forced]:
    return [dataclasses.replace(one, kld=tuple(factor * d for d in one.kld), **changes) for one in records]


def baseline(made: Any, then: Sequence[Forced], **changes: Any) -> QualityBaseline:
    """What was accepted when the variant was forced that way, as it is stored: four significant digits."""
    trials = [made.trial(case) for case in dict.fromkeys(one.case for one in then)]
    accepted: QualityBaseline = made.quality_baseline(trials, **changes)
    fidelity = {case: rounded(one) for case, one in fidelity_of(then).items()}
    cases = {case: dataclasses.replace(one, fidelity=fidelity.get(case)) for case, one in accepted.cases.items()}
    return dataclasses.replace(accepted, cases=cases)


def rounded(fidelity: CaseFidelity) -> CaseFidelity:
    changes: dict[str, Any] = {
        name: round_significant(value)
        for name, value in dataclasses.asdict(fidelity).items()
        if name != "trace" and value is not None
    }
    return dataclasses.replace(fidelity, **changes)


def judged(
    made: Any, then: Sequence[Forced] | QualityBaseline | None, now: Sequence[Forced], **beside: Any
) -> dict[str, Finding]:
    """The findings on fidelity by ``metric/scope``, of a run that judges nothing else."""
    accepted = then if then is None or isinstance(then, QualityBaseline) else baseline(made, then)
    result = beside.pop("result", None) or made.result(*measure_fidelity(now))
    found = compare_fidelity(result, accepted, made.environment, PLANNED, Beside(forced=tuple(now), **beside))
    return {f"{one.metric}/{one.scope}": one for one in judge_all(found, DEFAULT_POLICY)}


def verdicts(found: dict[str, Finding]) -> dict[str, Verdict]:
    return {key: one.verdict for key, one in found.items()}


GATED = {f"{item.metric}/{item.scope}" for item in PLANNED if item.metric in FIDELITY}


def test_the_gates_are_those_of_the_policy_and_only_with_a_trace() -> None:
    assert {"mean_kld/all", "decode_kld/all", "path_distance/all", "broken_logits/all"} == GATED
    assert not any(item.metric in FIDELITY for item in plan_gates((), ["math"], DEFAULT_POLICY))


# ------------------------------------------------------------------------------------------ verdicts


def test_the_same_again_passes_and_is_told_as_the_same(made: Any) -> None:
    then = answers(spread())
    found = judged(made, then, then)
    assert set(verdicts(found).values()) == {Verdict.PASS}
    assert {key for key in found if not key.startswith("broken")} == {*GATED, "mean_kld/code", "mean_kld/math"} - {
        "broken_logits/all"
    }
    assert all(one.comparison.identical for key, one in found.items() if not key.startswith("broken"))
    assert "is unchanged at 0.0351 nats: it is the same in every case (24 cases" in found["mean_kld/all"].sentence
    assert "0 %, as it must be, on 24 cases" in found["broken_logits/all"].sentence


def test_half_as_much_again_everywhere_is_a_regression_told_in_nats_and_percent(made: Any) -> None:
    then = answers(spread())
    found = judged(made, then, scaled(then, 1.5))["mean_kld/all"]
    assert (found.verdict, found.gate, found.comparison.tier) == (Verdict.REGRESSED, Gate.BLOCK, Tier.STORED)
    assert "divergence from the reference (all) rose by 46.0 %, 0.0351 nats → 0.0526 nats" in found.sentence
    assert "0.003 nats of numerics added to either side" in found.sentence
    assert "24 cases, families counted once" in found.sentence
    assert "tolerance 10.0 %" in found.sentence
    was, now = (found.comparison.baseline or 0.0), (found.comparison.observed or 0.0)
    assert now / was == pytest.approx(1.5, rel=1e-3)
    assert found.comparison.drift == pytest.approx((now + FLOOR) / (was + FLOOR) - 1)
    assert "--matrix-update=changed" in found.next_step


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.03, Verdict.PASS),
        (1.08, Verdict.PASS),
        (1.2, Verdict.REGRESSED),
        (0.97, Verdict.PASS),
        (0.7, Verdict.IMPROVED),
    ],
)
def test_ten_percent_is_the_tolerance(made: Any, factor: float, verdict: Verdict) -> None:
    then = answers(spread())
    assert judged(made, then, scaled(then, factor))["mean_kld/all"].verdict is verdict


def test_what_a_few_cases_carry_cannot_be_told(made: Any) -> None:
    values = spread()
    now = answers([2 * value if number < 3 else value for number, value in enumerate(values)])
    found = judged(made, answers(values), now)["mean_kld/all"]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the interval spans the tolerance" in found.sentence


def test_one_case_has_no_spread_and_two_have_hardly_any(made: Any) -> None:
    one = [forced("math/00", 0.05)]
    found = judged(made, one, scaled(one, 2.0))["mean_kld/all"]
    assert (found.verdict, found.comparison.interval) == (Verdict.INCONCLUSIVE, None)
    assert "1 case, families counted once" in found.sentence
    assert "a single case has no spread" in found.sentence
    two = [forced("math/00", 0.05), forced("math/01", 0.05)]
    torn = judged(made, two, [two[0], *scaled(two[1:], 10.0)])["mean_kld/all"]
    assert (torn.verdict, torn.comparison.mde) == (Verdict.INCONCLUSIVE, None)


def test_next_to_nothing_may_multiply_and_its_tolerance_is_told_in_nats(made: Any) -> None:
    """F16 beside the reference: 4e-6 nats, which the next build may triple."""
    then = answers([4e-6] * 24, distance=4e-6)
    found = judged(made, then, answers([12e-6] * 24, distance=6e-6))
    assert set(verdicts(found).values()) == {Verdict.PASS}
    comparison = found["mean_kld/all"].comparison
    assert comparison.numeric_floor == LEAST_FLOOR
    assert comparison.drift == pytest.approx(22 / 14 - 1)
    assert "tolerance 0.0005 nats, could have seen 0.000502 nats" in found["mean_kld/all"].sentence


def test_where_the_accepted_paths_are_far_apart_the_same_move_weighs_less(made: Any) -> None:
    values = spread(0.004)
    floors = (1e-5, 0.02)
    drifts = []
    for floor in floors:
        then = answers(values, distance=floor)
        comparison = judged(made, then, scaled(then, 1.15))["mean_kld/all"].comparison
        assert comparison.numeric_floor == pytest.approx(floor)
        drifts.append(comparison.drift or 0.0)
    assert drifts[0] > 5 * drifts[1]
    assert judged(made, answers(values, distance=0.02), answers([1.15 * v for v in values], distance=0.02))[
        "mean_kld/all"
    ].verdict is Verdict.PASS  # fmt: skip


def test_paths_that_drift_apart_are_a_finding_of_their_own(made: Any) -> None:
    then = answers(spread())
    apart = [one if one.distance is None else dataclasses.replace(one, distance=(0.009,) * 20) for one in then]
    found = judged(made, then, apart)
    assert found["path_distance/all"].verdict is Verdict.REGRESSED
    assert found["path_distance/all"].comparison.numeric_floor == LEAST_FLOOR
    assert "distance between its prefill and decode paths (all) rose by 199.3 %" in found["path_distance/all"].sentence
    assert found["mean_kld/all"].verdict is found["decode_kld/all"].verdict is Verdict.PASS


def test_what_only_the_decode_path_lost_is_seen_on_it(made: Any) -> None:
    then = answers(spread())
    worse = [one if one.path == "batched" else scaled([one], 1.6)[0] for one in then]
    found = judged(made, then, worse)
    assert (found["decode_kld/all"].verdict, found["decode_kld/all"].gate) == (Verdict.REGRESSED, Gate.WARN)
    assert found["mean_kld/all"].verdict is Verdict.PASS


def test_domains_inform_and_are_compared_apart(made: Any) -> None:
    then = answers(spread())
    worse = [scaled([one], 1.6)[0] if one.domain == "code" else one for one in then]
    found = judged(made, then, worse)
    assert (found["mean_kld/code"].verdict, found["mean_kld/code"].gate) == (Verdict.REGRESSED, Gate.INFO)
    assert found["mean_kld/math"].comparison.identical
    assert found["mean_kld/code"].comparison.n == found["mean_kld/math"].comparison.n == 12


@pytest.mark.parametrize("seed", range(12))
def test_a_pass_is_what_the_interval_that_is_told_shows_to_be_within_the_tolerance(made: Any, seed: int) -> None:
    luck = random.Random(seed)
    values = spread(seed=seed)
    found = judged(made, answers(values), answers([value * luck.lognormvariate(0, 0.15) for value in values]))
    for one in (found["mean_kld/all"], found["decode_kld/all"], found["mean_kld/math"]):
        assert one.comparison.interval is not None
        assert one.tolerance is not None
        within = one.comparison.interval[1] <= limit_of(one.comparison, one.tolerance)
        assert (one.verdict in (Verdict.PASS, Verdict.IMPROVED)) is within


# ------------------------------------------------------------------------------------------ clusters


def test_families_count_once_and_positions_weigh(made: Any) -> None:
    then = [forced(f"math/{n}", 0.02, family="sheep") for n in range(6)] + [forced("math/9", 0.05, positions=80)]
    now = [forced(f"math/{n}", 0.03, family="sheep") for n in range(6)] + [forced("math/9", 0.06, positions=80)]
    comparison = judged(made, then, now)["mean_kld/all"].comparison
    assert comparison.n == 2
    was, here = (6 * 20 * low + 80 * high for low, high in ((0.02, 0.05), (0.03, 0.06)))
    assert comparison.baseline == pytest.approx(was / 200)
    assert comparison.observed == pytest.approx(here / 200)


def test_a_case_named_like_a_family_is_not_of_it(made: Any) -> None:
    then = [forced("math/a", 0.02, family="math/b"), forced("math/b", 0.05), forced("math/c", 0.05)]
    assert judged(made, then, scaled(then, 1.1))["mean_kld/all"].comparison.n == 3


def test_what_four_stored_digits_round_away_is_no_change(made: Any) -> None:
    then = answers([0.0400] * 24)
    assert judged(made, then, answers([0.040004] * 24))["mean_kld/all"].comparison.identical
    moved = judged(made, then, answers([*[0.04] * 23, 0.04006]))["mean_kld/all"]
    assert (moved.comparison.identical, moved.verdict) == (False, Verdict.PASS)


def test_cases_that_only_one_side_knows_are_left_out(made: Any) -> None:
    then = answers(spread())
    fewer = judged(made, then, then[6:])["mean_kld/all"].comparison
    more = judged(made, then[6:], then)["mean_kld/all"].comparison
    assert fewer.n == more.n == 20
    assert fewer.identical
    assert more.identical


# ------------------------------------------------------------------------------------------ what cannot be compared


def test_another_trace_is_another_question_and_says_why(made: Any) -> None:
    then = answers(spread())
    remade = "it is of another reference: source: org/a → org/b"
    found = judged(made, then, [dataclasses.replace(one, trace="cd" * 32) for one in then], remade=remade)
    assert verdicts(found) == {
        **dict.fromkeys([*GATED, "mean_kld/code", "mean_kld/math"], Verdict.NOT_COMPARABLE),
        "broken_logits/all": Verdict.PASS,
    }
    assert "accepted along another reference trace (24 cases)" in found["mean_kld/all"].sentence
    assert "(12 cases)" in found["decode_kld/all"].sentence
    assert found["mean_kld/all"].sentence.endswith("the stored trace was made anew, for " + remade)
    assert "accept the new question" in found["mean_kld/all"].next_step


def test_of_some_other_traces_the_rest_is_compared_and_they_are_counted(made: Any) -> None:
    then = answers(spread())
    now = [dataclasses.replace(one, trace="cd" * 32) if one.case == "math/00" else one for one in then]
    found = judged(made, then, now)["mean_kld/all"]
    assert (found.verdict, found.comparison.n) == (Verdict.PASS, 23)
    assert found.sentence.endswith("1 case left out, since accepted along another reference trace")


def test_nothing_accepted_is_unbaselined_and_broken_logits_are_judged_all_the_same(made: Any) -> None:
    now = answers(spread())
    found = judged(made, None, now)
    assert found["mean_kld/all"].verdict is Verdict.UNBASELINED
    assert found["mean_kld/all"].comparison.observed == pytest.approx(0.0351, abs=1e-4)
    assert (found["broken_logits/all"].verdict, found["broken_logits/all"].comparison.tier) == (Verdict.PASS, Tier.NONE)
    before = made.quality_baseline([made.trial(one.case) for one in now if one.path == "batched"])
    old = judged(made, before, now)["mean_kld/all"]
    assert old.verdict is Verdict.UNBASELINED
    assert "accepted before fidelity was measured" in old.sentence
    assert "--matrix-update=new" in old.next_step


def test_a_decode_path_that_was_never_accepted_is_unbaselined_alone(made: Any) -> None:
    now = answers(spread())
    found = judged(made, [one for one in now if one.path == "batched"], now)
    assert found["decode_kld/all"].verdict is found["path_distance/all"].verdict is Verdict.UNBASELINED
    assert found["mean_kld/all"].verdict is Verdict.PASS


def test_an_accepted_answer_to_another_question_is_not_comparable(made: Any) -> None:
    now = answers(spread())
    found = judged(made, baseline(made, now, identity={"prompt_format": "plain"}), now)
    assert found["mean_kld/all"].verdict is Verdict.NOT_COMPARABLE
    assert "prompt_format: plain → chat" in found["mean_kld/all"].sentence
    assert found["broken_logits/all"].verdict is Verdict.PASS


def test_nothing_forced_is_not_measured_for_the_reason_given(made: Any) -> None:
    then = answers(spread())
    found = judged(made, then, [], missing="its backend cannot be forced through an answer")
    assert set(found) == GATED
    assert set(verdicts(found).values()) == {Verdict.NOT_MEASURED}
    assert found["mean_kld/all"].sentence.endswith("was not measured: its backend cannot be forced through an answer")
    assert "was not forced through the reference trace" in judged(made, then, [])["mean_kld/all"].sentence


def test_a_variant_that_failed_has_its_failure(made: Any) -> None:
    failed = made.result(failure=VariantFailure(variant="q4", verdict=Verdict.ERROR, reason="out of memory"))
    found = judged(made, answers(spread()), [], result=failed)
    assert set(verdicts(found).values()) == {Verdict.ERROR}
    assert "out of memory" in found["broken_logits/all"].sentence


def test_what_another_variant_made_of_the_trace_does_not_count(made: Any) -> None:
    then = answers(spread())
    others = scaled(then, 9.0, variant="q2")
    assert judged(made, then, [*then, *others], result=made.result(*measure_fidelity(then)))[
        "mean_kld/all"
    ].comparison.identical  # fmt: skip


# ------------------------------------------------------------------------------------------ broken logits


def test_broken_logits_are_a_regression_without_a_baseline_and_say_where(made: Any) -> None:
    now = [dataclasses.replace(one, broken=(3,)) if one.case == "math/02" else one for one in answers(spread())]
    found = judged(made, None, now)["broken_logits/all"]
    assert (found.verdict, found.gate) == (Verdict.REGRESSED, Gate.BLOCK)
    assert found.sentence.endswith(
        "(all) is 0.139 %, on 24 cases, first in math/02 at position 3 (batched path); none may be"
    )


def test_a_single_broken_position_among_many_is_one_too_many(made: Any) -> None:
    now = [forced(f"math/{number}", 0.05, positions=1000) for number in range(50)]
    now[7] = dataclasses.replace(now[7], broken=(999,))
    found = judged(made, now, now)
    assert found["broken_logits/all"].verdict is Verdict.REGRESSED
    assert "is 0.002 %" in found["broken_logits/all"].sentence


def test_when_all_is_broken_nothing_else_is_measured(made: Any) -> None:
    then = answers(spread())
    found = judged(made, then, [dataclasses.replace(one, broken=tuple(range(20))) for one in then])
    assert found["broken_logits/all"].verdict is Verdict.REGRESSED
    assert "is 100 %" in found["broken_logits/all"].sentence
    assert found["mean_kld/all"].verdict is Verdict.NOT_MEASURED
    assert "none of its logits are numbers" in found["mean_kld/all"].sentence


def test_broken_logits_are_told_even_beside_an_old_side_that_was_not_forced(made: Any) -> None:
    now = [dataclasses.replace(one, broken=(0,)) for one in answers(spread())]
    old = OldSide(result=made.result(), described="../old/bin/python")
    found = judged(made, None, now, old=old)
    assert found["broken_logits/all"].verdict is Verdict.REGRESSED
    assert found["mean_kld/all"].verdict is Verdict.NOT_MEASURED
    assert "../old/bin/python was not forced through the trace" in found["mean_kld/all"].sentence


# ------------------------------------------------------------------------------------------ side by side


def test_side_by_side_the_old_side_is_what_counts(made: Any) -> None:
    then = answers(spread())
    shadow = [dataclasses.replace(one, variant="q4@old") for one in then]
    old = OldSide(
        result=made.result(*measure_fidelity(then), suspects={"llama-cpp-python": "0.3.35"}), forced=tuple(shadow),
        described="../old/bin/python",
    )  # fmt: skip
    far = answers(spread(0.5))
    found = judged(made, far, scaled(then, 1.5), old=old)["mean_kld/all"]
    assert (found.verdict, found.comparison.tier) == (Verdict.REGRESSED, Tier.DUET)
    assert found.comparison.baseline == pytest.approx(0.0351, abs=1e-4)
    assert found.comparison.suspects == ("llama-cpp-python: 0.3.35 → 0.3.36",)
    assert found.comparison.accepted == "measured beside ../old/bin/python"
    assert judged(made, None, then, old=old)["mean_kld/all"].comparison.identical


def test_it_is_part_of_every_comparison_of_a_variant_that_was_forced(made: Any) -> None:
    then = answers(spread())
    trials = [made.trial(one.case) for one in then if one.path == "batched"]
    result = made.result(*measure_fidelity(then), trials=trials)
    stored = Baselines(quality=baseline(made, then))
    compared = compare(result, trials, stored, made.environment, fidelity=Beside(forced=tuple(then)))
    assert {one.metric for one in compared} >= FIDELITY
    assert not FIDELITY & {one.metric for one in compare(result, trials, stored, made.environment)}
    assert len({(one.metric, one.scope) for one in compared}) == len(compared)


def test_what_would_be_accepted_of_a_case() -> None:
    found = fidelity_of(
        [
            forced("math/a", 0.1), decoded("math/a", 0.2, 0.01), forced("math/b", 0.3, broken=(0,)),
            forced("math/c", 0.4, broken=tuple(range(20))), decoded("math/d", 0.5),
        ]
    )  # fmt: skip
    assert set(found) == {"math/a", "math/b"}
    assert rounded(found["math/a"]) == CaseFidelity(trace=TRACE[:16], kld=0.1, decode_kld=0.2, path_distance=0.01)
    assert rounded(found["math/b"]) == CaseFidelity(trace=TRACE[:16], kld=0.3)


def test_departures_do_not_matter_to_the_divergence(made: Any) -> None:
    then = answers(spread())
    other = (Departure(position=1, token=7, logprob=-0.3, lead=0.2),)
    assert judged(made, then, [dataclasses.replace(one, departures=other) for one in then])[
        "mean_kld/all"
    ].comparison.identical  # fmt: skip


# ------------------------------------------------------------------------------------------ simulation

MATRICES = 200
Change = Callable[[random.Random], float]
CASES = [f"{('math', 'code')[number % 2]}/{number:02}" for number in range(77)]


def simulate(made: Any, change: Change, seed: int = 5) -> list[Verdict]:
    """The gate on ``mean_kld/all`` in many runs, judged together with everything else of its fidelity: in each, 77 cases of
    other sizes, 16 of them along the decode path too, and each case's damage multiplied by `change`.
    """
    luck = random.Random(seed)
    accepted = baseline(made, [forced(case, 0.05) for case in CASES])
    scopes = [("mean_kld", scope) for scope in ("all", "code", "math")] + [
        ("decode_kld", "all"),
        ("path_distance", "all"),
    ]
    result = made.result(*(Measurement(metric=metric, scope=scope, value=0.05) for metric, scope in scopes))
    found = []
    for _ in range(MATRICES):
        then, now = {}, []
        for number, case in enumerate(CASES):
            damage, size = 0.05 * luck.lognormvariate(-0.32, 0.8), max(int(luck.lognormvariate(2.0, 0.8)), 1)
            then[case] = CaseFidelity(trace=TRACE[:16], kld=damage)
            now.append(forced(case, damage * change(luck), positions=size))
            if number < 16:
                then[case] = dataclasses.replace(then[case], decode_kld=damage, path_distance=FLOOR)
                apart = FLOOR * luck.lognormvariate(0, 0.1)
                now.append(decoded(case, damage * change(luck), apart, positions=size))
        cases = {case: dataclasses.replace(accepted.cases[case], fidelity=then[case]) for case in CASES}
        stored = dataclasses.replace(accepted, cases=cases)
        compared = compare_fidelity(result, stored, made.environment, PLANNED, Beside(forced=tuple(now)))
        decided = decide_all([(one, tolerance_for(DEFAULT_POLICY, one.metric, one.scope)) for one in compared])
        found += [d.verdict for one, d in zip(compared, decided, strict=True) if (one.metric, one.scope) == scopes[0]]
    return found


def test_a_change_of_kernels_that_moves_cases_at_random_is_no_regression(made: Any) -> None:
    """Each case's damage is another by a fifth, up or down, and not one of hundreds of runs cries wolf."""
    found = simulate(made, lambda luck: luck.lognormvariate(-0.02, 0.2))
    assert found.count(Verdict.REGRESSED) / MATRICES <= 0.01
    assert found.count(Verdict.PASS) / MATRICES >= 0.6


def test_a_drift_right_at_the_tolerance_is_accused_no_more_often_than_the_level_allows(made: Any) -> None:
    found = simulate(made, lambda luck: 1.1 * 1.006 * luck.lognormvariate(-0.02, 0.2))
    assert found.count(Verdict.REGRESSED) / MATRICES <= 0.05
    assert found.count(Verdict.PASS) / MATRICES <= 0.10


@pytest.mark.parametrize(("factor", "power"), [(1.3, 0.85), (1.5, 0.97)])
def test_a_loss_is_found_among_cases_that_move_at_random(made: Any, factor: float, power: float) -> None:
    found = simulate(made, lambda luck: factor * luck.lognormvariate(-0.02, 0.2))
    assert found.count(Verdict.REGRESSED) / MATRICES >= power
    assert Verdict.PASS not in found


def test_the_limit_is_on_the_scale_of_the_drift_with_the_floor(made: Any) -> None:
    then = answers([0.001] * 8, distance=0.001)
    comparison = judged(made, then, scaled(then, 1.5))["mean_kld/all"].comparison
    tolerance = tolerance_for(DEFAULT_POLICY, "mean_kld", "all")
    assert limit_of(comparison, tolerance) == pytest.approx(max(0.10, 0.0005 / 0.002))
    assert math.isclose(comparison.log_drift or 0.0, math.log(2.5 / 2))
