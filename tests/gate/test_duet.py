"""Old and new side by side: pairs, tolerances, and what becomes of it when the old side fails."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy
import pytest

from suite.gate.compare import compare
from suite.gate.duet import OldSide
from suite.gate.judge import judge, judge_all, needs_more
from suite.gate.plan import GateItem
from suite.gate.policy import DEFAULT_POLICY
from suite.metrics.speed import pair_logs
from suite.records import (
    Aspect,
    Baselines,
    Comparison,
    Finding,
    SampleStatus,
    SpeedSample,
    Tier,
    Trial,
    TrialStatus,
    VariantFailure,
    Verdict,
)

LAUNCHES = ((0.010, 0.011, 0.012), (0.013, 0.012, 0.011), (0.010, 0.010, 0.012))
"""Gaps between tokens by launch and round: the machine's own ups and downs."""
NOTHING = Baselines()


def slower(factor: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(factor * gap for gap in gaps) for gaps in LAUNCHES)


def old_side(made: Any, samples: tuple[SpeedSample, ...] = (), **changes: Any) -> OldSide:
    """What was measured under another Python, with an older library."""
    of = made.timed(samples, **changes)
    shadow = dataclasses.replace(
        of, variant=dataclasses.replace(of.variant, name="q4@old"), suspects={"llama-cpp-python": "0.3.35"}
    )
    return OldSide(result=shadow, samples=samples, described="../old/bin/python")


def beside(made: Any, now: tuple[SpeedSample, ...], old: tuple[SpeedSample, ...]) -> dict[str, Comparison]:
    found = compare(made.timed(now), (), NOTHING, made.environment, samples=now, old=old_side(made, old))
    return {comparison.metric: comparison for comparison in found}


def judged(made: Any, factor: float) -> dict[str, Finding]:
    found = beside(made, made.slices(*slower(factor)), made.slices(*LAUNCHES))
    return {finding.metric: finding for finding in judge_all(found.values(), DEFAULT_POLICY)}


def test_slices_are_paired_by_launch_and_round_whatever_their_order(made: Any) -> None:
    now, old = made.slices(*slower(1.05)), made.slices(*LAUNCHES)
    logs = pair_logs("itl_s", now[::-1], old)
    assert logs == {launch: pytest.approx(math.log(1.05)) for launch in (0, 1, 2)}
    assert list(logs) == [0, 1, 2]


def test_positive_is_worse_for_rates_too(made: Any) -> None:
    now, old = made.slices(*slower(1.05)), made.slices(*LAUNCHES)
    for metric in ("decode_tok_s", "prefill_tok_s", "ttft_s", "tpot_s"):
        assert pair_logs(metric, now, old)[0] == pytest.approx(math.log(1.05))
        assert pair_logs(metric, old, now)[0] == pytest.approx(-math.log(1.05))


def test_the_median_over_pairs_is_moved_by_no_stall_and_the_rate_is(made: Any) -> None:
    now = made.slices((0.01, 0.01, 0.10))
    old = made.slices((0.01, 0.01, 0.01))
    assert pair_logs("itl_s", now, old) == {0: pytest.approx(0.0)}
    assert pair_logs("decode_tok_s", now, old) == {0: pytest.approx(math.log(0.12 / 0.03))}


@pytest.mark.parametrize("status", [SampleStatus.CONTENDED, SampleStatus.REJECTED])
def test_a_pair_counts_only_if_both_slices_are_clean(made: Any, status: SampleStatus) -> None:
    now, old = made.slices((0.02, 0.01, 0.01)), made.slices((0.01, 0.01, 0.04))
    unclean_now = (dataclasses.replace(now[0], status=status), *now[1:])
    unclean_old = (*old[:2], dataclasses.replace(old[2], status=status))
    for metric in ("itl_s", "decode_tok_s"):
        assert pair_logs(metric, unclean_now, unclean_old) == {0: pytest.approx(0.0)}
    assert pair_logs("itl_s", now[:1], unclean_old[2:]) == {}


def test_a_slice_taken_again_stands_for_the_one_that_was_not_clean(made: Any) -> None:
    now, old = made.slices((0.01,)), made.slices((0.01,))
    spoilt = dataclasses.replace(old[0], itl_s=(0.5,) * 12, status=SampleStatus.CONTENDED)
    assert pair_logs("itl_s", now, (spoilt, *old)) == {0: pytest.approx(0.0)}
    assert pair_logs("itl_s", now, (*old, spoilt)) == {0: pytest.approx(0.0)}


