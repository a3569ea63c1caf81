"""Shares of what a device gave: one launch against its own readings; and KV caches that are not as large as they should be."""

from __future__ import annotations

import dataclasses
import math

import pytest
from support import sample_runs as sample

from suite.gate.compare_speed import NOT_COMPARED
from suite.metrics import SPECS, measure
from suite.metrics.limits import SHARES, UNTOLD, kv_disagreement, limits_of
from suite.metrics.roofline import Work, decode_bytes, prefill_flop
from suite.records import (
    AttentionLayers,
    Demand,
    Launch,
    Limits,
    Measurement,
    Run,
    SampleStatus,
    SpeedSample,
    Streamed,
    Witness,
)

KEPT = AttentionLayers(layers=30, kv_bytes=768, attended_flop=2304)
DEMAND = Demand(
    weight_bytes=140_000_000, all_weight_bytes=140_000_000, body_parameters=106_000_000, head_parameters=28_000_000,
    attention=(KEPT,), batch_tokens=512,
)  # fmt: skip
GIVEN = Limits(
    streams=(Streamed(size_bytes=140_000_000, read_bytes_s=50e9),), flop_s=300e9, flop_type="float32", device="cpu", threads=2
)  # fmt: skip


WORK = Work(prompt_tokens=128, new_tokens=17)


