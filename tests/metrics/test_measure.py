"""Trials, samples and launches → measurements."""

from __future__ import annotations

import dataclasses
import math

import pytest

from suite.metrics import SPECS, add_speedups, measure, speedup, speedup_interval
from suite.metrics.memory import PER_LAUNCH
from suite.metrics.quality import PER_OUTCOME
from suite.metrics.speed import (
    PER_SAMPLE,
    POOLED,
    decode_tok_s,
    describe_witnesses,
    launch_values,
    median_itl_s,
)
from suite.records import (
    Generation,
    Launch,
    Measurement,
    SampleStatus,
    Score,
    SpeedSample,
    Trial,
    TrialStatus,
    Variant,
    VariantResult,
    Witness,
)

QUIET = Witness(wall_s=1.0, cpu_s=2.0, threads=2, pressure=0.01)
BUSY = Witness(wall_s=1.0, cpu_s=1.3, threads=2, pressure=0.5, steal=0.04)


def sample(gap_s: float = 0.01, launch: int = 0, **changes: object) -> SpeedSample:
    made = SpeedSample(
        variant="q4",
        scenario="short",
        launch=launch,
        round=0,
        prompt_tokens=128,
        evaluated_tokens=128,
        new_tokens=5,
        prefill_s=0.1,
        ttft_s=0.11,
        itl_s=(gap_s,) * 4,
        witness=QUIET,
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def contended(gap_s: float, launch: int = 0) -> SpeedSample:
    return sample(gap_s, launch, status=SampleStatus.CONTENDED, witness=BUSY, reason="pressure 50 %")


def launch(index: int, rss: int | None = 100, device: int | None = None) -> Launch:
    return Launch(
        variant="q4",
        index=index,
        load_s=1.0 + index,
        cold_ttft_s=0.5,
        cold_prompt_tokens=128,
        peak_rss_bytes=rss,
        uss_bytes=rss,
        peak_device_bytes=device,
        kv_cache_bytes=64,
        kv_cache_reported_bytes=None,
        facts={},
    )


def trial(case: str, status: TrialStatus, value: float | None = None, tokens: int = 3) -> Trial:
    generation = Generation(
        token_ids=tuple(range(tokens)),
        text="x",
        finish_reason="stop",
        prompt_tokens=4,
        evaluated_tokens=4,
        prefill_s=0.1,
        token_times_s=tuple(0.1 * (i + 1) for i in range(tokens)),
    )
    return Trial(
        variant="q4",
        case=case,
        case_version=1,
        domain=case.split("/", maxsplit=1)[0],
        family=None,
        scorer="number",
        prompt_sha256="0",
        score=Score(status=status, value=value, correct=None if value is None else value == 1.0),
        generation=None if status is TrialStatus.ERROR else generation,
    )


def find(measured: tuple[Measurement, ...], metric: str, scope: str) -> Measurement:
    return next(m for m in measured if (m.metric, m.scope) == (metric, scope))


def test_every_metric_that_is_measured_is_in_the_catalogue() -> None:
    measured = measure("q4", [trial("math/a", TrialStatus.SCORED, 1.0)], [sample()], [launch(0)])
    assert {m.metric for m in measured} <= SPECS.keys()
    assert {*PER_SAMPLE, *PER_LAUNCH, *PER_OUTCOME} <= SPECS.keys()
    assert all(spec.unit and spec.formula for spec in SPECS.values())


def test_measurements_are_grouped_by_metric_and_name_each_scope_once() -> None:
    other = dataclasses.replace(sample(), scenario="long")
    measured = measure("q4", [trial("math/a", TrialStatus.SCORED, 1.0)], [sample(), other], [launch(0)])
    names = [m.metric for m in measured]
    assert names == sorted(names, key=names.index)
    assert len({(m.metric, m.scope) for m in measured}) == len(measured)


def test_rates_of_a_sample_follow_their_formulas() -> None:
    measured = measure("q4", [], [sample(itl_s=(0.01, 0.01, 0.02, 0.06))], [])
    assert find(measured, "decode_tok_s", "short").value == pytest.approx(4 / 0.10)
    assert find(measured, "tpot_s", "short").value == pytest.approx(0.10 / 4)
    assert find(measured, "itl_s", "short").value == pytest.approx(0.015)
    assert find(measured, "prefill_tok_s", "short").value == pytest.approx(1280)
    assert find(measured, "ttft_s", "short").value == pytest.approx(0.11)


def test_the_value_is_the_median_over_launches_of_each_launch() -> None:
    samples = [sample(1 / 100, 0)] * 9 + [sample(1 / 120, 1), sample(1 / 140, 2)]
    decode = find(measure("q4", [], samples, []), "decode_tok_s", "short")
    assert decode.value == pytest.approx(120)
    assert len(decode.samples) == len(decode.launches) == 11


def test_a_stall_in_one_slice_of_many_moves_the_rate_and_not_the_median_gap() -> None:
    samples = [sample(0.01)] * 4 + [sample(itl_s=(0.01, 0.01, 0.01, 0.97))]
    measured = measure("q4", [], samples, [])
    assert launch_values(find(measured, "decode_tok_s", "short")) == {0: pytest.approx(20 / 1.16)}
    assert launch_values(find(measured, "tpot_s", "short")) == {0: pytest.approx(1.16 / 20)}
    assert launch_values(find(measured, "itl_s", "short")) == {0: pytest.approx(0.01)}


def test_the_value_of_a_launch_is_the_median_of_its_slices_unless_nothing_is_trimmed() -> None:
    samples = [sample(gap, number) for number in (0, 1) for gap in (0.01, 0.01 * (1 + number), 0.04)]
    measured = measure("q4", [], samples, [])
    assert launch_values(find(measured, "itl_s", "short")) == {0: pytest.approx(0.01), 1: pytest.approx(0.02)}
    assert launch_values(find(measured, "decode_tok_s", "short")) == {
        0: pytest.approx(3 / 0.06), 1: pytest.approx(3 / 0.07)
    }  # fmt: skip
    assert set(POOLED) == {"decode_tok_s", "tpot_s"}


def test_the_first_gaps_are_left_out_of_the_median_where_enough_remain() -> None:
    slow_start = (0.05, 0.03)
    many = median_itl_s(sample(itl_s=(*slow_start, *(0.01, 0.02) * 4)))
    assert many == pytest.approx(0.015)
    few = (*slow_start, 0.01, 0.02, 0.01, 0.02, 0.01, 0.02, 0.01)
    assert median_itl_s(sample(itl_s=few)) == pytest.approx(0.02)
    assert decode_tok_s(sample(itl_s=few)) == pytest.approx(9 / sum(few))  # of the rate nothing is left out
    assert median_itl_s(sample(itl_s=())) is None


def test_a_metric_without_launches_has_no_value_for_any() -> None:
    measured = measure("q4", [trial("math/a", TrialStatus.SCORED, 1.0)], [], [])
    assert launch_values(find(measured, "score", "math")) == {}


def test_contended_samples_are_left_out_while_there_are_clean_ones() -> None:
    decode = find(measure("q4", [], [sample(0.01), contended(0.5)], []), "decode_tok_s", "short")
    assert decode.status == "measured"
    assert decode.value == pytest.approx(100)
    assert decode.reason == "1 of 2 samples contended (CPU pressure 50 %, own CPU time 65 %, steal 4 %)"


def test_without_a_clean_sample_the_value_is_marked_as_contended() -> None:
    rejected = sample(status=SampleStatus.REJECTED, reason="evaluated 1 of 128 prompt tokens")
    decode = find(measure("q4", [], [contended(0.1), contended(0.2), rejected], []), "decode_tok_s", "short")
    assert decode.status == "contended"
    assert decode.value == pytest.approx(8 / 1.2)  # all tokens / all time
    assert decode.reason is not None
    assert "2 of 3 samples contended" in decode.reason
    assert "1 of 3 samples rejected (evaluated 1 of 128 prompt tokens)" in decode.reason


def test_rejected_samples_are_no_measurement_at_all() -> None:
    rejected = sample(status=SampleStatus.REJECTED, reason="evaluated 1 of 128 prompt tokens")
    decode = find(measure("q4", [], [rejected], []), "decode_tok_s", "short")
    assert (decode.status, decode.value) == ("not_measured", None)
    assert "evaluated 1 of 128" in (decode.reason or "")


def test_one_token_has_no_decode_rate() -> None:
    assert decode_tok_s(sample(itl_s=())) is None
    measured = measure("q4", [], [sample(itl_s=())], [])
    assert find(measured, "decode_tok_s", "short").status == "not_measured"
    assert find(measured, "prefill_tok_s", "short").status == "measured"


def test_memory_is_the_maximum_and_load_time_the_median_over_launches() -> None:
    measured = measure("q4", [], [], [launch(0, 100), launch(1, 130), launch(2, 110)])
    assert find(measured, "peak_rss_bytes", "all").value == 130
    assert find(measured, "load_s", "all").value == 2.0
    assert find(measured, "peak_rss_bytes", "all").samples == (100.0, 130.0, 110.0)


def test_memory_that_nobody_reported_is_not_measured_rather_than_zero() -> None:
    device = find(measure("q4", [], [], [launch(0)]), "peak_device_bytes", "all")
    assert (device.status, device.value) == ("not_measured", None)


def test_nothing_run_gives_nothing() -> None:
    assert measure("q4", [], [], []) == ()


def test_records_of_other_variants_are_left_out() -> None:
    assert measure("q8", [trial("math/a", TrialStatus.SCORED, 1.0)], [sample()], [launch(0)]) == ()


def test_quality_counts_unscored_answers_apart_and_without_credit() -> None:
    trials = [
        trial("math/a", TrialStatus.SCORED, 1.0),
        trial("math/b", TrialStatus.SCORED, 0.5),
        trial("math/c", TrialStatus.TRUNCATED, tokens=10),
        trial("code/a", TrialStatus.EMPTY, tokens=0),
        trial("code/b", TrialStatus.UNPARSABLE),
    ]
    measured = measure("q4", trials, [], [])
    assert find(measured, "score", "math").value == pytest.approx(0.5)
    assert find(measured, "score", "all").value == pytest.approx(0.3)
    assert find(measured, "exact", "all").value == pytest.approx(0.2)
    assert find(measured, "truncated", "math").value == pytest.approx(1 / 3)
    assert find(measured, "empty", "code").value == pytest.approx(0.5)
    assert find(measured, "unparsable", "all").value == pytest.approx(0.2)
    assert find(measured, "output_tokens", "math").value == pytest.approx(16 / 3)


def test_a_failed_answer_leaves_its_scopes_unmeasured_and_the_others_alone() -> None:
    trials = [trial("math/a", TrialStatus.ERROR), trial("math/b", TrialStatus.SCORED, 1.0),
              trial("code/a", TrialStatus.SCORED, 1.0)]  # fmt: skip
    measured = measure("q4", trials, [], [])
    assert find(measured, "score", "math").status == "not_measured"
    assert "1 of 2" in (find(measured, "score", "math").reason or "")
    assert find(measured, "score", "all").value is None
    assert find(measured, "score", "code").value == 1.0


def result(name: str, rates: dict[int, float], status: str = "measured") -> VariantResult:
    decode = Measurement(
        metric="decode_tok_s",
        scope="short",
        value=100.0,
        samples=tuple(rates.values()),
        launches=tuple(rates),
        status=status,  # type: ignore[arg-type]
        reason=None if status == "measured" else "busy",
    )
    return VariantResult(
        variant=Variant(name=name, model="m", backend="fake", source="x"),
        artifact=None,
        measurements=(decode,),
        launches=(),
        failure=None,
        identity={},
        suspects={},
    )


def test_speedup_pairs_launches_by_index_so_that_the_machine_cancels() -> None:
    reference = result("fp16", {0: 50.0, 1: 100.0, 2: 25.0})
    found = speedup([reference, result("q4", {0: 100.0, 1: 200.0, 2: 50.0, 3: 999.0})], "fp16")
    (ratio,) = found["q4"]
    assert ratio.value == pytest.approx(2.0)
    assert ratio.launches == (0, 1, 2)
    assert "fp16" not in found
    interval = speedup_interval(ratio.samples)
    assert interval is not None
    assert interval[0] < 2.0 < interval[1] < 2.02


def test_speedup_interval_widens_with_the_spread_and_needs_two_launches() -> None:
    assert speedup_interval([2.0]) is None
    interval = speedup_interval([1.8, 2.0, 2.2])
    assert interval is not None
    assert interval[0] * interval[1] == pytest.approx(math.prod([1.8, 2.0, 2.2]) ** (2 / 3))
    assert interval[1] - interval[0] > 0.5


def test_speedup_of_contended_speed_is_contended_and_without_common_launches_not_measured() -> None:
    found = speedup([result("fp16", {0: 50.0}), result("q4", {0: 10.0}, "contended"), result("q8", {1: 9.0})], "fp16")
    assert (found["q4"][0].status, found["q4"][0].reason) == ("contended", "busy")
    assert found["q8"][0].status == "not_measured"


def test_speedups_are_added_to_the_results_and_a_missing_reference_adds_none() -> None:
    results = [result("fp16", {0: 50.0}), result("q4", {0: 100.0})]
    with_speedup = add_speedups(results, "fp16")
    assert [m.metric for m in with_speedup[1].measurements] == ["decode_tok_s", "speedup"]
    assert add_speedups(results, "bf16") == tuple(results)


def test_witnesses_that_could_not_be_read_say_so() -> None:
    assert describe_witnesses([Witness(wall_s=0.0, cpu_s=0.0, threads=0)]) == "no witness could be read"