def test_scenarios_and_launches_that_only_one_side_has_are_no_pairs(made: Any) -> None:
    now, old = made.slices((0.01,), (0.01,)), made.slices((0.01,))
    assert list(pair_logs("itl_s", now, old)) == [0]
    assert pair_logs("itl_s", now, made.slices((0.01,), scenario="long")) == {}


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, Verdict.PASS), (1.02, Verdict.PASS), (1.03, Verdict.INCONCLUSIVE), (1.06, Verdict.REGRESSED),
     (0.9, Verdict.IMPROVED)],
)  # fmt: skip
def test_three_percent_is_the_tolerance_side_by_side(made: Any, factor: float, verdict: Verdict) -> None:
    finding = judged(made, factor)["itl_s"]
    assert finding.verdict is verdict
    assert finding.comparison.tier is Tier.DUET
    assert "tolerance 3.0 %" in finding.sentence
    assert "3 launches side by side" in finding.sentence
    assert finding.comparison.accepted == "measured beside ../old/bin/python"


def test_each_metric_has_its_own_tolerance_and_the_rate_stands_guard(made: Any) -> None:
    findings = judged(made, 1.08)
    assert {metric: findings[metric].verdict for metric in ("itl_s", "prefill_tok_s", "decode_tok_s")} == {
        "itl_s": Verdict.REGRESSED,
        "prefill_tok_s": Verdict.REGRESSED,
        "decode_tok_s": Verdict.PASS,
    }
    stalled = [dataclasses.replace(s, itl_s=(*s.itl_s[:-1], 0.08)) for s in made.slices(*LAUNCHES)]
    found = beside(made, tuple(stalled), made.slices(*LAUNCHES))
    stalls = {f.metric: f.verdict for f in judge_all(found.values(), DEFAULT_POLICY)}
    assert (stalls["itl_s"], stalls["decode_tok_s"]) == (Verdict.PASS, Verdict.REGRESSED)


def test_a_machine_that_changes_between_launches_does_not_matter(made: Any) -> None:
    """Each launch meets another machine, and both sides meet the same."""
    generator = numpy.random.default_rng(3)
    speeds = numpy.exp(generator.normal(0, 0.3, 5)).tolist()
    noise = numpy.exp(generator.normal(0, 0.002, (2, 5, 4))).tolist()
    now, old = ([[0.01 * m * x for x in row] for m, row in zip(speeds, side, strict=True)] for side in noise)
    found = beside(made, made.slices(*now), made.slices(*old))
    assert judge(found["itl_s"], DEFAULT_POLICY).verdict is Verdict.PASS
    worse = beside(made, made.slices(*[[1.06 * x for x in row] for row in now]), made.slices(*old))
    assert judge(worse["itl_s"], DEFAULT_POLICY).verdict is Verdict.REGRESSED


def test_the_spread_is_that_of_the_ratios_and_has_a_floor(made: Any) -> None:
    found = beside(made, made.slices(*slower(1.05)), made.slices(*LAUNCHES))["itl_s"]
    assert found.log_drift == pytest.approx(math.log(1.05))
    assert found.log_se == pytest.approx(0.003 / math.sqrt(3))
    assert (found.log_df, found.log_floor, found.n) == (2, 0.0, 3)


def test_only_launches_that_are_clean_on_both_sides_count(made: Any) -> None:
    old = tuple(
        dataclasses.replace(s, status=SampleStatus.CONTENDED) if s.launch == 2 else s for s in made.slices(*LAUNCHES)
    )
    found = beside(made, made.slices(*LAUNCHES), old)["itl_s"]
    assert (found.n, found.log_df) == (2, 1)


def test_one_pair_of_launches_cannot_tell_and_asks_for_more(made: Any) -> None:
    found = beside(made, made.slices(*LAUNCHES), made.slices(LAUNCHES[0]))["itl_s"]
    finding = judge(found, DEFAULT_POLICY)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "fewer than two launches are clean on both sides" in finding.sentence
    assert needs_more(finding)


def test_near_the_tolerance_more_launches_always_help(made: Any) -> None:
    assert needs_more(judged(made, 1.03)["itl_s"])
    assert not needs_more(judged(made, 1.0)["itl_s"])


def test_what_differs_between_the_sides_is_to_blame_and_accepted_numbers_have_no_say(made: Any) -> None:
    samples = made.slices(*LAUNCHES)
    stored = Baselines(speed=made.speed_baseline({"itl_s/short": (0.5,) * 5, "load_s/all": (9.0,) * 5}))
    found = compare(made.timed(samples), (), stored, made.environment, samples=samples, old=old_side(made, samples))
    assert {c.suspects for c in found} == {("llama-cpp-python: 0.3.35 → 0.3.36",)}
    assert "load_s" not in {c.metric for c in found}
    assert next(c for c in found if c.metric == "itl_s").baseline == pytest.approx(0.011)