def timed(gap_s: float = 0.006, launch: int = 0, **changes: object) -> SpeedSample:
    made = SpeedSample(
        variant="q4_k_m", scenario="short", launch=launch, round=0, prompt_tokens=128, evaluated_tokens=128, new_tokens=17,
        prefill_s=0.2, ttft_s=0.206, itl_s=(gap_s,) * 16, witness=Witness(wall_s=0.3, cpu_s=0.6, threads=2),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def loaded(index: int = 0, limits: Limits | None = GIVEN, **changes: object) -> Launch:
    return sample.launch("q4_k_m", index, limits=limits, **changes)


def shares(
    samples: list[SpeedSample], launches: list[Launch], demand: Demand | None = DEMAND
) -> dict[tuple[str, str], Measurement]:
    found = measure("q4_k_m", [], samples, launches, demand=demand)
    return {(m.metric, m.scope): m for m in found if m.metric in SHARES}


def test_bytes_a_second_over_the_bandwidth_and_operations_over_the_rate() -> None:
    found = shares([timed()], [loaded()])
    assert found["mbu", "short"].value == pytest.approx(decode_bytes(DEMAND, WORK) / 0.006 / 50e9)
    flop = prefill_flop(DEMAND, WORK)
    assert flop is not None
    assert found["mfu", "short"].value == pytest.approx(flop / 0.2 / 300e9)
    assert all(0 < m.value < 1 for m in found.values() if m.value is not None)


def test_sequences_together_read_the_weights_once_and_what_is_kept_is_not_evaluated() -> None:
    together = timed(prompt_tokens=8 * 64, evaluated_tokens=8 * 64, batch=8)
    deep = timed(prompt_tokens=8136, evaluated_tokens=32, kept_tokens=8104)
    for taken, work in (
        (together, Work(prompt_tokens=64, new_tokens=17, batch=8)),
        (deep, Work(prompt_tokens=8136, new_tokens=17, kept_tokens=8104)),
    ):
        found = shares([taken], [loaded()])
        rate = taken.batch / 0.006
        assert found["mbu", "short"].value == pytest.approx(decode_bytes(DEMAND, work) * rate / 50e9)
        flop = prefill_flop(DEMAND, work)
        assert flop is not None
        assert found["mfu", "short"].value == pytest.approx(flop / 0.2 / 300e9)
    alone = decode_bytes(DEMAND, Work(prompt_tokens=64, new_tokens=17))
    assert decode_bytes(DEMAND, Work(prompt_tokens=64, new_tokens=17, batch=8)) < alone / 4


def test_each_launch_is_held_against_its_own_readings() -> None:
    slow = dataclasses.replace(GIVEN, streams=(Streamed(size_bytes=140_000_000, read_bytes_s=40e9),))
    found = shares([timed(), timed(0.0075, launch=1)], [loaded(), loaded(1, slow)])["mbu", "short"]
    assert found.launches == (0, 1)
    assert found.samples[0] == pytest.approx(found.samples[1])  # as much slower as the machine was
    assert found.value == pytest.approx(found.samples[0])


def test_too_few_tokens_are_no_decode_speed() -> None:
    assert list(shares([timed(new_tokens=2, itl_s=(0.006,))], [loaded()])) == [("mfu", "short")]


def test_what_was_not_measured_says_why() -> None:
    assert shares([timed()], [loaded(limits=None)]) == {}
    assert shares([timed()], [loaded()], None)["mbu", "short"].reason == UNTOLD
    away = shares([timed()], [loaded(limits=Limits(reason="it is elsewhere"))], None)
    assert {(m.status, m.reason) for m in away.values()} == {("not_measured", "it is elsewhere")}
    lost = shares([timed()], [loaded(limits=Limits(reason="no probe"))])
    assert {(m.status, m.reason) for m in lost.values()} == {("not_measured", "no probe")}
    uncounted = shares([timed()], [loaded()], dataclasses.replace(DEMAND, body_parameters=None))
    assert uncounted["mfu", "short"].value is None
    assert uncounted["mbu", "short"].value is not None
    rejected = [timed(status=SampleStatus.REJECTED, reason="cached")]
    assert "decode_tok_s was not measured" in (shares(rejected, [loaded()])["mbu", "short"].reason or "")


def test_contended_samples_make_a_contended_share() -> None:
    assert shares([timed(status=SampleStatus.CONTENDED)], [loaded()])["mbu", "short"].status == "contended"


def test_shares_have_a_formula_and_are_never_gated() -> None:
    assert set(SHARES) <= SPECS.keys() & NOT_COMPARED


def run_of(*launches: Launch, demand: Demand | None = DEMAND) -> Run:
    made = sample.result("q4_k_m", launches=launches, artifact=sample.artifact(demand=demand))
    return sample.run([made], speed_samples=(timed(),))


def test_what_bounds_a_variant() -> None:
    run = run_of(loaded(), loaded(1))
    (found,) = limits_of(run.variants[0], run.speed_samples)
    assert found.kv_bytes == 30 * 768 * (128 + 8.5)
    assert found.roofline_tok_s == pytest.approx(50e9 / (140e6 + found.kv_bytes))
    assert (found.decode.bound, found.prefill.bound) == ("memory", "arithmetic")
    assert limits_of(run_of(loaded(), demand=None).variants[0], run.speed_samples) == ()
    assert limits_of(run_of(loaded(limits=None)).variants[0], run.speed_samples) == ()


# ------------------------------------------------------------------------------------------------ KV caches


@pytest.mark.parametrize(("reported", "told"), [
    (47_185_920, False), (47_185_920 * 1.019, False), (47_185_920 * 1.021, True), (47_185_920 / 2, True), (None, False)
])  # fmt: skip
def test_a_kv_cache_beyond_two_per_cent_of_its_computed_size_is_told(reported: float | None, told: bool) -> None:
    size = None if reported is None else round(reported)
    found = kv_disagreement(run_of(loaded(kv_cache_reported_bytes=size)), "q4_k_m")
    assert (found is not None) is told


def test_the_launch_that_differs_most_is_told() -> None:
    found = kv_disagreement(run_of(loaded(), loaded(1, kv_cache_reported_bytes=94_371_840)), "q4_k_m")
    assert found is not None
    assert "takes 94.37 MB as its backend reports, 47.19 MB by the shape of the model (100 % more)" in found.sentence
    assert "nothing that is known of the model explains it" in found.sentence


def windowed(*, shared: bool = False) -> tuple[Demand, int]:
    """Layers with a window of 512, and what they keep of 2048 tokens; the last ones perhaps share."""
    near = AttentionLayers(layers=20, kv_bytes=768, attended_flop=1, window=512)
    whole = AttentionLayers(layers=10, kv_bytes=768, attended_flop=1, keeps=not shared)
    computed = 768 * (20 * 512 + (0 if shared else 10 * 2048))
    return dataclasses.replace(DEMAND, attention=(near, whole)), computed


@pytest.mark.parametrize(("shared", "reported", "words"), [
    (False, 768 * 30 * 2048, "keeps the whole context for layers that look back on a window"),
    (True, 768 * (20 * 512 + 10 * 2048), "keeps keys and values for layers that use those of another one"),
    (True, 768 * 30 * 2048, "on a window, and keeps keys and values for layers that use"),
    (True, 12_345_678, "nothing that is known of the model explains it"),
])  # fmt: skip
def test_what_would_explain_it_is_named(shared: bool, reported: int, words: str) -> None:
    demand, computed = windowed(shared=shared)
    launch = loaded(kv_cache_bytes=computed, kv_cache_reported_bytes=reported, kv_cache_tokens=2048)
    found = kv_disagreement(run_of(launch, demand=demand), "q4_k_m")
    assert found is not None
    assert words in found.sentence


def test_what_is_not_known_does_not_disagree() -> None:
    assert kv_disagreement(run_of(loaded(kv_cache_bytes=None)), "q4_k_m") is None
    assert kv_disagreement(run_of(loaded()), "nobody") is None
    assert kv_disagreement(run_of(), "q4_k_m") is None


def test_values_are_finite() -> None:
    assert all(math.isfinite(m.value) for m in shares([timed()], [loaded()]).values() if m.value is not None)
