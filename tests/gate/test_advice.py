"""Advice: yes and no only where the whole interval says so, and never of what was not measured."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sample_advice as sample
from support.sample_runs import comparison, failed, finding, matrix, measurement

from suite.errors import UsageError
from suite.gate.advice.advising import Advice, Advised, advise
from suite.gate.advice.answering import Answer, answer_limit, hold
from suite.gate.advice.asked import QUANTITIES, Asked, Limit, Name, Preference, order_limits
from suite.gate.advice.choosing import choose
from suite.gate.advice.estimates import Estimate, find_estimates
from suite.gate.advice.settling import settle_limit
from suite.gate.loss import bounds, lost_credit
from suite.records import ALL, Gate, Run, Verdict
from suite.stats.binomial import net_loss_bounds


def limit(name: Name, value: float) -> Limit:
    return Limit(quantity=QUANTITIES[name], value=value)


def estimate(name: Name = "loss", low: float = 1.0, high: float = 3.0, **changes: object) -> Estimate:
    made = Estimate(quantity=name, metric="x", scope=ALL, value=(low + high) / 2, interval=(low, high), n=54)
    return replace(made, **changes)  # type: ignore[arg-type]


def of(advice: Advice, variant: str) -> Advised:
    return next(one for one in advice.variants if one.variant == variant)


def answers(advice: Advice) -> dict[str, str]:
    return {one.variant: one.answer.value for one in advice.variants if one.answer}


# ------------------------------------------------------------------------------------------------------- one limit


@pytest.mark.parametrize(("bound", "answer"), [
    (3.5, Answer.SATISFIES), (3.0, Answer.SATISFIES), (2.9, Answer.CANNOT_TELL), (1.0, Answer.CANNOT_TELL), (0.9, Answer.FAILS),
])  # fmt: skip
def test_a_loss_is_within_its_limit_only_when_all_of_its_interval_is(bound: float, answer: Answer) -> None:
    assert answer_limit(estimate(), limit("loss", bound)) is answer


@pytest.mark.parametrize(("bound", "answer"), [
    (0.9, Answer.SATISFIES), (1.0, Answer.SATISFIES), (1.1, Answer.CANNOT_TELL), (3.0, Answer.CANNOT_TELL), (3.1, Answer.FAILS),
])  # fmt: skip
def test_a_speedup_must_be_at_least_its_limit(bound: float, answer: Answer) -> None:
    assert answer_limit(estimate("speedup"), limit("speedup", bound)) is answer


@pytest.mark.parametrize(("bound", "answer"), [(300e6, Answer.SATISFIES), (299e6, Answer.FAILS), (100e6, Answer.FAILS)])
def test_memory_that_one_launch_needed_breaks_a_limit(bound: float, answer: Answer) -> None:
    assert answer_limit(estimate("memory", 290e6, 300e6, value=300e6), limit("memory", bound)) is answer


@pytest.mark.parametrize(
    "unsure", [{"doubt": "the machine was not ours"}, {"interval": None}, {"value": None, "interval": None}]
)
def test_what_is_in_doubt_is_neither_within_nor_beyond(unsure: Mapping[str, object]) -> None:
    for name, bound in (("loss", 99.0), ("loss", 0.0)):
        found = hold(estimate(**unsure), limit(name, bound), names=("a",), command="c")  # type: ignore[arg-type]
        assert found.answer is Answer.CANNOT_TELL
        assert found.step is not None


@given(st.floats(-50, 50), st.floats(0, 50), st.floats(0.01, 50), st.floats(0, 50), st.sampled_from(tuple(QUANTITIES)))
def test_a_tighter_limit_never_makes_of_a_failure_something_that_satisfies(
    low: float, width: float, bound: float, tighter: float, name: Name
) -> None:
    found = estimate(name, low, low + width)
    loose = answer_limit(found, limit(name, bound))
    tight = answer_limit(found, limit(name, bound + tighter if QUANTITIES[name].more_is_better else bound - tighter))
    order = [Answer.FAILS, Answer.CANNOT_TELL, Answer.SATISFIES]
    assert order.index(tight) <= order.index(loose)


# ------------------------------------------------------------------------------------------------------- what settles


def needed(text: str) -> int:
    found = re.search(r"about (\d+)", text)
    assert found
    return int(found[1])


@pytest.mark.parametrize(("lost", "gained", "bound"), [(2, 0, 5.0), (0, 0, 1.0), (6, 1, 3.0), (9, 0, 3.0), (1, 3, 2.0)])
def test_the_cases_that_are_said_to_settle_a_loss_do_when_answers_go_on_as_they_did(
    lost: int, gained: int, bound: float
) -> None:
    changes = [1.0] * lost + [-1.0] * gained + [0.0] * (54 - lost - gained)
    low, high = bounds(changes)
    found = estimate(
        "loss", 100 * low, 100 * high, value=100 * (lost - gained) / 54, draws=tuple(100 * c for c in changes)
    )
    held = hold(found, limit("loss", bound), names=("fp16", "q4"), command="pytest --model-matrix")
    assert held.answer is Answer.CANNOT_TELL
    assert held.step is not None
    cases = held.step.cases
    assert cases is not None
    assert cases == needed(held.step.sentence)
    assert cases > 54

    def settled(count: int) -> bool:
        low, high = net_loss_bounds(lost * count // 54, gained * count // 54, count)
        return 100 * high <= bound or 100 * low > bound

    assert settled(cases)
    assert not settled(max(int(0.8 * cases), 54))
    assert held.step.command == "pytest --model-matrix --matrix-variants fp16,q4"


@pytest.mark.parametrize(("lost", "bound"), [(0, 0.0), (27, 50.0)])
def test_what_no_number_of_cases_settles_is_said_to_be_so(lost: int, bound: float) -> None:
    changes = [1.0] * lost + [0.0] * (54 - lost)
    low, high = bounds(changes)
    found = estimate("loss", 100 * low, 100 * high, draws=tuple(100 * change for change in changes))
    held = hold(found, limit("loss", bound), names=("q4",), command="c")
    assert held.step is not None
    assert held.step.sentence.startswith("not even 5000 cases")
    assert (held.step.cases, held.step.command) == (None, "")


def test_an_interval_of_a_divergence_shrinks_with_the_square_root_of_the_cases() -> None:
    held = hold(estimate("kld", 0.01, 0.03, n=10), limit("kld", 0.025), names=("q4",), command="c")
    assert held.step is not None
    assert held.step.cases == 40


def test_launches_that_are_said_to_settle_a_speedup_do() -> None:
    ratios = (1.50, 1.55, 1.45, 1.52, 1.48)
    logs = tuple(math.log(ratio) for ratio in ratios)
    found = estimate("speedup", 1.45, 1.55, value=1.4996, draws=logs, n=5, looks=1)
    held = hold(found, limit("speedup", 1.48), names=("fp16", "q4"), command="pytest --model-matrix")
    assert held.step is not None
    launches = held.step.launches
    assert launches is not None
    assert launches > 5
    assert held.step.command == "pytest --model-matrix --matrix-variants fp16,q4 --matrix-only=speed --matrix-resume"
    later = hold(replace(found, looks=3), limit("speedup", 1.48), names=("q4",), command="c")
    assert later.step is not None
    assert later.step.launches is not None
    assert later.step.launches > launches


def test_sessions_that_differ_by_more_than_the_gap_are_not_settled_by_launches() -> None:
    logs = tuple(math.log(rate) for rate in (100.0, 101.0, 99.0))
    found = estimate("decode", 94.0, 106.0, value=100.0, draws=logs, n=3, session_sd=0.03)
    near = hold(found, limit("decode", 98.0), names=("q4",), command="c")
    assert near.step is not None
    assert near.step.sentence.startswith("no number of launches settles it: whole sessions")
    far = hold(replace(found, interval=(91.0, 109.0)), limit("decode", 93.0), names=("q4",), command="c")
    assert far.step is not None
    assert far.step.launches


# ------------------------------------------------------------------------------------------------------- estimates


def test_estimates_are_those_of_the_run_in_the_units_of_their_limits() -> None:
    run = sample.healthy()
    found = find_estimates(run, "short")["q4_k_m"]
    losses = {(loss.metric, loss.scope): loss for loss in run.losses if loss.variant == "q4_k_m"}
    score = losses["score", ALL]
    assert found["loss"].value == pytest.approx(100 * 34 / sample.CASES)
    assert found["loss"].interval == pytest.approx([100 * end for end in score.interval or ()])
    assert len(found["loss"].draws) == sample.CASES
    assert found["kld"].interval == losses["mean_kld", ALL].interval
    assert found["speedup"].interval == losses["speedup", "short"].interval
    assert found["memory"].value == pytest.approx(165e6 * 1.01)
    assert found["memory"].interval == pytest.approx((165e6 * 0.99, 165e6 * 1.01))


def test_what_a_case_lost_is_what_losses_were_bounded_from() -> None:
    run = sample.healthy()
    for name in sample.FLIPS:
        score = next(loss for loss in run.losses if (loss.variant, loss.metric, loss.scope) == (name, "score", ALL))
        assert bounds(lost_credit(name, "fp16", run.trials)) == score.interval


def test_the_reference_costs_nothing_by_definition() -> None:
    found = find_estimates(sample.healthy(), "short")["fp16"]
    assert [(found[name].value, found[name].exact) for name in ("loss", "kld", "speedup")] == [
        (0.0, True), (0.0, True), (1.0, True),
    ]  # fmt: skip
    assert not found["memory"].exact


def test_absolute_speeds_hold_the_spread_between_sessions_and_speedups_do_not() -> None:
    found = find_estimates(sample.healthy(), "short")["q8_0"]
    rate, speedup = found["decode"].interval, found["speedup"].interval
    assert rate is not None
    assert speedup is not None
    assert math.log(rate[1] / rate[0]) > 2 * 1.96 * 0.03
    assert math.log(speedup[1] / speedup[0]) < 2 * 1.96 * 0.03


def test_memory_of_an_accelerator_counts_where_it_was_used() -> None:
    run = sample.healthy()
    device = measurement("peak_device_bytes", ALL, 9e9)
    results = [replace(one, measurements=(*one.measurements, device)) for one in run.variants]
    found = find_estimates(replace(run, variants=tuple(results)), "short")["q8_0"]["memory"]
    assert found.metric == "peak_device_bytes"
    assert found.value == pytest.approx(9e9 * 1.01)


def test_more_looks_at_the_same_launches_widen_what_a_speedup_claims() -> None:
    run = sample.healthy()
    looked = finding(of=comparison(name="q8_0", looks=3))
    found = find_estimates(replace(run, findings=(looked,)), "short")["q8_0"]["speedup"]
    assert found.looks == 3
    assert found.confidence == pytest.approx(1 - 0.05 / 4)


# ------------------------------------------------------------------------------------------------------- whole runs


def test_the_fastest_of_those_that_satisfy_all_limits_is_taken() -> None:
    advice = advise(sample.healthy(), sample.asked(loss=3, speedup=1.5, memory=300e6))
    assert answers(advice) == {
        "q8_0": "satisfies", "q5_k_m": "cannot tell", "q4_k_m": "fails", "f16": "fails", "fp16": "fails", "int8": "fails",
    }  # fmt: skip
    assert advice.choice is not None
    assert advice.choice.variant == "q8_0"
    assert advice.nearest is None


def test_quality_decides_where_only_speed_has_a_limit_and_what_is_not_told_apart_is_decided_by_the_next() -> None:
    run = sample.healthy()
    by_quality = advise(run, sample.asked(speedup=2.0)).choice
    by_speed = advise(run, sample.asked(speedup=2.0, prefer="speed")).choice
    by_memory = advise(run, sample.asked(speedup=2.0, prefer="memory")).choice
    assert by_quality is not None
    assert by_speed is not None
    assert by_memory is not None
    assert by_quality.variant == "q8_0"
    assert by_speed.rounds[0].best == "q4_k_m"
    assert by_speed.rounds[0].left == ("q5_k_m", "q4_k_m")
    assert by_memory.variant == "q4_k_m"


def test_the_reference_is_advised_where_it_is_all_that_fits() -> None:
    advice = advise(sample.healthy(), sample.asked(loss=0, memory=700e6))
    assert advice.choice is not None
    assert advice.choice.variant == "fp16"


def test_where_nothing_satisfies_the_nearest_is_named_with_what_it_is_off_by() -> None:
    advice = advise(sample.healthy(), sample.asked(speedup=2.6, memory=300e6))
    assert advice.choice is None
    assert advice.nearest == "q4_k_m"
    off = of(advice, "q4_k_m").held[0].off
    assert off == pytest.approx(2.6 - 173.1 / 69.3, abs=0.01)


def test_one_limit_that_fails_is_nearer_than_two_that_nearly_hold() -> None:
    advice = advise(sample.healthy(), sample.asked(kld=0.003, speedup=2.4, memory=250e6))
    assert {one.variant: sum(held.answer is Answer.FAILS for held in one.held) for one in advice.variants} == {
        "q4_k_m": 1, "q5_k_m": 1, "f16": 2, "fp16": 2, "int8": 3, "q8_0": 1,
    }  # fmt: skip
    assert advice.nearest == "q8_0"
    assert advice.variants[0].variant == "q8_0"
    wide = advise(sample.healthy(), sample.asked(kld=1e-7, speedup=1.9, memory=320e6))
    assert wide.nearest == "q8_0"


def test_speeds_in_doubt_dominate_nobody() -> None:
    run = sample.healthy()
    busy = [
        sample.changed(one, "decode_tok_s", status="contended") if one.variant.name in ("f16", "q8_0") else one
        for one in run.variants
    ]
    placed = advise(replace(run, variants=tuple(busy)), sample.asked()).front.find("int8")
    assert placed is not None
    assert placed.standing.beaten_by == ("f16", "q8_0")
    assert not placed.is_dominated


def test_launches_are_not_asked_for_where_sessions_differ_by_more() -> None:
    held = of(advise(sample.healthy(), sample.asked(decode=160)), "q8_0").held[0]
    assert held.step is not None
    assert held.step.launches is None
    assert "whole sessions of a machine" in held.step.sentence


def test_without_limits_nothing_is_recommended_and_the_front_is_there() -> None:
    advice = advise(sample.healthy(), sample.asked())
    assert (advice.choice, advice.nearest, answers(advice)) == (None, None, {})
    assert [one.variant for one in advice.front.placed if one.is_dominated] == ["int8"]


@pytest.mark.parametrize("verdict", [Verdict.ERROR, Verdict.INVALID, Verdict.NOT_MEASURED])
def test_what_failed_is_never_advised(verdict: Verdict) -> None:
    run = sample.healthy()
    gone = [
        replace(one, failure=failed("q8_0", verdict, "why").failure) if one.variant.name == "q8_0" else one
        for one in run.variants
    ]
    advice = advise(replace(run, variants=tuple(gone)), sample.asked(memory=1e12))
    assert of(advice, "q8_0").excluded == f"{verdict}: why"
    assert of(advice, "q8_0").answer is None
    assert advice.choice is not None
    assert "q8_0" not in advice.choice.among
    assert advice.front.find("q8_0") is None


def test_logits_that_are_no_numbers_are_never_advised() -> None:
    run = sample.healthy()
    results = [
        sample.changed(one, "broken_logits", value=0.02) if one.variant.name == "q8_0" else one for one in run.variants
    ]
    advice = advise(replace(run, variants=tuple(results)), sample.asked(memory=1e12))
    assert of(advice, "q8_0").excluded == "2 % of its logits are no numbers"
    assert advice.choice is not None
    assert "q8_0" not in advice.choice.among
    assert advice.front.find("q8_0") is None
    assert advice.front.find("q4_k_m") is not None


def test_what_failed_a_gate_is_put_behind_what_did_not_and_says_so() -> None:
    run = sample.healthy()
    lost = finding(Verdict.REGRESSED, "lost", of=comparison("mean_kld", ALL, "q8_0"))
    asked = sample.asked(loss=3, speedup=1.5)
    put_back = advise(replace(run, findings=(lost,)), asked)
    assert put_back.choice is not None
    assert (put_back.choice.variant, put_back.choice.put_back) == ("f16", ("q8_0",))
    assert of(put_back, "q8_0").caveats[0].endswith("mean_kld/all REGRESSED")
    informing = advise(replace(run, findings=(replace(lost, gate=Gate.INFO),)), asked)
    assert informing.choice is not None
    assert informing.choice.variant == "q8_0"


def test_a_lone_satisfier_that_failed_a_gate_is_taken_with_its_caveat() -> None:
    run = sample.healthy()
    lost = finding(Verdict.REGRESSED, "lost", of=comparison("mean_kld", ALL, "q8_0"))
    advice = advise(replace(run, findings=(lost,)), sample.asked(loss=3, speedup=2))
    assert advice.choice is not None
    assert advice.choice.variant == "q8_0"
    assert not advice.choice.put_back
    assert of(advice, "q8_0").caveats


def test_what_was_timed_beside_a_neighbour_cannot_be_told() -> None:
    advice = advise(sample.doubtful(), sample.asked(speedup=2.0))
    held = of(advice, "q4_k_m").held[0]
    assert held.answer is Answer.CANNOT_TELL
    assert "the machine was not ours" in held.estimate.doubt
    assert held.step is not None
    assert "when nothing else runs" in held.step.sentence
    assert advise(sample.healthy(), sample.asked(speedup=2.0)).of(Answer.SATISFIES)


def test_a_contended_reference_puts_every_speedup_in_doubt() -> None:
    run = sample.healthy()
    reference = sample.changed(run.variants[0], "decode_tok_s", status="contended", reason="busy")
    advice = advise(replace(run, variants=(reference, *run.variants[1:])), sample.asked(speedup=1.5))
    assert answers(advice).get("q8_0") == "cannot tell"


def test_one_launch_has_no_spread_and_is_asked_to_be_more() -> None:
    held = of(advise(sample.single(), sample.asked(speedup=1.5)), "q8_0").held[0]
    assert held.answer is Answer.CANNOT_TELL
    assert held.step is not None
    assert held.step.launches == 5


def test_without_the_reference_only_divergence_is_known() -> None:
    advice = advise(sample.unpaired(), sample.asked(kld=0.01, loss=3))
    kld, loss = (next(h for h in of(advice, "q8_0").held if h.limit.quantity.name == name) for name in ("kld", "loss"))
    assert kld.answer is Answer.SATISFIES
    assert (loss.answer, loss.estimate.doubt) == (
        Answer.CANNOT_TELL,
        "the reference was not measured in this run",
    )
    assert loss.step is not None
    assert loss.step.command == "pytest --model-matrix --matrix-variants fp16,q8_0"


def test_where_the_run_does_not_know_its_reference_everything_is_measured_again() -> None:
    run = sample.unpaired()
    alone = replace(run, matrix=replace(run.matrix, variants=tuple(v for v in run.matrix.variants if not v.reference)))
    held = of(advise(alone, sample.asked(loss=3)), "q8_0").held[0]
    assert held.step is not None
    assert held.step.command == "pytest --model-matrix"


def test_what_is_known_in_nothing_that_was_asked_is_not_near() -> None:
    advice = advise(sample.unpaired(), sample.asked(loss=3, speedup=2))
    assert advice.nearest is None
    assert advise(sample.unpaired(), sample.asked(loss=3, kld=0.001)).nearest == "q8_0"


def test_one_quantity_alone_is_no_front() -> None:
    run = sample.unpaired()
    kept = [tuple(m for m in one.measurements if m.metric != "peak_rss_bytes") for one in run.variants]
    no_memory = [replace(one, measurements=left) for one, left in zip(run.variants, kept, strict=True)]
    front = advise(replace(run, variants=tuple(no_memory)), sample.asked()).front
    assert (front.quantities, front.placed) == ((), ())


def test_what_limits_the_run_is_said() -> None:
    said = " ".join(advise(sample.doubtful(), sample.asked(memory=1e9, machine="elsewhere")).caveats)
    for part in (
        "measured on x86_64-avx512-2c, and this machine is elsewhere",
        "--matrix-quick",
        "a demonstration",
        "only these variants",
    ):
        assert part in said
    usual = " ".join(advise(sample.healthy(), sample.asked(memory=1e9)).caveats)
    assert usual == "speeds are those of scenario short: 128 prompt tokens, 32 new ones"


def test_a_scenario_that_is_not_there_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="did you mean 'short'"):
        advise(sample.healthy(), sample.asked(scenario="shrt"))


def test_another_scenario_has_its_own_speeds() -> None:
    run = sample.healthy()
    other = [replace(run.matrix.scenarios[0], name="deep")]
    both = replace(run, matrix=replace(run.matrix, scenarios=(*run.matrix.scenarios, *other)))
    advice = advise(both, sample.asked(speedup=1.5, scenario="deep"))
    assert of(advice, "q8_0").held[0].estimate.doubt == "it was not measured in this run"


@pytest.mark.parametrize(("less", "on_front"), [(1e6, False), (40e6, True)])
def test_memory_counts_for_the_front_only_beyond_what_it_may_drift(less: float, on_front: bool) -> None:
    run = sample.healthy()
    most = find_estimates(run, "short")["q8_0"]["memory"].value or 0.0
    light = sample.changed(
        of(advise(run, sample.asked()), "int8").result, "peak_rss_bytes", value=most - less, samples=()
    )
    results = tuple(light if one.variant.name == "int8" else one for one in run.variants)
    placed = advise(replace(run, variants=results), sample.asked()).front.find("int8")
    assert placed is not None
    assert placed.standing.on_front is on_front
    assert placed.is_dominated is not on_front


def test_the_front_goes_by_divergence_where_that_is_known() -> None:
    run = sample.healthy()
    assert advise(run, sample.asked(loss=3)).front.quantities == ("kld", "speedup", "memory")
    assert advise(sample.single(), sample.asked()).front.quantities == ("loss", "speedup", "memory")


def test_nothing_to_compare_is_no_front() -> None:
    run = sample.healthy()
    alone = replace(run, variants=run.variants[:1], losses=(), matrix=matrix(["fp16"]))
    front = advise(alone, sample.asked(memory=1e9)).front
    assert (front.quantities, front.placed) == ((), ())


def test_none_is_chosen_of_none() -> None:
    assert choose({}, "speed", ()) is None


# ------------------------------------------------------------------------------------------------------- any run

HEALTHY = replace(sample.healthy(), trials=(), forced=())
_KEYS = {("score", ALL), ("mean_kld", ALL), ("speedup", "short")}
OPEN = tuple(loss for loss in HEALTHY.losses if (loss.metric, loss.scope) in _KEYS)
ENDS = st.tuples(st.integers(-50, 50), st.integers(0, 30), st.integers(0, 30), st.integers(0, 9))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """The healthy run with losses of any size, some without an interval, and gates that failed."""
    losses = []
    for loss, (centre, below, above, known) in zip(OPEN, draw(st.tuples(*[ENDS] * len(OPEN))), strict=True):
        low, value, high = centre - below, centre, centre + above
        if loss.metric == "speedup":
            low, value, high = (math.exp(end / 20) for end in (low, value, high))
        else:
            low, value, high = (end / 1000 for end in (low, value, high))
        losses.append(replace(loss, value=value, interval=(low, high) if known else None))
    failing = draw(st.sets(st.sampled_from(sorted(sample.FLIPS)), max_size=2))
    gates = tuple(finding(Verdict.REGRESSED, "lost", of=comparison(name=name)) for name in sorted(failing))
    return replace(HEALTHY, losses=tuple(losses), findings=gates)


SIZES: Mapping[Name, st.SearchStrategy[float]] = {
    "loss": st.floats(0, 5), "kld": st.floats(0, 0.05), "speedup": st.floats(0.1, 10), "memory": st.floats(1e8, 1e9),
}  # fmt: skip
LIMITS: st.SearchStrategy[dict[Name, float | None]] = st.fixed_dictionaries({}, optional=dict(SIZES))
PREFERENCES: tuple[Preference | None, ...] = ("quality", "speed", "memory", None)


@given(runs(), LIMITS, st.sampled_from(PREFERENCES))
@settings(max_examples=60, deadline=None)
def test_whatever_is_measured_what_is_recommended_satisfies_every_limit(
    run: Run, limits: dict[Name, float | None], prefer: Preference | None
) -> None:
    advice = advise(run, Asked(limits=order_limits(limits), prefer=prefer))
    assert (advice.choice is not None) is bool(advice.of(Answer.SATISFIES))
    if advice.choice is not None:
        taken = of(advice, advice.choice.variant)
        assert taken is advice.variants[0]
        assert all(held.answer is Answer.SATISFIES for held in taken.held)
        assert len(taken.held) == len(limits) > 0
        assert set(advice.choice.among) == {one.variant for one in advice.of(Answer.SATISFIES)}
        failing = {found.variant for found in run.findings}
        assert taken.variant not in failing or set(advice.choice.among) <= failing
    elif limits:
        assert advice.nearest is not None
    for one in advice.front.placed:
        assert not (one.standing.on_front and one.is_dominated)
    assert {one.variant for one in advice.variants} == {one.variant.name for one in run.variants}


@given(runs(), LIMITS, st.floats(0.3, 1))
@settings(max_examples=40, deadline=None)
def test_whatever_is_measured_tightening_a_limit_never_helps_a_variant(
    run: Run, limits: dict[Name, float | None], share: float
) -> None:
    tighter: dict[Name, float | None] = {
        name: value / share if name == "speedup" else value * share
        for name, value in limits.items()
        if value is not None
    }
    loose, tight = (advise(run, Asked(limits=order_limits(chosen))) for chosen in (limits, tighter))
    order = [Answer.FAILS, Answer.CANNOT_TELL, Answer.SATISFIES]
    for one in tight.variants:
        before = of(loose, one.variant).answer
        if before is not None and one.answer is not None:
            assert order.index(one.answer) <= order.index(before)


def test_a_limit_as_small_as_a_number_can_be_is_no_fault() -> None:
    (limit,) = order_limits({"kld": 2e-169})
    near = replace(find_estimates(sample.healthy(), "short")["q8_0"]["kld"], value=4e-169, interval=(0.0, 0.01))
    step = settle_limit(near, limit, names=("fp16", "q8_0"), command="pytest")
    assert step.cases is None
    assert step.sentence


def test_losses_of_other_shapes_are_not_mistaken() -> None:
    """A loss of one domain, or of another scenario, is not that of the whole."""
    run = sample.healthy()
    moved = tuple(replace(loss, scope="math") if loss.scope == ALL else loss for loss in run.losses)
    found = find_estimates(replace(run, losses=moved), "short")["q8_0"]
    assert found["loss"].value is None
    assert found["kld"].value is None


def test_a_reference_that_failed_is_the_reason_of_everything_it_is_needed_for() -> None:
    run = sample.healthy()
    gone = failed("fp16", Verdict.ERROR, "killed")
    told = sample.whole([gone, *run.variants[1:]], matrix=run.matrix)
    found = find_estimates(told, "short")["q8_0"]
    assert found["loss"].doubt == found["speedup"].doubt == "fp16 is ERROR"
