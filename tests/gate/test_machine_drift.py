"""The yardstick as a witness: a slow hour of the machine is no regression, and a fast one hides none."""

from __future__ import annotations

import pytest

from suite.gate.decide import decide
from suite.gate.judge import judge
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Comparison, Tier, Tolerance, Verdict

TOLERANCE = Tolerance(relative=0.10)


def compared(low: float, high: float, *machine: float) -> Comparison:
    return Comparison(
        variant="q4", metric="decode_tok_s", scope="short", aspect=Aspect.SPEED, tier=Tier.STORED,
        observed=100 * (1 - (low + high) / 2), baseline=100.0, drift=(low + high) / 2, interval=(low, high),
        machine_drift=machine, n=3, n_baseline=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("interval", "machine", "expected"),
    [
        ((0.14, 0.20), (), Verdict.REGRESSED),
        ((0.14, 0.20), (0.01, -0.01), Verdict.REGRESSED),
        ((0.14, 0.20), (0.13, 0.01), Verdict.INCONCLUSIVE),  # one yardstick explains it
        ((0.28, 0.34), (0.13, 0.15), Verdict.REGRESSED),  # more than the machine explains
        ((-0.02, 0.03), (0.0, 0.01), Verdict.PASS),
        ((-0.02, 0.03), (-0.15, -0.01), Verdict.INCONCLUSIVE),  # a faster machine would hide a loss
        ((-0.02, 0.03), (0.06, 0.05), Verdict.PASS),  # slower, and it kept up
        ((-0.22, -0.16), (-0.15, -0.10), Verdict.INCONCLUSIVE),
        ((-0.22, -0.16), (0.01, 0.0), Verdict.IMPROVED),
        ((0.05, 0.15), (0.0, 0.0), Verdict.INCONCLUSIVE),
    ],
)
def test_a_verdict_stands_only_if_the_machine_cannot_be_the_whole_of_it(
    interval: tuple[float, float], machine: tuple[float, ...], expected: Verdict
) -> None:
    assert decide(compared(*interval, *machine), TOLERANCE) is expected


def test_the_sentence_and_the_next_step_name_the_machine() -> None:
    finding = judge(compared(0.14, 0.20, 0.13, 0.02), DEFAULT_POLICY)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "the machine itself is 13 % slower than when the baseline was accepted" in finding.sentence
    assert finding.next_step.startswith("measure again when the machine is as fast as it was: pytest --model-matrix")


def test_the_other_direction_is_named_too() -> None:
    assert "12 % faster" in judge(compared(-0.02, 0.03, -0.12), DEFAULT_POLICY).sentence
