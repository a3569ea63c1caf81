"""Accepting is a governed act: enough launches, a quiet machine, held quality, and a record of all that."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from suite.gate.accept import Acceptance, Request, accept
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


def update(
    made: Any, findings: Sequence[Finding], mode: str = "changed", *, now: Sequence[float] = NEW, old: Any = OLD
) -> Acceptance:
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
    assert provenance.gates == {"PASS": 2, "REGRESSED": 1}


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
    found = accept(made.run(result, trials), [grown, FLAGGED_PASS], {"q4": stored}, {"math/00"}, request)
    assert only_speed(found).metrics["peak_rss_bytes/all"].value == 2e9


FLAGGED_PASS = finding(Verdict.INCONCLUSIVE, flags=("steal",))
