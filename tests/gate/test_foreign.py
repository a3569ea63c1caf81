"""Another machine's baseline: its speed-up stands beside ours, and nothing fails by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suite.gate.foreign import compare_speedups
from suite.gate.judge import judge
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Baselines, Gate, SpeedBaseline, Tier, Verdict


def stored(made: Any, name: str, decode: float, machine: str = "gpu-box") -> SpeedBaseline:
    return made.speed_baseline({"decode_tok_s/short": (decode, decode, decode)}, variant=name, machine=machine)  # type: ignore[no-any-return]


def results(made: Any, *ratios: float) -> Any:
    result = made.result(made.speed("speedup", ratios))
    return (replace(result, variant=replace(result.variant, name="q4")),)


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
