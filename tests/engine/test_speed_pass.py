"""The order in which variants are timed, what becomes of bad samples, and of variants that fail."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.in_process import InProcessLauncher, make_matrix, make_variant

from suite.engine.passage import PASSAGE, scenario_prompt
from suite.engine.timing import SpeedPass, SpeedSink, device_of, judge_sample
from suite.errors import QuantdriftError, VariantInvalid, WorkerDied
from suite.records import Launch, Matrix, Protocol, SampleStatus, Scenario, SpeedSample, Variant, Witness
from suite.worker.witness import Observer

SAMPLE = SpeedSample(
    variant="q4", scenario="short", launch=0, round=0, prompt_tokens=8, evaluated_tokens=8, new_tokens=4, prefill_s=0.1,
    ttft_s=0.2, itl_s=(0.1, 0.1, 0.1), witness=Witness(wall_s=1.0, cpu_s=1.0, threads=1),
)  # fmt: skip
SHORT = Scenario(name="short", prompt_tokens=8, new_tokens=4)


def witnessed(pressure: float | None) -> Witness:
    return Witness(wall_s=1.0, cpu_s=1.0, threads=1, pressure=pressure)


class Delivered:
    """Keeps what a speed pass delivers."""

    def __init__(self) -> None:
        self.samples: list[SpeedSample] = []
        self.launches: list[Launch] = []
        self.failures: dict[str, QuantdriftError] = {}
        self.opened: list[str] = []

    def sink(self) -> SpeedSink:
        return SpeedSink(
            sample=self.samples.append, launch=self.launches.append, failure=self._fail,
            opened=lambda live: self.opened.append(live.variant.name),
        )  # fmt: skip

    def _fail(self, variant: Variant, fault: QuantdriftError) -> None:
        self.failures[variant.name] = fault


def measure(
    matrix: Matrix, *, done: Mapping[str, int] | None = None, deaths: dict[str, int] | None = None
) -> tuple[Delivered, list[str]]:
    delivered, launcher = Delivered(), InProcessLauncher(deaths=deaths or {})
    SpeedPass(matrix, launcher, delivered.sink()).run(matrix.variants, done or {})
    return delivered, launcher.events


def test_rounds_go_back_and_forth_over_the_variants() -> None:
    matrix = make_matrix(*(make_variant(name) for name in "abc"), launches=1, rounds=4)
    delivered, _ = measure(matrix)
    order = "".join(sample.variant for sample in delivered.samples if sample.scenario == "short")
    assert order == "abccbaabccba"
    positions = {name: sum(index for index, at in enumerate(order) if at == name) for name in "abc"}
    assert len(set(positions.values())) == 1  # a linear drift of the machine cancels out


def test_each_launch_is_fresh_and_warm_up_and_cold_request_are_no_samples() -> None:
    matrix = make_matrix(make_variant("q4"), warmup=2, rounds=1)
    delivered, events = measure(matrix)
    one = ["q4:8+2", *["q4:8+4"] * 2, *["q4:40+3"] * 2, "q4:8+4", "q4:40+3"]  # cold, warm-up of both, one round of both
    assert events == ["q4:launch 0", *one, "q4:end 0", "q4:launch 1", *one, "q4:end 1"]
    assert [(s.launch, s.scenario, s.new_tokens) for s in delivered.samples] == [
        (0, "short", 4), (0, "long", 3), (1, "short", 4), (1, "long", 3)
    ]  # fmt: skip
    assert [launch.index for launch in delivered.launches] == [0, 1]
    assert all(launch.cold_prompt_tokens == 8 and launch.cold_ttft_s for launch in delivered.launches)
    assert delivered.opened == ["q4", "q4"]


def test_a_quality_change_cannot_move_the_number_of_timed_tokens() -> None:
    delivered, _ = measure(make_matrix(make_variant("mute", reply=""), make_variant("talker", reply="x" * 99)))
    assert {(s.prompt_tokens, s.evaluated_tokens, s.new_tokens, len(s.itl_s)) for s in delivered.samples} == {
        (8, 8, 4, 3), (40, 40, 3, 2)
    }  # fmt: skip


def test_contended_samples_are_taken_again_and_all_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Observer, "stop", lambda *_, **__: asdict(witnessed(0.0)))  # whatever this machine does
    matrix = make_matrix(make_variant("q4"), launches=1, rounds=1, retries=2, max_pressure=-1)
    delivered, _ = measure(matrix)
    assert [s.status for s in delivered.samples] == [SampleStatus.CONTENDED] * (2 * 3)
    assert delivered.failures == {}
    assert len(delivered.launches) == 1


def test_rejected_samples_are_taken_again_too() -> None:
    delivered, _ = measure(make_matrix(make_variant("q4", fault="cached"), launches=1, rounds=1, retries=1))
    assert [s.status for s in delivered.samples] == [SampleStatus.REJECTED] * (2 * 2)


def test_a_clean_sample_is_taken_once() -> None:
    delivered, _ = measure(make_matrix(make_variant("q4"), launches=1, rounds=1, retries=5))
    assert [s.status for s in delivered.samples] == [SampleStatus.CLEAN] * 2


@pytest.mark.parametrize("dies_at", [0, 1, 4])
def test_a_variant_that_dies_stops_nobody_else(dies_at: int) -> None:
    matrix = make_matrix(make_variant("bad"), make_variant("good"), make_variant("better"))
    delivered, events = measure(matrix, deaths={"bad": dies_at})
    assert isinstance(delivered.failures.pop("bad"), WorkerDied)
    assert delivered.failures == {}
    assert [(launch.variant, launch.index) for launch in delivered.launches] == [
        ("good", 0), ("better", 0), ("good", 1), ("better", 1)
    ]  # fmt: skip
    assert sum(s.variant == "good" for s in delivered.samples) == 8
    assert "bad:launch 1" not in events


def test_a_variant_that_does_not_load_stops_nobody_else() -> None:
    delivered, _ = measure(make_matrix(make_variant("bad", fault="load"), make_variant("good")))
    assert list(delivered.failures) == ["bad"]
    assert len(delivered.launches) == 2


@pytest.mark.parametrize("odd", ["other ids", "no ids"])
def test_another_tokenizer_is_invalid(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from suite.backends.fake import FakeModel

    honest = FakeModel.encode

    def encode(self: Any, text: str) -> list[int]:
        ids = honest(self, text)
        if self.context_tokens != 777:
            return ids
        return ids[1:] if odd == "other ids" else []

    monkeypatch.setattr(FakeModel, "encode", encode)
    delivered, _ = measure(make_matrix(make_variant("good"), make_variant("odd", n_ctx=777)))
    assert isinstance(delivered.failures["odd"], VariantInvalid)
    assert ("other token ids than with 'good'" if odd == "other ids" else "no token ids") in str(
        delivered.failures["odd"]
    )
    assert {s.variant for s in delivered.samples} == {"good"}


def test_launches_that_were_done_are_not_repeated() -> None:
    delivered, events = measure(make_matrix(make_variant("a"), make_variant("b")), done={"a": 2, "b": 1})
    assert [event for event in events if "launch" in event] == ["b:launch 1"]
    assert [(launch.variant, launch.index) for launch in delivered.launches] == [("b", 1)]


def test_one_at_a_time_never_has_two_in_memory() -> None:
    _, events = measure(make_matrix(make_variant("a"), make_variant("b"), resident="one", launches=1))
    turns = [event for event in events if "launch" in event or "end" in event]
    assert turns == ["a:launch 0", "a:end 0", "b:launch 0", "b:end 0"]


@pytest.mark.parametrize(("change", "status", "word"), [
    ({}, SampleStatus.CLEAN, None),
    ({"evaluated_tokens": 1}, SampleStatus.REJECTED, "1 of 8 prompt tokens"),
    ({"evaluated_tokens": 9}, SampleStatus.REJECTED, "9 of 8 prompt tokens"),
    ({"new_tokens": 3}, SampleStatus.REJECTED, "3 of 4 tokens"),
    ({"witness": witnessed(0.15)}, SampleStatus.CLEAN, None),
    ({"witness": witnessed(0.16)}, SampleStatus.CONTENDED, "16% of the time (limit 15%)"),
    ({"witness": witnessed(None)}, SampleStatus.CLEAN, None),
])  # fmt: skip
def test_which_samples_may_be_used(change: dict[str, Any], status: SampleStatus, word: str | None) -> None:
    found, reason = judge_sample(replace(SAMPLE, **change), SHORT, Protocol(max_pressure=0.15))
    assert found is status
    assert (reason is None) is (word is None)
    assert word is None or word in str(reason)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.integers(1, 300), st.integers(-9, 60))
def test_a_prompt_has_its_length_and_is_made_of_the_passage(passage: list[int], tokens: int, turn: int) -> None:
    prompt = scenario_prompt(passage, tokens, turn)
    assert len(prompt) == tokens
    start = (turn * 17) % len(passage)
    assert prompt == tuple(passage[(start + index) % len(passage)] for index in range(tokens))


def test_no_prompt_comes_twice_in_a_row() -> None:
    ids = list(PASSAGE.encode())
    prompts = [scenario_prompt(ids, 128, turn) for turn in range(-3, 20)]
    assert all(earlier[:8] != later[:8] for earlier, later in pairwise(prompts))
    assert len(set(prompts)) == len(prompts)


def test_the_passage_is_fixed() -> None:
    """Another text would time other work under the same name: raise it only together with every speed baseline."""
    assert hashlib.sha256(PASSAGE.encode()).hexdigest()[:16] == "36ffba46985c434b"
    assert PASSAGE.isascii()


def at_work(cpu_s: float, *, pressure: float | None = None, switches: int | None = 3) -> SpeedSample:
    seen = Witness(wall_s=1.0, cpu_s=cpu_s, threads=4, pressure=pressure, involuntary_switches=switches)
    return replace(SAMPLE, witness=seen)


def test_without_pressure_the_cpu_time_of_the_worker_is_the_witness() -> None:
    status, reason = judge_sample(at_work(0.5), SHORT, Protocol())
    assert status is SampleStatus.CONTENDED
    assert "had a CPU for 50% of the time" in str(reason)
    assert "told by its CPU time" in str(reason)
    assert judge_sample(at_work(1.2), SHORT, Protocol()) == (SampleStatus.CLEAN, None)
    assert judge_sample(at_work(0.5), SHORT, Protocol(), device="cuda:0")[0] is SampleStatus.CLEAN
    assert judge_sample(at_work(0.5, switches=None), SHORT, Protocol())[0] is SampleStatus.CLEAN  # simulated
    assert judge_sample(at_work(0.5, pressure=0.0), SHORT, Protocol())[0] is SampleStatus.CLEAN


def test_a_build_that_can_use_a_gpu_is_not_taken_for_the_cpu() -> None:
    assert device_of({}) == "cpu"
    assert device_of({"gpu_offload": "False"}) == "cpu"
    assert device_of({"gpu_offload": "True"}) != "cpu"  # Metal and CUDA leave the CPU idle while they compute
    assert device_of({"device": "cuda:0"}) == "cuda:0"
