"""What an update writes, keeps and refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suite.gate.accept import Acceptance, Request, accept
from suite.gate.compare import compare
from suite.gate.judge import judge_all
from suite.gate.policy import DEFAULT_POLICY
from suite.records import (
    Aspect,
    Baselines,
    Gate,
    Measurement,
    QualityBaseline,
    SpeedBaseline,
    Tolerance,
    Trial,
    TrialStatus,
    VariantFailure,
    VariantResult,
    Verdict,
)
from suite.store.baselines import BaselineStore, encode

CREDITS = (1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
RATES = (171.0, 172.0, 170.0)


def update(
    made: Any,
    result: VariantResult,
    trials: Sequence[Trial],
    stored: Baselines,
    mode: str = "changed",
    **changes: Any,
) -> Acceptance:
    run = made.run(result, trials)
    findings = judge_all(compare(result, trials, stored, made.environment), DEFAULT_POLICY)
    request = Request(mode=mode, reason=changes.get("reason", "because"), accepted="2026-11-29T18:00:00+00:00")  # type: ignore[arg-type]
    return accept(run, findings, {"q4": stored}, changes.get("cases", {trial.case for trial in trials}), request)


def measured(made: Any, rates: Sequence[float] = RATES, rss: float = 1e9, **changes: Any) -> tuple[Measurement, ...]:
    return (made.speed("decode_tok_s", rates, **changes), made.speed("peak_rss_bytes", (rss,), "all"))


def baselines(made: Any, trials: Sequence[Trial]) -> Baselines:
    return Baselines(
        quality=made.quality_baseline(trials),
        speed=made.speed_baseline({"decode_tok_s/short": RATES, "peak_rss_bytes/all": (1e9,)}),
    )


def written(found: Acceptance) -> tuple[QualityBaseline | None, SpeedBaseline | None]:
    quality = next((b for b in found.writes if isinstance(b, QualityBaseline)), None)
    speed = next((b for b in found.writes if isinstance(b, SpeedBaseline)), None)
    return quality, speed


def test_new_writes_what_is_missing_with_its_provenance(made: Any) -> None:
    trials = made.trials(*CREDITS)
    found = update(made, made.result(*measured(made), trials=trials), trials, Baselines(), "new")
    quality, speed = written(found)
    assert quality is not None
    assert speed is not None
    assert found.refusals == ()
    assert (quality.provenance.reason, quality.provenance.run) == ("because", "r1")
    assert quality.cases["math/01"].correct is False
    assert quality.metrics["score/math"].value == pytest.approx(7 / 8)
    assert speed.metrics["decode_tok_s/short"].launches == RATES
    assert speed.identity["machine.cpu"] == "EPYC"
    assert speed.machine == "epyc-2c"


def test_what_was_accepted_passes_when_it_is_measured_again(made: Any, tmp_path: Path) -> None:
    trials = made.trials(*CREDITS, 1 / 3)
    result = made.result(*measured(made), trials=trials)
    store = BaselineStore(tmp_path)
    for baseline in update(made, result, trials, Baselines(), "new").writes:
        store.write(baseline)
    stored = store.read("smol", "q4", "epyc-2c")
    findings = judge_all(compare(result, trials, stored, made.environment), DEFAULT_POLICY)
    assert {finding.verdict for finding in findings} == {Verdict.PASS}
    assert all(finding.comparison.identical for finding in findings if finding.comparison.aspect is Aspect.QUALITY)


@pytest.mark.parametrize("mode", ["new", "changed"])
def test_an_unchanged_refresh_is_an_empty_diff(made: Any, mode: str) -> None:
    trials = made.trials(*CREDITS)
    noisy = made.result(
        *measured(made, (170.2, 172.9, 171.3), 1.01e9), trials=trials, suspects={"llama-cpp-python": "9"}
    )
    assert update(made, noisy, trials, baselines(made, trials), mode) == Acceptance((), ())


def test_changed_replaces_what_drifted_and_keeps_the_rest_to_the_letter(made: Any) -> None:
    trials = made.trials(*CREDITS)
    stored = baselines(made, trials)
    quality, speed = written(
        update(made, made.result(*measured(made, (120.0,) * 3, 1.01e9), trials=trials), trials, stored)
    )
    assert quality is None
    assert speed is not None
    assert stored.speed is not None
    assert speed.metrics["decode_tok_s/short"].value == 120.0
    assert speed.metrics["peak_rss_bytes/all"] is stored.speed.metrics["peak_rss_bytes/all"]


def test_changed_replaces_flipped_answers_only_when_a_gate_says_so(made: Any) -> None:
    then = made.trials(*CREDITS)
    many, two_flips = made.trials(1.0, 0.0, *[1.0] * 200), made.trials(0.0, 1.0, *[1.0] * 200)
    passing = update(made, made.result(*measured(made), trials=two_flips), two_flips, baselines(made, many))
    assert passing == Acceptance((), ())
    collapsed = made.trials(*[0.0] * 8)
    quality, _ = written(update(made, made.result(*measured(made), trials=collapsed), collapsed, baselines(made, then)))
    assert quality is not None
    assert {case.correct for case in quality.cases.values()} == {False}
    assert quality.metrics["score/all"].value == 0.0


def test_changed_takes_answers_that_cannot_be_told_and_leaves_speed_that_passes(made: Any) -> None:
    then = made.trials(*CREDITS)
    now = made.trials(0.0, 1.0, *CREDITS[2:])
    stored = baselines(made, then)
    result = made.result(*measured(made, (171.5, 172.5, 170.5)), trials=now)
    found = update(made, result, now, stored)
    (quality,) = found.writes
    assert isinstance(quality, QualityBaseline)
    assert [quality.cases[case].correct for case in ("math/00", "math/01")] == [False, True]
    assert update(made, result, now, stored, "new").writes == ()


def test_only_the_scope_that_changed_is_computed_anew(made: Any) -> None:
    then = (*made.trials(*CREDITS), *made.trials(1 / 3, 1.0, domain="code"))
    now = (*made.trials(*[0.0] * 8), *then[8:])
    stored = baselines(made, then)
    quality, _ = written(update(made, made.result(*measured(made), trials=now), now, stored))
    assert quality is not None
    assert stored.quality is not None
    assert quality.metrics["score/code"] is stored.quality.metrics["score/code"]
    assert quality.metrics["score/math"].value == 0.0
    lines = zip(encode(stored.quality).splitlines(), encode(quality).splitlines(), strict=False)
    assert not any('"code/' in old and old != new for old, new in lines)


def test_a_changed_case_is_replaced_and_a_removed_one_dropped(made: Any) -> None:
    then = made.trials(*CREDITS)
    now = (dataclasses.replace(then[0], case_version=2), *then[1:-1])
    quality, _ = written(update(made, made.result(*measured(made), trials=now), now, baselines(made, then)))
    assert quality is not None
    assert quality.cases["math/00"].version == 2
    assert "math/07" not in quality.cases


def test_new_adds_cases_and_metrics_beside_the_old_ones(made: Any) -> None:
    then = made.trials(*CREDITS)
    now = (*[dataclasses.replace(t, case_version=2) for t in then], made.trial("math/new", 0.0))
    stored = baselines(made, then)
    ttft = made.speed("ttft_s", (0.1,) * 3)
    quality, speed = written(
        update(made, made.result(*measured(made, (171.5, 172.5, 170.5), 2e9), ttft, trials=now), now, stored, "new")
    )
    assert quality is not None
    assert speed is not None
    assert quality.cases["math/00"].version == 1
    assert "math/new" in quality.cases
    assert speed.metrics["peak_rss_bytes/all"].value == 1e9
    assert speed.metrics["decode_tok_s/short"].value == 171.5, "of the session of the new one"
    assert speed.metrics["ttft_s/short"].value == 0.1


def test_a_new_speed_does_not_smuggle_in_one_that_regressed(made: Any) -> None:
    trials = made.trials(*CREDITS)
    result = made.result(*measured(made, (60.0,) * 3), made.speed("ttft_s", (0.1,) * 3), trials=trials)
    found = update(made, result, trials, baselines(made, trials), "new")
    assert found.writes == ()
    (refusal,) = found.refusals
    assert "speed regressed in this run (decode_tok_s/short)" in refusal.reason


YARDSTICK = "yardstick_hash_bytes_s"


def with_yardstick(made: Any, *, speed: Sequence[float], rss: float, yardstick: float) -> tuple[Measurement, ...]:
    steady = made.speed("prefill_tok_s", [10 * rate for rate in RATES])
    return (*measured(made, speed, rss), steady, made.speed(YARDSTICK, (yardstick,) * 3, "all"))


def beside_yardstick(made: Any, trials: Sequence[Trial], **yardsticks: Sequence[float]) -> Baselines:
    metrics = {
        "decode_tok_s/short": RATES,
        "prefill_tok_s/short": [9.9 * rate for rate in RATES],
        "peak_rss_bytes/all": (1e9,),
        **{f"{name}/all": values for name, values in yardsticks.items()},
    }
    return Baselines(quality=made.quality_baseline(trials), speed=made.speed_baseline(metrics))


@pytest.mark.parametrize("mode", ["new", "changed"])
@pytest.mark.parametrize("accepted", [{}, {YARDSTICK: (5e8,) * 3}])
def test_a_yardstick_alone_is_never_written(made: Any, mode: str, accepted: Any) -> None:
    trials = made.trials(*CREDITS)
    result = made.result(*with_yardstick(made, speed=RATES, rss=1e9, yardstick=6e8), trials=trials)
    assert update(made, result, trials, beside_yardstick(made, trials, **accepted), mode) == Acceptance((), ())


def test_one_speed_that_is_replaced_brings_those_of_its_session_and_the_yardsticks(made: Any) -> None:
    trials = made.trials(*CREDITS)
    result = made.result(*with_yardstick(made, speed=(120.0,) * 3, rss=1.01e9, yardstick=5.1e8), trials=trials)
    stored = beside_yardstick(made, trials, **{YARDSTICK: (5e8,) * 3, "yardstick_copy_bytes_s": (1e9,) * 3})
    stored = dataclasses.replace(stored, noise=made.noise("decode_tok_s"))
    speed = written(update(made, result, trials, stored))[1]
    assert speed is not None
    values = {key: metric.value for key, metric in speed.metrics.items()}
    assert values == {
        "decode_tok_s/short": 120.0,
        "prefill_tok_s/short": 1710.0,
        f"{YARDSTICK}/all": 5.1e8,
        "peak_rss_bytes/all": 1e9,
    }
    assert speed.suspects["llama-cpp-python"] == "0.3.36"


def test_memory_that_is_replaced_leaves_speeds_yardsticks_and_suspects_of_their_session(made: Any) -> None:
    trials = made.trials(*CREDITS)
    result = made.result(*with_yardstick(made, speed=RATES, rss=2e9, yardstick=6e8), trials=trials)
    stored = beside_yardstick(made, trials, **{YARDSTICK: (5e8,) * 3})
    speed = written(update(made, result, trials, stored))[1]
    assert speed is not None
    assert stored.speed is not None
    assert speed.metrics == {
        **stored.speed.metrics,
        "peak_rss_bytes/all": dataclasses.replace(
            stored.speed.metrics["peak_rss_bytes/all"], value=2e9, launches=(2e9,)
        ),
    }
    assert speed.suspects == stored.speed.suspects


@pytest.mark.parametrize("size", [47185920.0, 123456.789])
def test_unchanged_memory_without_any_tolerance_passes_and_is_an_empty_diff(
    made: Any, size: float, tmp_path: Path
) -> None:
    trials = made.trials(*CREDITS)
    cache = made.speed("kv_cache_bytes", (size,), "all")
    result = made.result(*measured(made), cache, trials=trials)
    store = BaselineStore(tmp_path)
    for baseline in update(made, result, trials, Baselines(), "new").writes:
        store.write(baseline)
    stored = store.read("smol", "q4", "epyc-2c")
    policy = {**DEFAULT_POLICY, "kv_cache_bytes": Tolerance(relative=0.0, absolute=0.0, gate=Gate.BLOCK)}
    findings = judge_all(compare(result, trials, stored, made.environment), policy)
    assert {f.verdict for f in findings if f.metric == "kv_cache_bytes"} == {Verdict.PASS}
    request = Request(mode="changed", reason="because", accepted="2026-11-29T18:00:00+00:00")
    known = {trial.case for trial in trials}
    assert accept(made.run(result, trials), findings, {"q4": stored}, known, request) == Acceptance((), ())
    grown = made.result(*measured(made), made.speed("kv_cache_bytes", (size * 1.01,), "all"), trials=trials)
    (found,) = [
        f for f in judge_all(compare(grown, trials, stored, made.environment), policy) if f.metric == "kv_cache_bytes"
    ]
    assert found.verdict is Verdict.REGRESSED


def test_all_replaces_everything(made: Any) -> None:
    trials = made.trials(*CREDITS)
    noisy = made.result(*measured(made, (172.0, 173.0, 171.0)), trials=trials)
    quality, speed = written(update(made, noisy, trials, baselines(made, trials), "all"))
    assert quality is not None
    assert speed is not None
    assert speed.metrics["decode_tok_s/short"].value == 172.0
    assert speed.provenance.run == "r1"


def test_another_question_is_replaced_whole_by_changed_and_refused_by_new(made: Any) -> None:
    trials = made.trials(*CREDITS)
    raw = made.result(*measured(made), trials=trials, identity={"prompt_format": "raw"})
    quality, speed = written(update(made, raw, trials, baselines(made, trials), "changed"))
    assert quality is not None
    assert speed is not None
    assert speed.identity["prompt_format"] == "raw"
    refused = update(made, raw, trials, baselines(made, trials), "new")
    assert refused.writes == ()
    assert all("prompt_format: chat → raw" in refusal.reason for refusal in refused.refusals)


def test_another_machine_gets_a_baseline_of_its_own(made: Any) -> None:
    trials = made.trials(*CREDITS)
    there = made.speed_baseline({"decode_tok_s/short": RATES}, machine="xeon", identity={"machine.cpu": "Xeon"})
    stored = Baselines(quality=made.quality_baseline(trials), foreign=(there,))
    quality, speed = written(update(made, made.result(*measured(made), trials=trials), trials, stored, "new"))
    assert quality is None
    assert speed is not None
    assert speed.machine == "epyc-2c"


@pytest.mark.parametrize("verdict", [Verdict.ERROR, Verdict.INVALID, Verdict.NOT_MEASURED])
def test_a_failed_variant_is_never_accepted(made: Any, verdict: Verdict) -> None:
    trials = made.trials(*CREDITS)
    failure = VariantFailure(variant="q4", verdict=verdict, reason="killed by signal 9")
    found = update(made, made.result(*measured(made), trials=trials, failure=failure), trials, Baselines(), "all")
    assert found.writes == ()
    assert {refusal.aspect for refusal in found.refusals} == {Aspect.QUALITY, Aspect.SPEED}
    assert all(f"{verdict.value}: killed by signal 9" in refusal.reason for refusal in found.refusals)


def test_without_a_reason_nothing_is_accepted(made: Any) -> None:
    trials = made.trials(*CREDITS)
    found = update(made, made.result(*measured(made), trials=trials), trials, Baselines(), "new", reason="  ")
    assert found.writes == ()
    assert "--matrix-reason" in found.refusals[0].reason


def test_a_partial_run_is_not_accepted(made: Any) -> None:
    trials = made.trials(*CREDITS)
    cases = {trial.case for trial in trials} | {"code/a"}
    found = update(made, made.result(*measured(made), trials=trials), trials, Baselines(), "new", cases=cases)
    assert found.writes == ()
    assert "1 of 9 cases are missing: code/a" in found.refusals[0].reason


def test_an_answer_that_failed_is_not_accepted(made: Any) -> None:
    trials = (*made.trials(*CREDITS), made.trial("math/x", TrialStatus.ERROR))
    found = update(made, made.result(*measured(made), trials=trials), trials, Baselines(), "new")
    assert found.writes == ()
    assert "ended in an error: math/x" in found.refusals[0].reason


def test_contended_speed_is_refused_and_quality_taken(made: Any) -> None:
    trials = made.trials(*CREDITS)
    busy = measured(made, status="contended", reason="busy")
    found = update(made, made.result(*busy, trials=trials), trials, Baselines(), "all")
    assert [type(baseline) for baseline in found.writes] == [QualityBaseline]
    assert "no clean samples in short" in found.refusals[0].reason


def test_speed_without_all_scenarios_is_refused(made: Any) -> None:
    trials = made.trials(*CREDITS)
    found = update(made, made.result(trials=trials), trials, Baselines(), "new")
    assert [type(baseline) for baseline in found.writes] == [QualityBaseline]
    assert "no speed was measured in short" in found.refusals[0].reason


def test_new_speed_of_a_run_that_lost_quality_is_refused(made: Any) -> None:
    then, now = made.trials(*CREDITS), made.trials(*[0.0] * 8)
    stored = Baselines(quality=made.quality_baseline(then))
    found = update(made, made.result(*measured(made), trials=now), now, stored, "new")
    assert found.writes == ()
    assert "quality regressed in this run (score/" in found.refusals[0].reason