def test_a_yardstick_is_no_witness_where_both_sides_met_the_same_machine(made: Any) -> None:
    now, old = made.slices(*slower(1.1)), made.slices(*LAUNCHES)
    fast, slow = (made.speed("yardstick_hash_bytes_s", (value,) * 3, "all") for value in (2e9, 1e9))
    new = dataclasses.replace(made.timed(now), measurements=(*made.timed(now).measurements, slow))
    side = old_side(made, old)
    side = dataclasses.replace(
        side, result=dataclasses.replace(side.result, measurements=(*side.result.measurements, fast))
    )
    found = compare(new, (), NOTHING, made.environment, samples=now, old=side)
    itl = next(c for c in found if c.metric == "itl_s")
    assert itl.machine_drift == ()
    assert judge(itl, DEFAULT_POLICY).verdict is Verdict.REGRESSED


def test_load_times_are_paired_by_launch(made: Any) -> None:
    launches = [made.launch(index, load_s=2.0**index) for index in range(4)]
    new = made.timed((), launches[1:])
    found = compare(new, (), NOTHING, made.environment, old=old_side(made, (), launches=launches[:3]))
    loaded = next(c for c in found if c.metric == "load_s")
    assert (loaded.n, loaded.log_drift) == (2, 0.0)


def test_memory_is_compared_by_its_values(made: Any) -> None:
    mib = 2**20
    small, large = ([made.launch(k, peak_rss_bytes=size * mib) for k in range(3)] for size in (400, 500))
    found = compare(made.timed((), large), (), NOTHING, made.environment, old=old_side(made, (), launches=small))
    finding = judge(next(c for c in found if c.metric == "peak_rss_bytes"), DEFAULT_POLICY)
    assert (finding.verdict, finding.p_value) == (Verdict.REGRESSED, None)
    assert finding.comparison.drift == pytest.approx(0.25)
    same = compare(made.timed((), small), (), NOTHING, made.environment, old=old_side(made, (), launches=small))
    assert judge(next(c for c in same if c.metric == "peak_rss_bytes"), DEFAULT_POLICY).verdict is Verdict.PASS


def test_memory_that_differs_from_load_to_load_is_no_regression_until_every_launch_needs_more(made: Any) -> None:
    """Eight-bit weights that are made while they load: 908 to 1104 MB, with nothing changed."""

    def found(now: tuple[int, ...], then: tuple[int, ...]) -> Finding:
        new, old = ([made.launch(k, peak_rss_bytes=mb * 10**6) for k, mb in enumerate(side)] for side in (now, then))
        beside = compare(made.timed((), new), (), NOTHING, made.environment, old=old_side(made, (), launches=old))
        return judge(next(c for c in beside if c.metric == "peak_rss_bytes"), DEFAULT_POLICY)

    same = found((1093, 974, 1090), (966, 908, 912))
    assert same.verdict is Verdict.INCONCLUSIVE
    assert same.comparison.interval == pytest.approx((974 / 966 - 1, 1093 / 908 - 1))
    assert "its launches differ by as much among themselves" in same.sentence
    assert "0.8 … 20.4 % worse" in same.sentence
    assert "widen [policy.peak_rss_bytes]" in same.next_step
    assert found((966, 908, 912), (1093, 974, 1090)).verdict is Verdict.PASS
    assert found((1200, 1190, 1250), (966, 908, 912)).verdict is Verdict.REGRESSED
    assert found((600, 640, 610), (966, 908, 912)).verdict is Verdict.IMPROVED


def test_an_old_side_that_failed_leaves_nothing_to_compare_and_is_named(made: Any) -> None:
    samples, trials = made.slices(*LAUNCHES), made.trials(1.0, 1.0)
    failure = VariantFailure(variant="q4@old", verdict=Verdict.ERROR, reason="no module named llama_cpp")
    old = old_side(made, (), failure=failure)
    result = made.timed(samples, trials=trials)
    found = compare(result, trials, NOTHING, made.environment, samples=samples, old=old)
    findings = {f.metric: f for f in judge_all(found, DEFAULT_POLICY)}
    assert {f.verdict for f in findings.values()} == {Verdict.NOT_MEASURED}
    for metric in ("score", "itl_s"):
        assert "../old/bin/python" in findings[metric].sentence
        assert "no module named llama_cpp" in findings[metric].sentence
    assert [f.scope for f in findings.values() if f.metric == "score"] == ["all"]  # and not once more for each case


