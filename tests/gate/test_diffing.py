"""Two states of baselines are judged as a run would have judged them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support import sample_diffs as samples
from support import sample_runs

from suite.gate.diffing import diff_snapshots
from suite.gate.diffing_policy import compare_policies
from suite.gate.diffing_sides import ABOUT_ANSWERS, NOT_ACCEPTED, baselines_of
from suite.gate.held import hold_answers
from suite.gate.refresh import Update
from suite.records import (
    Budget,
    Comparison,
    Diff,
    DiffEntry,
    Figure,
    Gate,
    Protocol,
    Snapshot,
    Tolerance,
    Verdict,
)


def entry(diff: Diff, variant: str = "q4_k_m", aspect: str = "quality") -> DiffEntry:
    return next(one for one in diff.entries if (one.variant, one.aspect) == (variant, aspect))


def figure(of: DiffEntry, metric: str, scope: str = "all") -> Figure:
    return next(one for one in of.figures if (one.metric, one.scope) == (metric, scope))


def comparison(of: Figure) -> Comparison:
    assert of.finding is not None
    return of.finding.comparison


def asked(diff: Diff, kind: str) -> list[str]:
    return [question.sentence for question in diff.questions if question.kind == kind]


def test_the_same_state_twice_is_an_empty_diff() -> None:
    diff = samples.unchanged()
    assert {one.state for one in diff.entries} == {"unchanged"}
    assert not any(one.figures for one in diff.entries)
    assert (diff.tolerances, diff.notes, diff.questions) == ((), (), ())


def test_lost_answers_and_a_larger_divergence_are_worse() -> None:
    quality = entry(samples.regression())
    kld, score = figure(quality, "mean_kld"), figure(quality, "score")
    assert (kld.state, kld.beyond_noise) == ("worse", True)
    assert comparison(kld).drift == pytest.approx(0.26, abs=0.02)
    assert score.state == "worse"
    assert comparison(score).drift == pytest.approx(6 / 40)
    assert comparison(score).p_value == pytest.approx(1 / 64)
    assert len(quality.flips) == 6
    assert not any(flip.is_correct for flip in quality.flips)
    assert quality.differences == ("sha256 of model.gguf: 91c091c091c0… → 5be25be25be2…",)


def test_faster_on_a_calibrated_machine_is_better_and_everything_else_is_the_same() -> None:
    speed = entry(samples.improvement(), aspect="speed")
    assert figure(speed, "decode_tok_s", "short").state == "better"
    assert figure(speed, "itl_s", "short").state == "better"
    assert set(speed.same) == {"prefill_tok_s/short", "peak_rss_bytes/all"}
    assert asked(samples.improvement(), "too good") == []


def test_the_same_loss_on_a_machine_that_was_never_calibrated_cannot_be_told() -> None:
    uncalibrated = [replace(side, noise=()) for side in (samples.then(), samples.now(samples.times(factor=0.88)))]
    decode = figure(entry(diff_snapshots(*uncalibrated), aspect="speed"), "decode_tok_s", "short")
    low, _ = comparison(decode).interval or (0.0, 0.0)
    assert low > 0
    assert (decode.state, decode.beyond_noise) == ("unclear", None)  # not "within" beside an interval without zero


def test_speeds_of_a_disturbed_session_are_never_within_tolerance() -> None:
    flagged = replace(samples.NOW, flags=("a neighbour took 9 of 12 slices",))
    diff = diff_snapshots(samples.then(), samples.now(samples.times(factor=0.999, provenance=flagged)))
    assert figure(entry(diff, aspect="speed"), "decode_tok_s", "short").state == "unclear"
    assert "a neighbour took 9 of 12 slices" in asked(diff, "contended")[0]


def test_a_loss_is_held_against_the_tolerance_that_was_in_force_before() -> None:
    slower = samples.times(factor=0.88, provenance=samples.NOW)
    wide = samples.matrix(policy={"decode_tok_s": Tolerance(relative=0.5), "itl_s": Tolerance(relative=0.5)})
    diff = diff_snapshots(samples.then(), samples.now(slower, matrix=wide))
    assert figure(entry(diff, aspect="speed"), "decode_tok_s", "short").state == "worse"
    assert diff.judged_by == "those of main (1791725)"


def test_answers_whose_tokens_were_never_kept_pair_all_the_same() -> None:
    now = samples.answers(wrong=(2, 7, 19, 27, 33), provenance=samples.NOW)
    score = figure(entry(diff_snapshots(samples.then(), samples.now(now))), "score")
    assert all(case.output_ids is None for case in now.cases.values())
    assert comparison(score).n == 40
    assert [flip.case for flip in comparison(score).flips] == ["code/02"]


def test_families_of_the_trace_count_once() -> None:
    together = samples.trace(families={name: "one" if name.startswith("code") else None for name in samples.CASES})
    worse = samples.answers(wrong=(2, 3, 5, 7, 9, 11, 19, 27, 33), provenance=samples.NOW)
    alone = diff_snapshots(samples.then(), samples.now(worse))
    family = diff_snapshots(samples.then(traces=(together,)), samples.now(worse, traces=(together,)))
    assert comparison(figure(entry(alone), "score")).p_value == pytest.approx(1 / 32)
    assert comparison(figure(entry(family), "score")).p_value == pytest.approx(1 / 2)


def test_cases_weigh_by_their_length_in_the_trace() -> None:
    lengths = {name: 100 if name == "code/00" else 1 for name in samples.CASES}
    cases = dict(samples.answers().cases)
    cases["code/00"] = samples.case(0, kld=2 * samples.KLD)
    now = samples.now(samples.answers(cases=cases, provenance=samples.NOW), traces=(samples.trace(positions=lengths),))
    kld = comparison(figure(entry(diff_snapshots(samples.then(), now)), "mean_kld"))
    assert kld.drift is not None
    assert kld.drift > 0.5


def test_a_case_of_another_version_is_named_and_not_compared() -> None:
    quality = entry(samples.other_question())
    assert quality.cases_asked_otherwise == {"code/03": "version: 1 → 2"}
    assert quality.cases_added == ("code/99",)
    assert not quality.flips


def test_another_scenario_is_another_question() -> None:
    diff = samples.other_question()
    decode = (
        figure(entry(diff, aspect="speed"), "decode_tok_s", "short") if entry(diff, aspect="speed").figures else None
    )
    assert entry(diff, aspect="speed").state == "changed"
    assert decode is None or decode.state == "otherwise"
    assert "scenario.short: 64 → 16 tokens → 128 → 32 tokens" in entry(diff, aspect="speed").differences
    assert diff.notes == ("the reference trace of smollm2-135m-instruct was made anew: weights: 91c0 → 5be2",)


def test_speed_of_another_machine_is_paired_and_never_judged() -> None:
    diff = samples.other_machine()
    speeds = [one for one in diff.entries if one.aspect == "speed"]
    assert {(one.machine, one.moved_from) for one in speeds} == {(samples.OTHER_MACHINE, samples.MACHINE)}
    assert {found.state for one in speeds for found in one.figures} == {"otherwise"}
    assert asked(diff, "gone") == []


def test_a_second_machine_is_new_and_takes_nothing_away() -> None:
    both = samples.now(samples.times(machine=samples.OTHER_MACHINE))
    diff = diff_snapshots(samples.then(), replace(both, speed=(*both.speed, samples.times())))
    assert [one.machine for one in diff.entries if one.state == "new"] == [samples.OTHER_MACHINE]


def test_a_variant_that_disappeared_is_asked_about() -> None:
    assert asked(samples.removed_variant(), "gone") == [
        "the baseline of q8_0's answers is gone, though the matrix file still declares it: its gates have nothing to be held "
        "against",
        "the baseline of q8_0's speed is gone, though the matrix file still declares it: its gates have nothing to be held "
        "against",
    ]
    dropped = diff_snapshots(samples.then(), samples.now(without=("q8_0",)))
    assert "so that nothing guards it any more" in asked(dropped, "gone")[0]


def test_an_edited_baseline_is_asked_about_even_where_it_was_edited_before() -> None:
    assert "its content does not match its digest; nobody measured it so" in asked(samples.edited(), "edited")[0]
    by_hand = replace(samples.answers(), edited=True)
    old = diff_snapshots(samples.then(quality=(by_hand,)), samples.now(quality=(by_hand,)))
    assert "does not match its digest, and was before" in asked(old, "edited")[0]


def test_content_that_changed_under_the_same_acceptance_was_not_written_by_an_update() -> None:
    diff = diff_snapshots(samples.then(), samples.now(samples.answers(wrong=(7, 19))))
    assert "no update wrote this" in asked(diff, "not accepted")[0]
    assert asked(samples.regression(), "not accepted") == []


def test_a_baseline_accepted_while_gates_failed_is_asked_about_once() -> None:
    told = asked(samples.suspicious(), "failed")
    assert (
        "q4_k_m was accepted while gates of its failed (1 ERROR, 2 REGRESSED in run 2026-11-29T18-04-11-7c1f)" in told
    )
    assert len([one for one in told if one.startswith("q4_k_m was accepted while")]) == 1
    assert any("although 1 gate on answers could not be told" in one for one in told)


def test_an_improvement_that_is_too_good_names_its_rule() -> None:
    told = asked(samples.suspicious(), "too good")
    assert any("times as fast (more than 1.5 times is asked about), with the same weights" in one for one in told)
    assert any("mean_kld" in one and "20 % of what it was (less than 50 % is asked about)" in one for one in told)
    assert any("though nothing that is recorded changed" in one for one in told)


def too_fast(key: str, was: float, now: float) -> list[str]:
    """What is asked about its being faster when one speed is another one in each of five launches."""
    sides = []
    for value, provenance in ((was, samples.WAS), (now, samples.NOW)):
        launches = [value * factor for factor in (0.99, 0.995, 1.0, 1.005, 1.01)]
        usual = samples.times(provenance=provenance)
        sides.append(replace(usual, metrics={**usual.metrics, key: samples.timed(key, launches)}))
    diff = diff_snapshots(samples.state(sides[0]), samples.now(sides[1]))
    assert figure(entry(diff, aspect="speed"), *key.split("/")).beyond_noise
    return [sentence for sentence in asked(diff, "too good") if "times as fast" in sentence]


@pytest.mark.parametrize(("key", "was", "now"), [
    ("decode_tok_s/short", 100.0, 200.0), ("ttft_s/short", 0.3, 0.15), ("tpot_s/short", 0.02, 0.01),
])  # fmt: skip
def test_a_rate_or_a_time_that_is_too_good_is_asked_about(key: str, was: float, now: float) -> None:
    assert "is 2 times as fast (more than 1.5 times" in too_fast(key, was, now)[0]


@pytest.mark.parametrize("metric", ["itl_p95_s", "itl_p99_s"])
def test_a_tail_that_a_few_gaps_decide_is_not_asked_about(metric: str) -> None:
    assert too_fast(f"{metric}/short", 0.06, 0.03) == []


@pytest.mark.parametrize(("metric", "was", "now"), [("turn_gain", 2.0, 4.0), ("late_slowdown", 2.0, 1.0)])
def test_a_ratio_of_two_times_is_no_speed(metric: str, was: float, now: float) -> None:
    assert too_fast(f"{metric}/short", was, now) == []


def test_lost_cases_launches_and_first_baselines_are_asked_about() -> None:
    diff = samples.suspicious()
    assert "has lost 2 cases, of which 2 not answered right: code/07, code/19" in asked(diff, "cases gone")[0]
    assert any("rests on 2 launches" in one for one in asked(diff, "contended"))
    assert asked(diff, "frozen") == [
        "the first baseline of q4_k_m (answers), beside which creeping is seen, was replaced"
    ]


def test_a_file_that_cannot_be_read_is_named_and_its_baseline_is_not_gone() -> None:
    diff = samples.unreadable()
    assert entry(diff, "q8_0").state == "unreadable"
    assert asked(diff, "gone") == []
    assert "not JSON" in asked(diff, "unreadable")[0]
    assert entry(diff, "q4_k_m").state == "unchanged"


def test_accepting_the_same_figures_again_drifts_nowhere() -> None:
    again = samples.answers(provenance=samples.NOW, suspects=samples.NEWER)
    assert entry(diff_snapshots(samples.then(), samples.now(again))).state == "accepted anew"


def test_a_policy_that_cannot_be_merged_is_a_fault_and_the_other_one_judges() -> None:
    broken = samples.matrix(policy={"itl": Tolerance(relative=0.1)})
    diff = diff_snapshots(samples.then(matrix=broken), samples.now())
    assert "no metric 'itl' is gated; did you mean 'itl_s'?" in asked(diff, "unreadable")[0]
    assert diff.judged_by == "those of the working tree"
    assert not diff.tolerances_compared


# ---------------------------------------------------------------------------------------------------- tolerances


@pytest.mark.parametrize(("was", "now", "loosened"), [
    (Tolerance(relative=0.1), Tolerance(relative=0.2), True),
    (Tolerance(relative=0.2), Tolerance(relative=0.1), False),
    (Tolerance(relative=0.1), Tolerance(relative=0.1, absolute=0.5), True),
    (Tolerance(relative=0.2), Tolerance(relative=0.1, absolute=0.5), True),
    (Tolerance(relative=0.1), Tolerance(relative=0.1, gate=Gate.WARN), True),
    (Tolerance(relative=0.1, gate=Gate.WARN), Tolerance(relative=0.1), False),
    (Tolerance(relative=0.1, duet=0.03), Tolerance(relative=0.1), True),
    (Tolerance(relative=0.1), Tolerance(relative=0.1, duet=0.03), False),
])  # fmt: skip
def test_a_tolerance_is_loosened_by_whatever_lets_more_pass(was: Tolerance, now: Tolerance, loosened: bool) -> None:
    sides = [samples.matrix(policy={"itl_s": tolerance}) for tolerance in (was, now)]
    assert [(change.key, change.loosened) for change in compare_policies(*sides)] == [("policy.itl_s", loosened)]


def test_taking_an_override_out_may_loosen_too() -> None:
    tight, default = samples.matrix(policy={"decode_tok_s": Tolerance(relative=0.01)}), samples.matrix(policy={})
    (change,) = compare_policies(tight, default)
    assert (change.key, change.loosened) == ("policy.decode_tok_s", True)


def test_budgets_and_the_protocol_have_directions_of_their_own() -> None:
    was = samples.matrix(
        budgets={"speedup": Budget(limit=2.0), "score": Budget(limit=0.1), "mean_kld": Budget(limit=0.1)},
        protocol=Protocol(launches=5, max_steal=0.05, warmup=1),
    )
    now = samples.matrix(
        budgets={"speedup": Budget(limit=1.0), "score": Budget(limit=0.05)},
        protocol=Protocol(launches=3, max_steal=0.04, warmup=2, pin=False),
    )
    changes = {change.key: change.loosened for change in compare_policies(was, now)}
    assert changes == {
        "budget.speedup": True, "budget.score": False, "budget.mean_kld": True, "protocol.launches": True,
        "protocol.max_steal": False, "protocol.warmup": False, "protocol.pin": True,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- runs


def test_a_run_against_its_own_baselines_is_an_empty_diff() -> None:
    run = sample_runs.run()
    quality, speed = baselines_of(run)
    stored = Snapshot(label="stored", kind="directory", quality=quality, speed=speed)
    diff = diff_snapshots(stored, Snapshot(label="run", kind="run", run=run))
    assert {one.state for one in diff.entries} == {"unchanged"}
    assert {one.provenance.reason for one in quality} == {NOT_ACCEPTED}
    assert diff.questions == ()


def test_what_a_run_did_not_measure_is_not_gone() -> None:
    run = sample_runs.run([sample_runs.result("fp16")])
    quality, speed = baselines_of(sample_runs.run())
    stored = Snapshot(label="stored", kind="directory", quality=quality, speed=speed)
    diff = diff_snapshots(stored, Snapshot(label="run", kind="run", run=run))
    assert {one.state for one in diff.entries if one.variant != "fp16"} == {"not measured"}
    assert asked(diff, "gone") == []


def test_the_flag_about_answers_is_told_from_flags_of_the_machine(made: Any) -> None:
    trials = made.trials(1.0, 1.0)
    result = made.result(trials=trials)
    undecided = sample_runs.finding(
        Verdict.INCONCLUSIVE, of=sample_runs.comparison("score", "all", observed=1.0, baseline=1.0)
    )
    update = Update(
        run=made.run(result, trials), result=result, trials=trials, findings=(undecided,), mode="changed",
        provenance=made.provenance,
    )  # fmt: skip
    (flag,) = hold_answers(update, takes_quality=True).flags
    assert flag.endswith(ABOUT_ANSWERS)


def test_entries_are_in_the_order_of_the_matrix_file() -> None:
    order = list(dict.fromkeys(one.variant for one in samples.unchanged().entries))
    assert order == list(samples.VARIANTS)
