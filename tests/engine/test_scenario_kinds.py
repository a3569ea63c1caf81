"""Scenarios that keep a state, decode together, converse, watch memory, load again; and variants that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support import sample_health
from support.asking import ask
from support.in_process import InProcessLauncher, make_matrix, make_variant

from suite.engine.assembling import identity_of
from suite.engine.slices import Place
from suite.engine.timing import SpeedPass, SpeedSink
from suite.errors import QuantdriftError
from suite.metrics import measure
from suite.records import Health, Launch, Matrix, Measurement, SampleStatus, Scenario, SpeedSample, Variant
from suite.store.journal import Journal, read_journal

MIB = 1 << 20
EXACT: Mapping[str, Any] = {"launch_noise": 0.0, "token_noise": 0.0, "prefill_tok_s": 1000.0, "decode_tok_s": 100.0}
PLAIN = Scenario(name="plain", prompt_tokens=8, new_tokens=4)
DEEP = Scenario(name="deep", prompt_tokens=508, new_tokens=4, kept_tokens=500)
DEEPER = Scenario(name="deeper", prompt_tokens=1008, new_tokens=4, kept_tokens=1000, rounds=1)
BATCH = Scenario(name="batch", prompt_tokens=10, new_tokens=5, batch=3)
TALK = Scenario(name="talk", prompt_tokens=100, new_tokens=10, turns=4)
LONG = Scenario(name="long", prompt_tokens=8, new_tokens=256, watch=True, rounds=1)
RELOAD = Scenario(name="reload", prompt_tokens=8, new_tokens=2, reloads=3)


@dataclass
class Taken:
    samples: list[SpeedSample] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    failures: dict[str, QuantdriftError] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    matrix: Matrix | None = None

    def of(self, scenario: str, variant: str = "v") -> list[SpeedSample]:
        return [s for s in self.samples if (s.scenario, s.variant) == (scenario, variant)]

    def measured(self, variant: str = "v") -> dict[str, Measurement]:
        assert self.matrix is not None
        found = measure(variant, [], self.samples, self.launches, scenarios=self.matrix.scenarios)
        return {f"{m.metric}/{m.scope}": m for m in found}


def take(*scenarios: Scenario, variants: tuple[Variant, ...] = (), launches: int = 1, **options: Any) -> Taken:
    matrix = make_matrix(*(variants or (make_variant("v", **{**EXACT, **options}),)), launches=launches, warmup=1)
    taken, launcher = Taken(matrix=replace(matrix, scenarios=scenarios)), InProcessLauncher()
    sink = SpeedSink(
        sample=taken.samples.append, launch=taken.launches.append, opened=lambda _: None,
        failure=lambda variant, fault: taken.failures.update({variant.name: fault}),
    )  # fmt: skip
    assert taken.matrix is not None
    SpeedPass(taken.matrix, launcher, sink).run(matrix.variants, {}, launches)
    taken.events = launcher.events
    return taken


def test_decoding_at_depth_costs_one_untimed_prefill_of_it_a_launch() -> None:
    taken = take(DEEPER, PLAIN, DEEP)
    assert {(s.prompt_tokens, s.kept_tokens, s.evaluated_tokens, s.status) for s in taken.of("deep")} == {
        (508, 500, 8, SampleStatus.CLEAN)
    }
    assert [event.partition(":")[2] for event in taken.events if "+" in event] == [
        *["8+2", "8+4"], *["8+4"] * 2,  # the cold request, warm-up, and what keeps no state
        "500+1", *["508+4 after 500"] * 2, "1000+1 after 500", "1008+4 after 1000",
    ]  # fmt: skip
    assert taken.of("deep")[0].ttft_s == pytest.approx(8 / 1000 + 1 / 100)
    assert [s.round for s in taken.of("deeper")] == [0]


def test_what_was_to_be_kept_and_was_evaluated_again_is_no_sample_of_the_depth() -> None:
    assert {(s.status, s.reason) for s in take(DEEP, state="evaluated").samples} == {
        (SampleStatus.REJECTED, "508 of 8 prompt tokens were evaluated, beside 500 that were kept")
    }


def test_a_request_that_failed_once_costs_a_slice_and_not_the_variant() -> None:
    taken = take(PLAIN, fault="raise", fault_at=3)
    assert taken.failures == {}
    assert [s.status for s in taken.samples].count(SampleStatus.REJECTED) == 1
    assert {s.reason for s in taken.samples if s.status is SampleStatus.REJECTED} != {None}
    assert len(taken.samples) == 2  # no retries here
    assert len(taken.launches) == 1


def test_variants_are_interleaved_at_depth_as_everywhere() -> None:
    variants = tuple(make_variant(name, **EXACT) for name in "ab")
    assert "".join(s.variant for s in take(DEEP, variants=variants).samples) == "abba"


def test_a_batch_is_counted_whole() -> None:
    taken = take(BATCH, batch_cost=0.5)
    (first, _) = taken.of("batch")
    assert (first.prompt_tokens, first.evaluated_tokens, first.new_tokens, first.batch) == (30, 30, 5, 3)
    assert first.itl_s == pytest.approx((0.02,) * 4)
    found = taken.measured()
    assert found["decode_tok_s/batch"].value == pytest.approx(3 / 0.02)
    assert found["itl_s/batch"].value == pytest.approx(0.02)
    assert found["prefill_tok_s/batch"].value == pytest.approx(1000)


@pytest.mark.parametrize(("pad_to", "status"), [(1, Health.PASS), (16, Health.FINDING)])
def test_a_backend_that_pads_its_batches_is_told_by_what_it_evaluates(pad_to: int, status: Health) -> None:
    taken = take(BATCH, variants=(make_variant("q8_0", **EXACT, pad_to=pad_to),))
    (evaluated,) = {s.evaluated_tokens for s in taken.of("batch", "q8_0")}
    assert evaluated == 3 * max(pad_to, 10)
    told = ask("padding", replace(sample_health.run(), speed_samples=tuple(taken.samples)), "q8_0")
    assert told.status is status
    if status is Health.FINDING:
        assert told.evidence == "48 tokens were evaluated for 3 prompts of 30 together: 38 % is padding"
        assert {s.reason for s in taken.samples} == {"48 of 30 prompt tokens were evaluated"}


def test_a_variant_that_keeps_its_state_and_those_that_do_not_are_told_apart() -> None:
    kept, counted, silent = (take(TALK, state=state) for state in ("kept", "evaluated", "silent"))
    for taken in (kept, counted, silent):
        assert {s.status for s in taken.samples} == {SampleStatus.CLEAN}
    turn = kept.samples[0].turns[-1]
    assert (turn.prompt_tokens, turn.kept_tokens, turn.evaluated_tokens) == (430, 329, 101)
    assert turn.resent_evaluated_tokens == 430
    assert [t.prompt_tokens for t in kept.samples[0].turns] == [210, 320, 430]

    def value(taken: Taken, metric: str) -> float | None:
        return taken.measured()[f"{metric}/talk"].value

    assert [value(taken, "reevaluated_tokens") for taken in (kept, counted, silent)] == [0, 329, 0]
    assert value(kept, "reevaluated_share") == pytest.approx(0.02, abs=0.02)
    assert value(counted, "reevaluated_share") == pytest.approx(1, abs=0.01)
    assert value(silent, "reevaluated_share") == pytest.approx(1, abs=0.01)
    assert (value(kept, "evaluated_tokens"), value(kept, "resent_tokens")) == (101, 430)
    assert value(kept, "ttft_s") == pytest.approx(0.101 + 0.01)
    assert value(kept, "resent_ttft_s") == pytest.approx(0.430 + 0.01)
    assert value(kept, "turn_gain") == pytest.approx(0.44 / 0.111)


def test_a_planted_leak_grows_and_a_healthy_variant_does_not() -> None:
    healthy, leaky = take(LONG), take(LONG, leak_bytes=128 << 10)
    assert len(leaky.samples[0].memory) == 64
    assert healthy.measured()["growth_bytes/long"].value < 2 * MIB  # type: ignore[operator]
    assert leaky.measured()["growth_bytes/long"].value == pytest.approx(128 * (128 << 10), rel=0.15)


def test_memory_that_loads_do_not_give_back_is_told_a_cycle() -> None:
    healthy, leaky = take(RELOAD, PLAIN), take(RELOAD, PLAIN, leak_per_load_bytes=24 * MIB)
    assert healthy.measured()["unreturned_bytes/reload"].value < 2 * MIB  # type: ignore[operator]
    assert leaky.measured()["unreturned_bytes/reload"].value == pytest.approx(24 * MIB, rel=0.1)
    assert [s.round for s in leaky.of("reload")] == [0, 1, 2]
    assert [event for event in leaky.events if "launch" in event] == [
        "v:launch 0",
        "v:launch 0",
    ]  # a process of its own
    assert {key for key in leaky.measured() if key.endswith("/reload")} == {"unreturned_bytes/reload"}


def test_what_does_not_fit_a_context_is_not_measured_and_the_others_go_on() -> None:
    variants = make_variant("small", n_ctx=512, **EXACT), make_variant("v", n_ctx=2048, **EXACT)
    taken = take(DEEPER, PLAIN, variants=variants)
    (left_out,) = taken.of("deeper", "small")
    assert left_out.status is SampleStatus.UNSUITED
    assert {s.status for s in (*taken.of("deeper"), *taken.of("plain"), *taken.of("plain", "small"))} == {
        SampleStatus.CLEAN
    }
    found = taken.measured("small")["decode_tok_s/deeper"]
    assert (found.value, found.status) == (None, "not_measured")
    assert found.reason == "it needs 1012 tokens of context, and the variant has 512"
    assert (taken.failures, len(taken.launches)) == ({}, 2)


def test_a_variant_that_fits_no_scenario_still_has_its_load_and_memory() -> None:
    taken = take(DEEPER, n_ctx=512)
    assert len(taken.launches) == 1
    assert {s.status for s in taken.samples} == {SampleStatus.UNSUITED}


def test_a_state_that_cannot_be_rolled_back_is_not_measured_and_the_rest_goes_on() -> None:
    taken = take(DEEP, TALK, PLAIN, state="rigid")
    assert {(s.scenario, s.reason) for s in taken.samples if s.status is SampleStatus.UNSUITED} == {
        ("deep", "the state of this model cannot be rolled back"),
        ("talk", "the state of this model cannot be rolled back"),
    }
    assert len(taken.of("plain")) == 2
    assert taken.failures == {}


def test_a_scenario_may_have_rounds_of_its_own() -> None:
    many, few = replace(PLAIN, name="many", rounds=4), replace(PLAIN, name="few", rounds=1)
    taken = take(few, many)
    assert [s.scenario for s in taken.samples] == ["few", "many", "many", "many", "many"]


def test_baselines_name_only_what_is_not_the_default() -> None:
    variant = make_variant("v")
    matrix = replace(make_matrix(variant), scenarios=(PLAIN, DEEP, BATCH, replace(LONG, rounds=7)))
    identity = identity_of(variant, matrix)
    assert {key: value for key, value in identity.items() if key.startswith("scenario.")} == {
        "scenario.plain": "8 → 4 tokens",
        "scenario.deep": "508 → 4 tokens, 500 of them kept",
        "scenario.batch": "10 → 5 tokens, 3 together",
        "scenario.long": "8 → 256 tokens",
    }


def test_everything_outlives_the_journal(tmp_path: Path) -> None:
    taken = take(DEEP, BATCH, TALK, LONG, RELOAD)
    with Journal(tmp_path / "again.jsonl") as journal:
        for sample in taken.samples:
            journal.append(sample)
    assert [entry.record for entry in read_journal(tmp_path / "again.jsonl")] == taken.samples


def test_a_slice_that_is_taken_again_has_other_prompts_only_where_a_server_may_hold_the_first_ones() -> None:
    plain = Place(passage=tuple(range(500)), launch=0, round=0, seed=3)
    assert plain.again(1).prompt(40) == plain.again(0).prompt(40) == plain.prompt(40)
    salted = replace(plain, salt="of this run")
    first, second = (salted.again(attempt).prompt(40) for attempt in (0, 1))
    assert first[:8] != second[:8]
    assert first[8:] == second[8:] == plain.prompt(32)
    assert replace(salted, launch=1).prompt(40)[:8] != salted.prompt(40)[:8]
