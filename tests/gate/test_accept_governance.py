"""Accepting is a governed act: enough launches, a quiet machine, held quality, and a record of all that."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from suite.gate.accept import Acceptance, Request, accept
from suite.gate.compare import compare
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY
from suite.records import (
    Aspect,
    Baselines,
    Comparison,
    Finding,
    Gate,
    QualityBaseline,
    SpeedBaseline,
    Tier,
    Tolerance,
    Verdict,
)

OLD, NEW = (171.0, 172.0, 170.0), (120.0, 121.0, 119.0)


def finding(
    verdict: Verdict,
    metric: str = "decode_tok_s",
    scope: str = "short",
    *,
    aspect: Aspect = Aspect.SPEED,
    gate: Gate = Gate.BLOCK,
    **comparison: Any,
) -> Finding:
    tier = comparison.pop("tier", Tier.STORED)
    compared = Comparison(variant="q4", metric=metric, scope=scope, aspect=aspect, tier=tier, **comparison)
    return Finding(
        variant="q4", metric=metric, scope=scope, verdict=verdict, gate=gate, sentence="", tolerance=Tolerance(),
        comparison=compared,
    )  # fmt: skip


SLOWER = finding(Verdict.REGRESSED)
FLAGGED = finding(Verdict.REGRESSED, flags=("a neighbour took 7 of 9 slices",))


def answers(verdict: Verdict = Verdict.PASS, *, without: str = "", **changed: Verdict) -> list[Finding]:
    """A finding for every gate on answers that blocks by default, by ``metric/scope``, some of them otherwise."""
    keys = ["score/math", "score/all", "truncated/all", "empty/all", "unparsable/all"]
    verdicts = {key: changed.get(key.replace("/", "_"), verdict) for key in keys if key != without}
    return [finding(found, *key.split("/"), aspect=Aspect.QUALITY) for key, found in verdicts.items()]


def update(
    made: Any,
    findings: Sequence[Finding],
    mode: str = "changed",
    *,
    now: Sequence[float] = NEW,
    old: Any = OLD,
    held: Sequence[Finding] | None = None,
) -> Acceptance:
    findings = [*findings, *(answers() if held is None else held)]
    trials = made.trials(1.0, 0.0, 1.0)
    stored = Baselines(
        quality=made.quality_baseline(trials),
        speed=made.speed_baseline({"decode_tok_s/short": old}) if old else None,
    )
    result = made.result(made.speed("decode_tok_s", now), trials=trials)
    request = Request(mode=mode, reason="because", accepted="2026-11-29T18:00:00+00:00", commit="abc")  # type: ignore[arg-type]
    return accept(made.run(result, trials), findings, {"q4": stored}, {trial.case for trial in trials}, request)


def only_speed(found: Acceptance) -> SpeedBaseline:
    (baseline,) = found.writes
    assert isinstance(baseline, SpeedBaseline)
    return baseline


@pytest.mark.parametrize("mode", ["new", "changed", "all"])
def test_two_launches_are_too_few_in_every_mode(made: Any, mode: str) -> None:
    found = update(made, [], mode, now=NEW[:2], old=None)
    assert not [baseline for baseline in found.writes if isinstance(baseline, SpeedBaseline)]
    (refusal,) = found.refusals
    assert refusal.reason == (
        "too few launches with clean samples (2 in short; at least 3 are needed); measure again when nothing else runs"
    )


def test_too_few_launches_are_no_matter_where_nothing_is_taken(made: Any) -> None:
    assert update(made, [finding(Verdict.PASS)], now=OLD[:2]) == Acceptance((), ())


def test_speed_from_a_disturbed_machine_is_refused_and_says_what_disturbed_it(made: Any) -> None:
    found = update(made, [FLAGGED])
    assert found.writes == ()
    assert "a neighbour took 7 of 9 slices" in found.refusals[0].reason
    assert "--matrix-update=all" in found.refusals[0].reason


def test_all_takes_it_with_its_flags(made: Any) -> None:
    found = update(made, [FLAGGED], "all")
    flags = {type(baseline): baseline.provenance.flags for baseline in found.writes}
    assert flags == {QualityBaseline: (), SpeedBaseline: FLAGGED.comparison.flags}


def test_a_disturbed_machine_is_no_matter_where_nothing_is_taken(made: Any) -> None:
    flagged = finding(Verdict.INCONCLUSIVE, flags=("steal",))
    assert update(made, [flagged], now=OLD) == Acceptance((), ())


def test_provenance_tells_reason_commit_and_how_the_gates_ended(made: Any) -> None:
    informing = finding(Verdict.IMPROVED, "load_s", "all", gate=Gate.INFO)
    passed = finding(Verdict.PASS, "score", "all", aspect=Aspect.QUALITY)
    provenance = only_speed(update(made, [SLOWER, passed, passed, informing])).provenance
    assert (provenance.reason, provenance.commit, provenance.flags) == ("because", "abc", ())
    assert provenance.gates == {"PASS": 2 + len(answers()), "REGRESSED": 1}


@pytest.mark.parametrize("mode", ["new", "changed"])
def test_speed_never_comes_in_without_the_quality_that_was_lost(made: Any, mode: str) -> None:
    lost = finding(Verdict.REGRESSED, "score", "all", aspect=Aspect.QUALITY)
    found = update(made, [SLOWER, lost], mode)  # the answers are the accepted ones, so none of them is taken
    assert found.writes == ()
    assert "quality regressed in this run (score/all)" in found.refusals[0].reason


def test_speed_comes_in_together_with_quality_that_is_accepted(made: Any) -> None:
    lost = finding(Verdict.REGRESSED, "score", "all", aspect=Aspect.QUALITY)
    found = update(made, [SLOWER, lost], "all")
    assert [type(baseline) for baseline in found.writes] == [QualityBaseline, SpeedBaseline]


def test_what_only_drifted_beside_the_old_version_is_replaced(made: Any) -> None:
    beside = finding(Verdict.REGRESSED, tier=Tier.DUET)
    assert only_speed(update(made, [beside])).metrics["decode_tok_s/short"].value == 120.0


def test_the_stored_baseline_counts_where_both_were_compared(made: Any) -> None:
    beside, against_stored = finding(Verdict.REGRESSED, tier=Tier.DUET), finding(Verdict.PASS)
    assert update(made, [beside, against_stored]) == Acceptance((), ())


def test_memory_that_drifted_needs_no_launches_and_no_quiet(made: Any) -> None:
    trials = made.trials(1.0)
    stored = Baselines(
        quality=made.quality_baseline(trials),
        speed=made.speed_baseline({"decode_tok_s/short": OLD, "peak_rss_bytes/all": (1e9,)}),
    )
    result = made.result(
        made.speed("decode_tok_s", OLD[:2]), made.speed("peak_rss_bytes", (2e9,), "all"), trials=trials
    )
    grown = dataclasses.replace(
        finding(Verdict.REGRESSED, "peak_rss_bytes", "all", aspect=Aspect.MEMORY), gate=Gate.BLOCK
    )
    request = Request(mode="changed", reason="because", accepted="2026-11-29T18:00:00+00:00")
    found = accept(made.run(result, trials), [grown, FLAGGED_PASS, *answers()], {"q4": stored}, {"math/00"}, request)
    assert only_speed(found).metrics["peak_rss_bytes/all"].value == 2e9


FLAGGED_PASS = finding(Verdict.INCONCLUSIVE, flags=("steal",))


@pytest.mark.parametrize("held", [Verdict.PASS, Verdict.IMPROVED, Verdict.UNBASELINED, Verdict.NOT_COMPARABLE])
def test_speed_comes_in_while_every_gate_on_answers_held_or_had_nothing_to_be_held_against(
    made: Any, held: Verdict
) -> None:
    assert only_speed(update(made, [SLOWER], held=answers(held))).provenance.flags == ()


def test_gates_on_answers_that_were_deselected_are_named_with_what_to_run(made: Any) -> None:
    found = update(made, [SLOWER], held=answers(without="score/all"))
    assert found.writes == ()
    (refusal,) = found.refusals
    assert "1 gate on answers was not judged in this run (score/all)" in refusal.reason
    assert "without -k: pytest --model-matrix --matrix-variants q4 --matrix-update=changed" in refusal.reason


@pytest.mark.parametrize("mode", ["new", "changed", "all"])
@pytest.mark.parametrize("verdict", [Verdict.NOT_MEASURED, Verdict.ERROR, Verdict.INVALID])
def test_gates_on_answers_that_could_not_be_measured_hold_back_new_speed(
    made: Any, mode: str, verdict: Verdict
) -> None:
    found = update(made, [SLOWER], mode, old=None, held=answers(score_all=verdict))
    assert not [baseline for baseline in found.writes if isinstance(baseline, SpeedBaseline)]
    assert "gates on answers were not measured in this run (score/all)" in found.refusals[-1].reason


def test_answers_that_cannot_be_told_hold_back_first_speed(made: Any) -> None:
    found = update(made, [], "new", old=None, held=answers(score_math=Verdict.INCONCLUSIVE))
    assert found.writes == ()
    (refusal,) = found.refusals
    assert refusal.reason.startswith("1 gate on answers could not be told (score/math); read the changed answers")


@pytest.mark.parametrize("mode", ["changed", "all"])
def test_a_deliberate_update_takes_speed_beside_undecided_answers_and_stores_that(made: Any, mode: str) -> None:
    held = answers(score_math=Verdict.INCONCLUSIVE, score_all=Verdict.INCONCLUSIVE)
    found = update(made, [SLOWER], mode, held=held)
    (speed,) = [baseline for baseline in found.writes if isinstance(baseline, SpeedBaseline)]
    assert speed.provenance.flags == ("2 gates on answers could not be told",)
    assert found.refusals == ()


@pytest.mark.parametrize("verdict", [Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.NOT_MEASURED])
def test_what_only_informs_about_answers_holds_back_nothing(made: Any, verdict: Verdict) -> None:
    informing = finding(verdict, "exact", "all", aspect=Aspect.QUALITY, gate=Gate.INFO)
    assert only_speed(update(made, [SLOWER, informing])).provenance.flags == ()


def test_gates_on_answers_are_no_matter_where_nothing_is_taken(made: Any) -> None:
    assert update(made, [finding(Verdict.PASS)], now=OLD, held=[]) == Acceptance((), ())


@pytest.mark.parametrize(("mode", "taken"), [("new", False), ("changed", False), ("all", True)])
def test_a_first_speed_from_a_disturbed_machine_is_refused_by_the_whole_path(made: Any, mode: str, taken: bool) -> None:
    """Nothing was accepted yet, so there is no interval that a flag could forbid."""
    trials = made.trials(1.0, 0.0, 1.0)
    quiet = made.slices(*[(0.01, 0.01)] * 3)
    samples = tuple(dataclasses.replace(s, witness=dataclasses.replace(s.witness, steal=0.04)) for s in quiet)
    result = made.timed(samples, [made.launch(index) for index in range(3)])
    result = dataclasses.replace(result, measurements=(*result.measurements, *made.result(trials=trials).measurements))
    comparisons = compare(result, trials, Baselines(), made.environment, samples=samples)
    findings = judge_all(comparisons, DEFAULT_POLICY)
    speeds = [f for f in findings if f.comparison.aspect is Aspect.SPEED]
    assert {f.verdict for f in speeds} == {Verdict.UNBASELINED}
    request = Request(mode=mode, reason="first", accepted="2026-11-29T18:00:00+00:00")  # type: ignore[arg-type]
    found = accept(made.run(result, trials), findings, {}, {trial.case for trial in trials}, request)
    flag = "the hypervisor took 4% of the CPU time"
    flags = [baseline.provenance.flags for baseline in found.writes if isinstance(baseline, SpeedBaseline)]
    assert flags == ([(flag,)] if taken else [])
    assert [flag in refusal.reason for refusal in found.refusals] == ([] if taken else [True])


def test_a_disturbed_machine_is_seen_though_no_speed_was_judged(made: Any) -> None:
    """A budget has it timed, and its gates were deselected."""
    trials = made.trials(1.0, 0.0, 1.0)
    quiet = made.slices(*[(0.01, 0.01)] * 3)
    samples = tuple(dataclasses.replace(s, witness=dataclasses.replace(s.witness, steal=0.04)) for s in quiet)
    result = made.timed(samples, [made.launch(index) for index in range(3)])
    run = dataclasses.replace(made.run(result, trials), speed_samples=samples)
    request = Request(mode="new", reason="first", accepted="2026-11-29T18:00:00+00:00")
    found = accept(run, answers(), {}, {trial.case for trial in trials}, request)
    assert not [baseline for baseline in found.writes if isinstance(baseline, SpeedBaseline)]
    assert "the machine was disturbed (the hypervisor took 4% of the CPU time)" in found.refusals[0].reason
