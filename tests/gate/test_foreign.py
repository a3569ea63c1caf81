"""Another machine's baseline: its speed-up stands beside ours, and nothing fails by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from suite.gate.foreign import compare_speedups
from suite.gate.judge import judge
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Baselines, Gate, SpeedBaseline, Tier, Verdict

ASKED = {"n_ctx": "2048", "scenario.short": "128 + 32", "scenario.long": "512 + 32"}


def stored(
    made: Any, name: str, decode: float, machine: str = "gpu-box", identity: Mapping[str, str] = ASKED
) -> SpeedBaseline:
    return made.speed_baseline(  # type: ignore[no-any-return]
        {"decode_tok_s/short": (decode, decode, decode)},
        variant=name,
        machine=machine,
        identity={**identity, "machine.device": "gpu"},
    )


def results(made: Any, *ratios: float) -> Any:
    result = made.result(made.speed("speedup", ratios), identity=ASKED)
    reference = made.result(identity=ASKED)
    return (
        replace(result, variant=replace(result.variant, name="q4")),
        replace(reference, variant=replace(reference.variant, name="fp16")),
    )


def test_the_speed_up_of_another_machine_is_told_and_fails_nothing(made: Any) -> None:
    baselines = {
        "q4": Baselines(foreign=(stored(made, "q4", 300.0),)),
        "fp16": Baselines(foreign=(stored(made, "fp16", 100.0),)),
    }
    (found,) = compare_speedups(results(made, 2.0, 2.02, 1.98), baselines, "fp16")
    assert (found.tier, found.observed) == (Tier.FOREIGN, 2.0)
    assert found.baseline == pytest.approx(3.0)
    assert found.drift == pytest.approx(1 / 3)
    finding = judge(found, DEFAULT_POLICY)
    assert (finding.verdict, finding.gate) == (Verdict.NOT_COMPARABLE, Gate.INFO)
    assert "3.00× on gpu-box" in finding.sentence


def test_a_baseline_of_this_machine_is_enough(made: Any) -> None:
    baselines = {
        "q4": Baselines(speed=stored(made, "q4", 300.0, "epyc-2c"), foreign=(stored(made, "q4", 300.0),)),
        "fp16": Baselines(foreign=(stored(made, "fp16", 100.0),)),
    }
    assert compare_speedups(results(made, 2.0, 2.0), baselines, "fp16") == ()


def test_the_reference_must_have_been_measured_on_the_same_other_machine(made: Any) -> None:
    baselines = {
        "q4": Baselines(foreign=(stored(made, "q4", 300.0),)),
        "fp16": Baselines(foreign=(stored(made, "fp16", 100.0, "a third one"),)),
    }
    assert compare_speedups(results(made, 2.0, 2.0), baselines, "fp16") == ()


@pytest.mark.parametrize("side", ["q4", "fp16"])
@pytest.mark.parametrize(("field", "alike"), [("n_ctx", False), ("scenario.short", False), ("scenario.long", True)])
def test_both_must_have_been_asked_the_same_question_there(made: Any, side: str, field: str, alike: bool) -> None:
    """Another context length, or other token counts of this very scenario, make another speed-up."""
    baselines = {
        name: Baselines(
            foreign=(stored(made, name, decode, identity={**ASKED, field: "another"} if name == side else ASKED),)
        )
        for name, decode in (("q4", 300.0), ("fp16", 100.0))
    }
    assert len(compare_speedups(results(made, 2.0, 2.02, 1.98), baselines, "fp16")) == alike


def test_without_the_reference_in_this_run_nothing_is_said(made: Any) -> None:
    baselines = {
        "q4": Baselines(foreign=(stored(made, "q4", 300.0),)),
        "fp16": Baselines(foreign=(stored(made, "fp16", 100.0),)),
    }
    assert compare_speedups(results(made, 2.0, 2.0)[:1], baselines, "fp16") == ()
