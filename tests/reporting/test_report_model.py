"""What the report decides: order, folding, sums, the headline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_runs as sample
from support import sample_stories as stories

from suite.records import VERDICTS_WORST_FIRST, Gate, Measurement, Run, TrialStatus, Verdict
from suite.reporting.model import Row, build_report, worst


def row(run: Run, name: str) -> Row:
    return next(row for row in build_report(run).rows if row.variant == name)


def test_the_report_is_a_pure_function_of_the_run() -> None:
    run = stories.slower()
    assert build_report(run) == build_report(run)


def test_rows_keep_the_order_of_the_matrix() -> None:
    assert tuple(row.variant for row in build_report(stories.slower()).rows) == sample.VARIANTS


def test_findings_are_worst_first() -> None:
    verdicts = [finding.verdict for finding in build_report(stories.slower()).findings]
    assert verdicts == sorted(verdicts, key=VERDICTS_WORST_FIRST.index)
    assert verdicts[0] is Verdict.REGRESSED


def test_a_finding_that_fails_comes_before_one_that_warns() -> None:
    warned = sample.finding(Verdict.REGRESSED, of=sample.comparison(name="fp16"), gate=Gate.WARN)
    failed = sample.finding(Verdict.REGRESSED, of=sample.comparison(name="q4_k_m"))
    report = build_report(sample.run(findings=(warned, failed)))
    assert [finding.variant for finding in report.findings] == ["q4_k_m", "fp16"]
    assert report.totals.failed == 1


def test_speed_and_quality_have_verdicts_of_their_own() -> None:
    slow = row(stories.slower(), "q4_k_m")
    assert (slow.quality, slow.speed, slow.verdict) == (Verdict.PASS, Verdict.REGRESSED, Verdict.REGRESSED)
    bad = row(stories.worse(), "q4_k_m")
    assert (bad.quality, bad.speed, bad.verdict) == (Verdict.REGRESSED, Verdict.PASS, Verdict.REGRESSED)


def test_memory_counts_as_speed() -> None:
    grown = sample.finding(Verdict.REGRESSED, of=sample.comparison("peak_rss_bytes", "all"))
    assert row(sample.run(findings=(grown,)), "q4_k_m").speed is Verdict.REGRESSED


def test_a_gate_that_only_informs_does_not_colour_the_row() -> None:
    informed = sample.finding(Verdict.REGRESSED, of=sample.comparison("ttft_s"), gate=Gate.INFO)
    held = sample.finding(of=sample.comparison())
    assert row(sample.run(findings=(informed, held)), "q4_k_m").speed is Verdict.PASS
    assert row(sample.run(findings=(informed,)), "q4_k_m").speed is Verdict.REGRESSED


def test_without_findings_nothing_passes() -> None:
    silent = row(sample.run(), "q4_k_m")
    assert (silent.quality, silent.speed) == (Verdict.NOT_MEASURED, Verdict.NOT_MEASURED)
    assert worst(()) is Verdict.NOT_MEASURED


@pytest.mark.parametrize(("story", "name", "verdict"), [
    (stories.killed, "int8", Verdict.ERROR),
    (stories.invalid, "q4_k_m", Verdict.INVALID),
    (stories.invalid, "f16", Verdict.NOT_MEASURED),
])  # fmt: skip
def test_a_failed_variant_says_so_in_its_row(story: object, name: str, verdict: Verdict) -> None:
    failed = row(story(), name)  # type: ignore[operator]
    assert (failed.quality, failed.speed) == (verdict, verdict)
    assert failed.decode_tok_s is None
    assert failed.failure is not None


def test_a_failure_without_any_finding_is_still_told() -> None:
    run = sample.run([sample.result("fp16"), sample.failed("int8", Verdict.ERROR, "killed by SIGKILL")])
    report = build_report(run)
    assert [(group.verdict, group.variants) for group in report.groups] == [(Verdict.ERROR, ("int8",))]
    assert report.groups[0].points[0].text == "killed by SIGKILL"
    assert report.headline == "1 variant failed: int8 ERROR."


def test_a_failure_is_in_the_headline_beside_gates_that_held_and_gates_that_failed() -> None:
    results = [sample.result("fp16"), sample.failed("int8", Verdict.ERROR, "killed by SIGKILL")]
    held = tuple(sample.held("fp16"))
    assert build_report(sample.run(results, findings=held)).headline == (
        "1 variant failed: int8 ERROR. Of the others: All 7 gates held."
    )
    lost = sample.finding(Verdict.REGRESSED, of=sample.comparison(name="fp16"))
    assert build_report(sample.run(results, findings=(lost,))).headline == (
        "1 of 1 gate failed: fp16 REGRESSED, int8 ERROR."
    )


def test_answers_that_could_not_be_graded_are_counted_beside_the_score() -> None:
    statuses = {
        "math/apples": TrialStatus.TRUNCATED,
        "math/trains": TrialStatus.EMPTY,
        "code/apples": TrialStatus.UNPARSABLE,
        "code/trains": TrialStatus.ERROR,
    }
    run = sample.run([sample.result("int8")], trials=sample.trials("int8", statuses))
    code, math, reasoning = row(run, "int8").scores
    assert (math.truncated, math.empty, math.unparsable, math.errors, math.cases) == (1, 1, 0, 0, 2)
    assert (code.unparsable, code.errors, code.ungraded) == (1, 1, 2)
    assert reasoning.ungraded == 0


def test_a_domain_of_the_users_own_gets_a_column() -> None:
    own = sample.trial("q4_k_m", "format/json", domain="format")
    report = build_report(sample.run([sample.result("q4_k_m")], trials=(own,)))
    assert report.domains == ("code", "format", "math", "reasoning")
    assert report.rows[0].scores[1].cases == 1


def test_speedup_has_an_interval_only_with_two_launches() -> None:
    several = row(stories.healthy(), "q8_0").speedup
    assert several is not None
    assert several.interval is not None
    assert several.half_width is not None
    assert several.interval[0] < several.ratio < several.interval[1]
    lone = Measurement(metric="speedup", scope="short", value=2.4, samples=(2.4,), launches=(0,))
    single = row(sample.run([sample.result("q8_0", measurements=(lone,))]), "q8_0").speedup
    assert single is not None
    assert single.ratio == 2.4
    assert single.half_width is None


def test_a_first_run_is_folded_into_one_group() -> None:
    report = build_report(stories.first())
    (group,) = report.groups
    assert (group.gates, group.variants) == (42, sample.VARIANTS)
    (step,) = group.next_steps
    assert "pytest --model-matrix --matrix-update=new" in step


def test_the_next_step_of_some_variants_names_them_all() -> None:
    run = stories.first()
    held = [finding for finding in run.findings if finding.variant in ("fp16", "q8_0")]
    (step,) = build_report(replace(run, findings=tuple(held))).groups[0].next_steps
    assert "--matrix-variants fp16,q8_0 --matrix-update=new" in step


def test_a_dead_worker_is_told_once_with_its_stderr() -> None:
    (group,) = build_report(stories.killed()).groups
    assert (group.verdict, group.gates, len(group.points)) == (Verdict.ERROR, 7, 1)
    assert "Killed" in group.detail


def test_reasons_that_differ_by_gate_are_folded_by_variant() -> None:
    found = []
    for name in ("fp16", "int8"):
        for metric, scope in sample.GATES:
            reason = f"no baseline of {name}/{metric}/{scope}"
            nothing = sample.comparison(metric, scope, name, reason=reason)
            found.append(sample.finding(Verdict.UNBASELINED, reason, of=nothing))
    groups = build_report(sample.run(findings=tuple(found))).groups
    assert [(group.variants, group.gates) for group in groups] == [(("fp16",), 7), (("int8",), 7)]


def test_a_reason_of_several_findings_of_a_variant_is_told_once() -> None:
    why = "the machine itself is 8 % faster than when the baseline was accepted (yardstick)"
    both = [sample.comparison(metric, "short", "int8") for metric in ("decode_tok_s", "prefill_tok_s")]
    found = tuple(
        sample.finding(Verdict.INCONCLUSIVE, f"int8: {one.metric} fell, cannot tell: {why}", of=one) for one in both
    )
    (group,) = build_report(sample.run(findings=found)).groups
    assert [point.text for point in group.points] == [
        f"decode_tok_s fell, cannot tell: {why}", "prefill_tok_s fell, cannot tell for the same reason",
    ]  # fmt: skip


def test_improved_stands_before_what_could_not_be_told() -> None:
    assert [group.verdict for group in build_report(stories.slower()).groups] == [
        Verdict.REGRESSED,
        Verdict.IMPROVED,
        Verdict.INCONCLUSIVE,
    ]


@pytest.mark.parametrize(("story", "headline"), [
    (stories.healthy, "All 42 gates held."),
    (stories.slower, "1 of 42 gates failed: q4_k_m REGRESSED."),
    (stories.first, "Nothing failed, and nothing could be judged either: 42 UNBASELINED."),
    (stories.elsewhere, "Nothing failed, but only 18 of 42 gates held: 24 NOT_COMPARABLE."),
    (sample.run, "Nothing was judged: this run has no gates."),
])  # fmt: skip
def test_headline(story: object, headline: str) -> None:
    assert build_report(story()).headline == headline  # type: ignore[operator]


@pytest.mark.parametrize(("settings", "headline"), [
    ({"strict": "yes"}, "42 of 42 gates failed: "),
    ({"require baselines": "yes"}, "42 of 42 gates failed: "),
    ({"require baselines": "yes", "update": "new"}, "Nothing failed, and nothing could be judged either: 42 UNBASELINED. "
                                                    "42 gates are being accepted: "),
])  # fmt: skip
def test_the_headline_follows_the_rules_of_the_run(settings: dict[str, str], headline: str) -> None:
    assert build_report(replace(stories.first(), settings=settings)).headline.startswith(headline)


def test_a_regression_that_is_being_accepted_is_not_told_as_failed() -> None:
    report = build_report(replace(stories.slower(), settings={"update": "changed"}))
    assert report.totals.failed == 0
    assert report.headline.startswith("Nothing failed, but only ")
    assert report.headline.endswith(" 1 gate is being accepted: q4_k_m REGRESSED.")
    assert report.groups[0].title == "q4_k_m is REGRESSED, being accepted"
    assert report.groups[0].next_steps == ()
    new = build_report(replace(stories.slower(), settings={"update": "new"}))
    assert new.headline == "1 of 42 gates failed: q4_k_m REGRESSED."
    assert new.groups[0].next_steps


def test_a_variant_that_could_not_be_had_fails_only_a_stricter_run() -> None:
    run = sample.run([sample.failed("int8", Verdict.NOT_MEASURED, "no such file")])
    assert build_report(run).headline == "Nothing was judged: this run has no gates."
    strict = replace(run, settings={"require baselines": "yes"})
    assert build_report(strict).headline == "1 variant failed: int8 NOT_MEASURED."


def test_answers_that_ended_in_errors_are_in_the_headline() -> None:
    lost = sample.trials("fp16", {"math/apples": TrialStatus.ERROR, "code/apples": TrialStatus.ERROR})
    results = [sample.result("fp16")]
    held = tuple(sample.held("fp16"))
    assert build_report(sample.run(results, trials=lost, findings=held)).headline == (
        "2 answers ended in errors. All 7 gates held."
    )
    unsure = (*held[1:], sample.finding(Verdict.NOT_MEASURED, of=held[0].comparison))
    assert build_report(sample.run(results, trials=lost[:2], findings=unsure)).headline == (
        "1 answer ended in an error, and only 6 of 7 gates held: 1 NOT_MEASURED."
    )
    slow = sample.finding(Verdict.REGRESSED, of=sample.comparison(name="fp16"))
    assert build_report(sample.run(results, trials=lost, findings=(slow,))).headline == (
        "1 of 1 gate failed: fp16 REGRESSED. 2 answers ended in errors."
    )


def test_an_improvement_is_in_the_headline() -> None:
    found = (sample.finding(Verdict.IMPROVED, of=sample.comparison()), sample.finding(of=sample.comparison("ttft_s")))
    assert "1 IMPROVED" in build_report(sample.run(findings=found)).headline


def test_flips_are_counted_once_although_two_metrics_name_them() -> None:
    run = stories.worse()
    lost = next(finding for finding in run.findings if finding.comparison.flips)
    twice = replace(lost, metric="exact", comparison=replace(lost.comparison, metric="exact"))
    report = build_report(replace(run, findings=(*run.findings, twice)))
    assert report.totals.flips == 4
    assert len(report.groups[0].flips) == 4


def test_a_part_of_the_cases_is_told_with_what_was_right() -> None:
    made = sample.run([sample.result("q8_0")], trials=(sample.trial("q8_0", "math/apples"),))
    told = build_report(replace(made, settings={"cases": "1 of 77"})).remarks
    assert (
        "only 1 of 77 cases were answered, and a score is shown of whole domains alone; right: 1 of 1 of q8_0" in told
    )
    assert not any("cases were answered" in remark for remark in build_report(made).remarks)


def test_what_was_not_measured_is_said_once() -> None:
    run = stories.healthy()
    there = sample.environment(identity={**run.environment.identity, "device": "cuda"})
    assert build_report(replace(run, environment=there)).unmeasured == (
        "not measured: peak device memory: no GPU on this machine",
    )


def test_memory_of_an_accelerator_is_not_missed_where_there_is_none() -> None:
    assert build_report(stories.healthy()).unmeasured == ()


def test_what_only_informs_is_counted_as_no_gate_and_cries_no_wolf() -> None:
    informed = sample.finding(Verdict.REGRESSED, of=sample.comparison("load_s", "all"), gate=Gate.INFO)
    report = build_report(sample.run(findings=(informed, sample.finding(of=sample.comparison()))))
    assert (report.totals.gates, report.totals.failed, report.groups) == (1, 0, ())
    assert informed in report.findings


def test_a_case_that_asks_another_question_is_named() -> None:
    moved = [
        sample.comparison("score", "math/apples", name, reason="version: 1 → 2", unresolved=Verdict.NOT_COMPARABLE)
        for name in sample.VARIANTS
    ]
    found = tuple(sample.finding(Verdict.NOT_COMPARABLE, of=comparison) for comparison in moved)
    (group,) = build_report(sample.run(findings=found)).groups
    assert (group.gates, group.points[0].scope) == (6, "math/apples")


def test_what_a_finding_speaks_of_is_not_said_again() -> None:
    missing = sample.measurement("decode_tok_s", "short", None, status="not_measured", reason="tests run in parallel")
    results = [sample.result("q8_0", measurements=(missing,))]
    silent = sample.comparison(name="q8_0", reason="tests run in parallel", unresolved=Verdict.NOT_MEASURED)
    spoken = sample.finding(Verdict.NOT_MEASURED, of=silent)
    assert build_report(sample.run(results)).unmeasured == ("not measured: decode tok/s: tests run in parallel",)
    assert build_report(sample.run(results, findings=(spoken,))).unmeasured == ()


def test_a_leg_that_was_left_out_is_said() -> None:
    results = [sample.result("q8_0", measurements=(sample.measurement("score", "math", 0.4),))]
    assert any("no scenario was timed" in said for said in build_report(sample.run(results)).unmeasured)
    assert any("no case was answered" in said for said in build_report(sample.run(trials=())).unmeasured)


def test_contended_values_are_named_with_the_variant() -> None:
    busy = sample.measurement("decode_tok_s", "short", 80.0, status="contended", reason="a neighbour")
    report = build_report(sample.run([sample.result("fp16"), sample.result("q8_0", measurements=(busy,))]))
    assert "no clean sample: decode tok/s of q8_0: a neighbour" in report.unmeasured