def test_what_was_not_measured_of_the_old_side_is_not_measured(made: Any) -> None:
    samples = made.slices(*LAUNCHES)
    found = compare(made.timed(samples), (), NOTHING, made.environment, samples=samples, old=old_side(made))
    assert {c.unresolved for c in found} == {Verdict.NOT_MEASURED}
    assert {c.reason for c in found} == {"it was not measured of ../old/bin/python"}


def answered(made: Any, now: tuple[Trial, ...], old: tuple[Trial, ...]) -> dict[tuple[str, str], Finding]:
    """`old` beside `now`, and an accepted baseline that has nothing to do with either."""
    shadows = tuple(dataclasses.replace(trial, variant="q4@old") for trial in old)
    accepted = Baselines(quality=made.quality_baseline(made.trials(*[0.0] * 3)))
    side = dataclasses.replace(old_side(made), trials=shadows)
    found = compare(made.result(trials=now), now, accepted, made.environment, old=side)
    return {(f.metric, f.scope): f for f in judge_all(found, DEFAULT_POLICY)}


def test_the_old_sides_answers_are_the_baseline(made: Any) -> None:
    then = made.trials(*[1.0] * 72)
    same = answered(made, then, then)["score", "all"]
    assert (same.verdict, same.comparison.identical, same.comparison.tier) == (Verdict.PASS, True, Tier.DUET)
    worse = answered(made, made.trials(*[0.0] * 9, *[1.0] * 63), then)["score", "all"]
    assert worse.verdict is Verdict.REGRESSED
    assert worse.comparison.suspects == ("llama-cpp-python: 0.3.35 → 0.3.36",)
    assert worse.comparison.accepted == "measured beside ../old/bin/python"


def test_cases_that_the_old_side_could_not_answer_are_not_new_ones(made: Any) -> None:
    then = (made.trial("code/00", TrialStatus.ERROR), *made.trials(1.0, 1.0))
    now = (made.trial("code/00", 1.0), *made.trials(1.0, 1.0))
    found = answered(made, now, then)
    assert found["score", "math"].verdict is Verdict.PASS
    assert "2 of 3 cases compared" in found["score", "all"].sentence
    assert found["score", "code"].verdict is found["score", "code/00"].verdict is Verdict.NOT_MEASURED
    assert "../old/bin/python gave no answer to it" in found["score", "code/00"].sentence


def test_a_planned_gate_is_answered_side_by_side_too(made: Any) -> None:
    samples = made.slices(*LAUNCHES)
    planned = [GateItem(Aspect.SPEED, "itl_s", "long"), GateItem(Aspect.SPEED, "itl_s", "short")]
    old = old_side(made, samples)
    found = compare(made.timed(samples), (), NOTHING, made.environment, planned=planned, samples=samples, old=old)
    by_scope = {c.scope: c.unresolved for c in found if c.metric == "itl_s"}
    assert by_scope == {"long": Verdict.NOT_MEASURED, "short": None}


def test_accepting_is_a_run_without_the_old_side_and_not_a_quick_one(made: Any) -> None:
    then, now = made.trials(*[1.0] * 24), made.trials(*[0.0] * 24)
    found = compare(made.result(trials=now), now, Baselines(quality=made.quality_baseline(then)), made.environment)
    command = "pytest --model-matrix --matrix-file='my matrix.toml' --matrix-against=/old/python --matrix-quick"
    finding = next(judge(c, DEFAULT_POLICY, command=command) for c in found if (c.metric, c.scope) == ("score", "all"))
    assert finding.next_step.endswith(
        "pytest --model-matrix '--matrix-file=my matrix.toml' --matrix-variants q4 --matrix-update=changed "
        '--matrix-reason "..."'
    )


def test_the_drift_that_is_told_is_that_of_the_pairs(made: Any) -> None:
    found = judged(made, 1.03)["itl_s"].comparison
    assert found.drift is not None
    assert found.interval is not None
    assert found.interval[0] < found.drift < found.interval[1]
    assert found.log_drift is not None
    assert found.drift == pytest.approx(math.expm1(found.log_drift))


def test_the_words_tell_the_pairs_from_the_medians_of_all(made: Any) -> None:
    assert "slice beside slice (medians of all: " in judged(made, 1.2)["itl_s"].sentence


def test_side_by_side_nothing_is_blamed_on_sessions_nor_is_a_duet_advised(made: Any) -> None:
    found = judged(made, 1.0)["itl_s"].comparison
    wild = dataclasses.replace(found, log_drift=math.log(1.03) - 1e-4, log_se=0.2, log_df=2)
    finding = judge(wild, DEFAULT_POLICY)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "the launches themselves differ" in finding.next_step
    assert "--matrix-against" not in finding.next_step
