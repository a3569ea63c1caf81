"""Speed and memory: from launches to the sentence."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy
import pytest

from suite.gate.compare import compare
from suite.gate.decide import estimate_of
from suite.gate.judge import judge, needs_more
from suite.gate.plan import GateItem, plan_gates
from suite.gate.policy import DEFAULT_POLICY
from suite.gate.wording import span
from suite.records import (
    Aspect,
    Baselines,
    Comparison,
    Environment,
    Finding,
    Gate,
    Measurement,
    Scenario,
    Tier,
    VariantFailure,
    Verdict,
)
from suite.stats.intervals import p_above, p_below

DECODE = "decode_tok_s/short"
OLD = (171.0, 172.0, 170.0)


def compared(made: Any, measurement: Measurement, baselines: Baselines, **changes: Any) -> Comparison:
    (found,) = compare(made.result(measurement, **changes), (), baselines, made.environment)
    return found


def judged(
    made: Any, now: tuple[float, ...], then: tuple[float, ...] = OLD, metric: str = "decode_tok_s", looks: int = 1
) -> Finding:
    scope = "all" if metric.endswith("_bytes") else "short"
    stored = Baselines(speed=made.speed_baseline({f"{metric}/{scope}": then}))
    (found,) = compare(made.result(made.speed(metric, now, scope)), (), stored, made.environment, looks=looks)
    return judge(found, DEFAULT_POLICY)


def test_a_large_slowdown_is_regressed_and_says_all_of_it(made: Any) -> None:
    finding = judged(made, (120.0, 121.0, 119.0))
    assert finding.verdict is Verdict.REGRESSED
    for part in ("q4: decode rate (short) fell by 29.8 %", "171 tok/s → 120 tok/s", "95 %: 23", "tolerance 15.0 %",
                 "could have seen", "launches: 3 now, 3 then"):  # fmt: skip
        assert part in finding.sentence
    assert "llama-cpp-python: 0.3.35 → 0.3.36" in finding.comparison.suspects
    assert (
        'pytest --model-matrix --matrix-variants q4 --matrix-update=changed --matrix-reason "..."' in finding.next_step
    )


def test_drift_is_the_share_of_the_old_value_that_was_lost(made: Any) -> None:
    decode = judged(made, (80.0,) * 3, (100.0,) * 3).comparison
    ttft = judged(made, (0.12,) * 3, (0.1,) * 3, "ttft_s").comparison
    assert decode.drift == pytest.approx(0.2)
    assert ttft.drift == pytest.approx(0.2)
    for found in (decode, ttft):
        assert found.interval is not None
        assert found.interval[0] < 0.2 < found.interval[1]


def test_the_same_speed_passes_and_needs_nothing(made: Any) -> None:
    finding = judged(made, (171.5, 170.0, 172.0))
    assert (finding.verdict, finding.next_step) == (Verdict.PASS, "")


def test_a_gain_is_loud_and_asks_for_a_new_baseline(made: Any) -> None:
    finding = judged(made, (220.0, 221.0, 219.0))
    assert finding.verdict is Verdict.IMPROVED
    assert "rose by 28.7 %" in finding.sentence
    assert re.search(r"\(95 %: \d+\.\d … \d+\.\d % better;", finding.sentence)
    assert "--matrix-update=changed" in finding.next_step


@pytest.mark.parametrize(("interval", "told"), [
    ((0.104, 0.131), "10.4 … 13.1 % worse"),
    ((-0.553, -0.276), "27.6 … 55.3 % better"),
    ((-0.021, 0.036), "2.1 % better … 3.6 % worse"),
    ((-0.0, 0.376), "0.0 … 37.6 % worse"),
    ((-1e-17, 0.376), "0.0 … 37.6 % worse"),
])  # fmt: skip
def test_an_interval_is_told_in_the_direction_of_the_change(interval: tuple[float, float], told: str) -> None:
    assert span(interval, lambda share: f"{100 * share:.1f}", "%") == told


SPREAD = (152.0, 192.0)
"""Launches that differ a lot."""


def test_when_launches_differ_it_cannot_be_told_and_the_number_that_would_settle_it_is_named(made: Any) -> None:
    finding = judged(made, (152.0, 171.0, 192.0), SPREAD * 5)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "cannot tell: the interval spans the tolerance" in finding.sentence
    assert finding.next_step == (
        "about 10 more launches would settle it:\n"
        "pytest --model-matrix --matrix-variants q4 --matrix-only=speed --matrix-resume"
    )
    assert needs_more(finding)
    assert judged(made, (*SPREAD * 6, 171.0), SPREAD * 5, looks=2).verdict is Verdict.PASS  # and so they do


def test_when_whole_sessions_differ_more_launches_would_not_do_and_it_says_so(made: Any) -> None:
    finding = judged(made, (155.0, 154.5, 155.5))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.next_step.startswith("more launches cannot settle it, for whole sessions differ by more than this")
    assert "pytest --model-matrix --matrix-variants q4 --matrix-against=OLD-PYTHON" in finding.next_step
    assert "quantdrift calibrate" in finding.next_step
    assert not needs_more(finding)
    assert judged(made, (155.0, 154.5, 155.5) * 50, OLD * 50).verdict is Verdict.INCONCLUSIVE


def test_what_more_launches_cannot_settle_does_not_ask_for_any(made: Any) -> None:
    for rate in range(100, 180, 2):
        for looks in (1, 2, 3):
            finding = judged(made, (float(rate),) * 5, (171.0,) * 5, looks=looks)
            assert needs_more(finding) is ("more launches would settle it" in finding.next_step)


def test_what_is_settled_or_only_informs_or_is_no_speed_needs_no_launches(made: Any) -> None:
    undecided = judged(made, (152.0, 171.0, 192.0), SPREAD * 5)
    assert needs_more(dataclasses.replace(undecided, gate=Gate.WARN))
    assert not needs_more(dataclasses.replace(undecided, gate=Gate.INFO))
    assert not needs_more(dataclasses.replace(undecided, verdict=Verdict.PASS))
    answers = dataclasses.replace(undecided.comparison, aspect=Aspect.QUALITY)
    assert not needs_more(dataclasses.replace(undecided, comparison=answers))


def test_single_launches_have_no_interval_and_are_inconclusive_whatever_they_say(made: Any) -> None:
    finding = judged(made, (60.0,), (171.0,))
    assert finding.comparison.interval is None
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "one launch on each side has no spread" in finding.sentence
    assert finding.next_step.startswith("about 3 more launches would settle it:\n")
    assert finding.next_step.endswith("--matrix-only=speed --matrix-resume")
    assert needs_more(finding)


def test_contended_speed_is_never_a_verdict(made: Any) -> None:
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}))
    for rate in (60.0, 171.0, 300.0):
        busy = made.speed(
            "decode_tok_s", (rate,) * 3, status="contended", reason="9 of 9 samples contended (pressure 50 %)"
        )
        finding = judge(compared(made, busy, stored), DEFAULT_POLICY)
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert finding.comparison.interval is None
        assert "9 of 9 samples contended" in finding.sentence
        assert "nothing else runs" in finding.next_step
        assert "--matrix-resume" in finding.next_step
        assert needs_more(finding)


def test_absolute_tolerance_keeps_tiny_times_from_failing(made: Any) -> None:
    assert judged(made, (0.013,) * 3, (0.010,) * 3, "ttft_s").verdict is Verdict.PASS
    assert judged(made, (0.260,) * 3, (0.200,) * 3, "ttft_s").verdict is Verdict.REGRESSED


def test_memory_needs_no_statistics_but_both_tolerances(made: Any) -> None:
    mib = 2.0**20
    assert judged(made, (130 * mib,), (100 * mib,), "peak_rss_bytes").verdict is Verdict.REGRESSED
    assert judged(made, (110 * mib,), (100 * mib,), "peak_rss_bytes").verdict is Verdict.PASS  # 10 %, but only 10 MiB
    assert judged(made, (1020 * mib,), (1000 * mib,), "peak_rss_bytes").verdict is Verdict.PASS  # 20 MiB, but only 2 %
    assert judged(made, (60 * mib,), (100 * mib,), "peak_rss_bytes").verdict is Verdict.IMPROVED
    assert judged(made, (130 * mib,), (100 * mib,), "peak_rss_bytes").comparison.interval is None


def test_memory_that_was_zero_and_is_not_is_regressed(made: Any) -> None:
    finding = judged(made, (64.0 * 2**20,), (0.0,), "kv_cache_bytes")
    assert finding.verdict is Verdict.REGRESSED
    assert "rose from nothing to 67.1 MB" in finding.sentence
    assert judged(made, (0.0,), (0.0,), "kv_cache_bytes").verdict is Verdict.PASS


@pytest.mark.parametrize(("mib", "verdict"), [(15, Verdict.PASS), (17, Verdict.REGRESSED)])
def test_memory_that_was_zero_may_grow_by_the_absolute_tolerance(made: Any, mib: int, verdict: Verdict) -> None:
    finding = judged(made, (mib * 2.0**20,), (0.0,), "peak_device_bytes")
    assert finding.verdict is verdict
    assert "tolerance 16.8 MB" in finding.sentence


def test_nothing_stored_is_unbaselined(made: Any) -> None:
    found = compared(made, made.speed("decode_tok_s", OLD), Baselines())
    finding = judge(found, DEFAULT_POLICY)
    assert (finding.verdict, found.tier) == (Verdict.UNBASELINED, Tier.NONE)
    assert "--matrix-update=new" in finding.next_step


def test_a_new_metric_beside_old_ones_is_unbaselined(made: Any) -> None:
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}))
    results = made.result(made.speed("ttft_s", (0.1,) * 3))
    found = {c.metric: c for c in compare(results, (), stored, made.environment)}
    assert found["ttft_s"].unresolved is Verdict.UNBASELINED
    assert found["decode_tok_s"].unresolved is Verdict.NOT_MEASURED


def test_another_question_is_not_comparable_and_names_each_field(made: Any) -> None:
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}, identity={"prompt_format": "raw", "machine.cpu": "EPYC",
                                                                          "machine.cores": "2", "n_ctx": "512"}))  # fmt: skip
    found = compared(made, made.speed("decode_tok_s", (60.0,) * 3), stored)
    assert (found.unresolved, found.tier) == (Verdict.NOT_COMPARABLE, Tier.STORED)
    assert found.reason == "n_ctx: 512 → (absent); prompt_format: raw → chat"
    assert "--matrix-update=changed" in judge(found, DEFAULT_POLICY).next_step


def test_another_machine_is_foreign_and_never_a_failure(made: Any) -> None:
    far = made.speed_baseline({DECODE: (900.0,) * 3}, machine="xeon", identity={"machine.cpu": "Xeon"})
    near = made.speed_baseline(
        {DECODE: (900.0,) * 3},
        machine="epyc-4c",
        identity={"prompt_format": "chat", "machine.cpu": "EPYC", "machine.cores": "4"},
    )
    found = compared(made, made.speed("decode_tok_s", (60.0,) * 3), Baselines(foreign=(far, near)))
    finding = judge(found, DEFAULT_POLICY)
    assert (finding.verdict, found.tier) == (Verdict.NOT_COMPARABLE, Tier.FOREIGN)
    assert found.reason == "the baseline is from machine epyc-4c: machine.cores: 4 → 2"
    assert "--matrix-update=new" in finding.next_step


def test_changed_suspects_are_listed_but_never_prevent(made: Any) -> None:
    found = judged(made, OLD).comparison
    assert found.suspects == ("llama-cpp-python: 0.3.35 → 0.3.36",)
    assert found.unresolved is None


def test_a_hand_edited_baseline_is_said(made: Any) -> None:
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}, edited=True))
    found = compared(made, made.speed("decode_tok_s", OLD), stored)
    assert found.accepted == 'accepted 2026-11-20, "llama-cpp-python 0.3.35"; the file was edited by hand since'


@pytest.mark.parametrize("verdict", [Verdict.ERROR, Verdict.INVALID, Verdict.NOT_MEASURED])
def test_a_failed_variant_has_its_failure_for_every_gate(made: Any, verdict: Verdict) -> None:
    planned = plan_gates([Scenario(name="short", prompt_tokens=1, new_tokens=1)], ["math"], DEFAULT_POLICY)
    failure = VariantFailure(variant="q4", verdict=verdict, reason="killed by signal 9")
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}), quality=made.quality_baseline(made.trials(1.0)))
    found = compare(made.result(failure=failure), (), stored, made.environment, planned=planned)
    assert {GateItem(c.aspect, c.metric, c.scope) for c in found} == set(planned)
    assert {c.unresolved for c in found} == {verdict}
    assert all("killed by signal 9" in judge(c, DEFAULT_POLICY).sentence for c in found)


def test_a_planned_gate_without_a_measurement_is_not_measured(made: Any) -> None:
    planned = [GateItem(Aspect.SPEED, "decode_tok_s", "short")]
    unmeasured = Measurement(metric="decode_tok_s", scope="short", value=None, status="not_measured", reason="xdist")
    for results, reason in ((made.result(), "not part of this run"), (made.result(unmeasured), "xdist")):
        (found,) = compare(results, (), Baselines(), made.environment, planned=planned)
        assert found.unresolved is Verdict.NOT_MEASURED
        assert reason in found.reason


def test_speedup_is_not_gated_on_drift(made: Any) -> None:
    assert compare(made.result(made.speed("speedup", (2.0,) * 3)), (), Baselines(), made.environment) == ()


def test_false_alarms_and_detection_over_many_simulated_runs(made: Any) -> None:
    generator = numpy.random.default_rng(5)
    verdicts: dict[float, list[Verdict]] = {}
    for slowdown in (0.0, 0.3):
        for _ in range(200):
            then = tuple(100 * numpy.exp(generator.normal(0, 0.015, 3)))
            now = tuple(100 * (1 - slowdown) * numpy.exp(generator.normal(0, 0.015, 3)))
            verdicts.setdefault(slowdown, []).append(judged(made, now, then).verdict)
    assert Verdict.REGRESSED not in verdicts[0.0]
    assert verdicts[0.0].count(Verdict.PASS) > 180
    assert verdicts[0.3].count(Verdict.REGRESSED) == 200


def test_a_slower_session_of_a_machine_that_was_never_calibrated_is_no_regression(made: Any) -> None:
    """Sessions that differ by 3 %, on a metric with a tolerance of 10 %: what once cried wolf."""
    generator = numpy.random.default_rng(8)
    verdicts = []
    for _ in range(400):
        then, now = (
            tuple(0.01 * numpy.exp(generator.normal(0, 0.03) + generator.normal(0, 0.01, 5))) for _ in range(2)
        )
        verdicts.append(judged(made, now, then, "itl_s").verdict)
    assert Verdict.REGRESSED not in verdicts
    assert Verdict.IMPROVED not in verdicts
    assert judged(made, (0.0125,) * 5, (0.01,) * 5, "itl_s").verdict is Verdict.REGRESSED


def test_a_drift_is_decided_by_one_sided_tests_on_logs_at_their_levels(made: Any) -> None:
    for now, verdict in (((0.0122,) * 5, Verdict.REGRESSED), ((0.0096,) * 5, Verdict.PASS)):
        finding = judged(made, now, (0.01,) * 5, "itl_s")
        estimate = estimate_of(finding.comparison)
        assert estimate is not None
        assert estimate.mean == pytest.approx(math.log(now[0] / 0.01))
        assert finding.p_value == pytest.approx(p_above(estimate, math.log1p(0.10)))
        assert finding.p_needed == pytest.approx(0.05 / 4)
        assert finding.verdict is verdict
        assert finding.p_value is not None
        assert (finding.p_value <= 0.025) is (verdict is Verdict.REGRESSED)
        assert (p_below(estimate, math.log1p(0.10)) <= 0.025) is (verdict is Verdict.PASS)


def test_the_machine_slug_alone_never_hides_a_changed_machine(made: Any) -> None:
    moved = Environment(machine="epyc-2c", identity={"cpu": "EPYC", "cores": "8"}, suspects={}, readings={})
    stored = Baselines(speed=made.speed_baseline({DECODE: OLD}))
    (found,) = compare(made.result(made.speed("decode_tok_s", OLD)), (), stored, moved)
    assert (found.unresolved, found.tier) == (Verdict.NOT_COMPARABLE, Tier.FOREIGN)
    assert "machine.cores: 2 → 8" in found.reason


def test_every_number_of_a_finding_comes_from_its_comparison(made: Any) -> None:
    finding = judged(made, (120.0, 121.0, 119.0))
    again = judge(dataclasses.replace(finding.comparison), DEFAULT_POLICY)
    assert again == finding


def test_a_baseline_that_lies_with_another_machine_is_foreign_even_if_all_fields_agree(made: Any) -> None:
    there = made.speed_baseline({DECODE: OLD}, machine="renamed")
    found = compared(made, made.speed("decode_tok_s", OLD), Baselines(foreign=(there,)))
    assert (found.unresolved, found.tier) == (Verdict.NOT_COMPARABLE, Tier.FOREIGN)
    assert "machine: renamed → epyc-2c" in found.reason
