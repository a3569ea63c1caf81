"""The order in which variants are timed, what becomes of bad samples, and of variants that fail."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.in_process import InProcessLauncher, make_matrix, make_variant

from suite.engine.environment import default_threads
from suite.engine.launching import LiveVariant
from suite.engine.passage import HEAD_TOKENS, PASSAGE, scenario_prompt
from suite.engine.pinning import choose_cpus, threads_of
from suite.engine.sampling import device_of, judge_sample
from suite.engine.timing import HOPELESS, SpeedPass, SpeedSink
from suite.engine.warming import is_steady, warm_up
from suite.errors import QuantdriftError, VariantInvalid, WorkerDied
from suite.records import (
    Generation,
    Launch,
    Matrix,
    Protocol,
    SampleStatus,
    Scenario,
    SpeedSample,
    Variant,
    Witness,
)
from suite.worker.affinity import on_cpus
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
    SpeedPass(matrix, launcher, delivered.sink()).run(matrix.variants, done or {}, matrix.protocol.launches)
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
    one = ["q4:8+2", *["q4:40+3"] * 2, *["q4:8+4"] * 2, "q4:8+4", "q4:40+3"]  # cold, warm-up of both, one round of both
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


def test_that_the_machine_is_not_ours_is_told_while_it_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Observer, "stop", lambda *_, **__: asdict(witnessed(0.4)))
    matrix = make_matrix(make_variant("q4"), launches=1, rounds=1, retries=0, max_pressure=0.1)
    said: list[str] = []
    SpeedPass(matrix, InProcessLauncher(progress=said.append), Delivered().sink()).run(matrix.variants, {}, 1)
    assert any(
        line.startswith("speed: a sample of q4 does not count: another process waited for a CPU 40%") for line in said
    )


def test_a_launch_that_is_hopeless_is_not_tried_three_times_as_long() -> None:
    matrix = make_matrix(make_variant("q4", fault="cached"), launches=2, rounds=10, retries=2)
    delivered, _ = measure(matrix)
    for launch in range(2):  # the next launch may find the machine free, and tries again
        own = [sample for sample in delivered.samples if sample.launch == launch]
        assert len(own) == HOPELESS * 3 + (2 * 10 - HOPELESS)


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


def test_a_salted_prompt_begins_as_no_other_does() -> None:
    ids = list(PASSAGE.encode())
    prompts = {
        (salt, turn): scenario_prompt(ids, 128, turn, salt) for salt in ("one", "two", "") for turn in range(-3, 20)
    }
    assert len({prompt[:HEAD_TOKENS] for prompt in prompts.values()}) == len(prompts)
    assert {len(prompt) for prompt in prompts.values()} == {128}
    assert set().union(*prompts.values()) <= set(ids)
    assert scenario_prompt(ids, 3, 0, "one") == scenario_prompt(ids, 128, 0, "one")[:3]


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


def with_old(name: str, **options: Any) -> tuple[Variant, Variant]:
    new = make_variant(name, **options)
    return new, replace(new, name=f"{name}@old", old_of=name)


def orders(delivered: Delivered) -> list[str]:
    """The variants of each scenario in each round of each launch."""
    found: dict[tuple[int, int, str], list[str]] = {}
    for sample in delivered.samples:
        found.setdefault((sample.launch, sample.round, sample.scenario), []).append(sample.variant)
    return [" ".join(names) for names in found.values()]


def test_an_old_side_is_timed_next_to_its_variant_and_goes_first_every_second_launch() -> None:
    (a, old_a), (b, old_b) = with_old("a"), with_old("b")
    matrix = make_matrix(a, b, launches=2, rounds=2)
    delivered, launcher = Delivered(), InProcessLauncher()
    SpeedPass(matrix, launcher, delivered.sink()).run([a, b, old_a, old_b], {}, 2)
    assert orders(delivered) == [
        *["a a@old b b@old"] * 2, *["b@old b a@old a"] * 2, *["a@old a b@old b"] * 2, *["b b@old a a@old"] * 2
    ]  # fmt: skip


def test_slices_of_both_sides_are_adjacent_for_each_scenario() -> None:
    new, old = with_old("a")
    delivered, launcher = Delivered(), InProcessLauncher()
    SpeedPass(make_matrix(new, launches=1, rounds=1), launcher, delivered.sink()).run([new, old], {}, 1)
    assert [(s.scenario, s.variant) for s in delivered.samples] == [
        ("short", "a"), ("short", "a@old"), ("long", "a"), ("long", "a@old")
    ]  # fmt: skip


def test_an_old_side_that_fails_stops_nobody_and_one_without_its_variant_is_not_timed() -> None:
    (a, old_a), (b, old_b) = with_old("a"), with_old("b")
    delivered, launcher = Delivered(), InProcessLauncher(deaths={"a@old": 1, "b": 1})
    SpeedPass(make_matrix(a, b), launcher, delivered.sink()).run([a, old_a, b, old_b], {}, 2)
    assert set(delivered.failures) == {"a@old", "b"}
    assert [(launch.variant, launch.index) for launch in delivered.launches] == [("a", 0), ("a", 1)]


def test_more_launches_go_on_where_the_first_ended() -> None:
    matrix = make_matrix(make_variant("a"), make_variant("b"))
    delivered, launcher = Delivered(), InProcessLauncher()
    SpeedPass(matrix, launcher, delivered.sink()).run(matrix.variants, {"a": 2, "b": 2}, {"a": 4, "b": 2})
    assert [(launch.variant, launch.index) for launch in delivered.launches] == [("a", 2), ("a", 3)]


def test_stolen_time_is_contention() -> None:
    stolen = Witness(wall_s=1.0, cpu_s=1.0, threads=1, pressure=0.0, steal=0.2)
    status, reason = judge_sample(replace(SAMPLE, witness=stolen), SHORT, Protocol(max_steal=0.05))
    assert status is SampleStatus.CONTENDED
    assert reason == "the hypervisor took 20% of the CPU time for others (limit 5%)"
    assert judge_sample(replace(SAMPLE, witness=stolen), SHORT, Protocol(max_steal=0.25))[0] is SampleStatus.CLEAN


@pytest.mark.parametrize(("gaps", "steady"), [
    ([0.01] * 20, True),
    ([0.01 * (1 - 0.01 * index) for index in range(20)], False),  # still getting faster
    ([0.01] * 19 + [0.5], True),  # one stall is no trend
    ([0.09, 0.05] + [0.01] * 18, True),  # the first gaps after a switch are left out
    ([0.03, 0.02, 0.01], True),  # too few to tell
])  # fmt: skip
def test_a_slice_is_steady_when_its_gaps_show_no_trend(gaps: list[float], steady: bool) -> None:
    assert is_steady(gaps) is steady


class Warming:
    """A variant in memory that decodes faster with each of its first slices."""

    def __init__(self, slices: int, *, simulated: bool = False) -> None:
        self.loaded = SimpleNamespace(simulated=simulated)
        self._left = slices
        self.asked: list[int] = []

    def generate(self, prompt: tuple[int, ...], tokens: int, *, stop_at_end: bool) -> tuple[Generation, None]:
        self.asked.append(len(prompt))
        if len(prompt) == 8:
            self._left -= 1
        speedup = 0.02 if self._left > 0 else 0.0
        times = [0.1 + sum(0.01 * (1 - speedup * later) for later in range(index)) for index in range(20)]
        return Generation(
            token_ids=(), text="", finish_reason="length", prompt_tokens=8, evaluated_tokens=8, prefill_s=0.1,
            token_times_s=tuple(times),
        ), None  # fmt: skip


@pytest.mark.parametrize(
    ("slices", "simulated", "taken"), [(4, False, 4), (1, False, 2), (99, False, 6), (99, True, 2)]
)
def test_warming_up_goes_on_until_decoding_is_steady(slices: int, simulated: bool, taken: int) -> None:
    live: Any = Warming(slices, simulated=simulated)
    matrix = make_matrix(make_variant("a"), warmup=2, max_warmup=6)
    assert warm_up(live, matrix, list(PASSAGE.encode())) == taken
    assert live.asked == [40, 40] + [8] * taken


def test_cpus_are_of_different_cores_as_far_as_there_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cpu, siblings in enumerate(("0-1", "0-1", "2-3", "2-3", "4-5", "4-5")):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 2, 3, 4, 5}, raising=False)
    assert choose_cpus(1, topology=tmp_path) == (1,)
    assert choose_cpus(3, topology=tmp_path) == (1, 2, 4)
    assert choose_cpus(4, topology=tmp_path) == (1, 2, 3, 4, 5)
    assert choose_cpus(2, topology=tmp_path / "untold") == (1, 2)
    monkeypatch.delattr("os.sched_getaffinity")
    assert choose_cpus(2, topology=tmp_path) == ()


def test_threads_are_those_of_the_variant_with_most() -> None:
    variants = [
        replace(make_variant(name), options={"n_threads": count}) for name, count in (("a", 2), ("b", 5), ("c", 1))
    ]
    assert threads_of(variants) == 5
    assert threads_of([make_variant("fake")]) == default_threads()


@pytest.mark.parametrize("pin", [True, False])
def test_all_workers_of_a_pass_run_on_the_same_cpus(pin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    honest = InProcessLauncher.launch

    def launch(self: InProcessLauncher, variant: Variant, index: int = 0) -> AbstractContextManager[LiveVariant]:
        seen.append(self.cpus)
        return honest(self, variant, index)

    monkeypatch.setattr(InProcessLauncher, "launch", launch)
    measure(make_matrix(make_variant("a"), make_variant("b"), pin=pin))
    assert seen == [choose_cpus(default_threads()) if pin else ()] * 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin processes")
def test_the_parent_comes_back_to_its_own_cpus() -> None:
    before = os.sched_getaffinity(0)
    first = min(before)
    with on_cpus([first]):
        assert os.sched_getaffinity(0) == {first}
    assert os.sched_getaffinity(0) == before
    with on_cpus([]):
        assert os.sched_getaffinity(0) == before
