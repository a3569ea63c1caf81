"""The yardstick as a witness: a slow hour of the machine is no regression, and a fast one hides none."""

from __future__ import annotations

import math

import pytest

from suite.gate.family import decide
from suite.gate.judge import judge, needs_more
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Comparison, Tier, Tolerance, Verdict
from suite.stats.beta import t_quantile

TOLERANCE = Tolerance(relative=0.10)
DF = 8.0


def compared(low: float, high: float, *machine: float) -> Comparison:
    """A rate of which between `low` and `high` was lost: a 95 % interval, on the scale of logs symmetric."""
    least, most = -math.log1p(-low), -math.log1p(-high)
    drift = -math.expm1(-(least + most) / 2)
    return Comparison(
        variant="q4", metric="decode_tok_s", scope="short", aspect=Aspect.SPEED, tier=Tier.STORED,
        observed=100 * (1 - drift), baseline=100.0, drift=drift, interval=(low, high),
        log_drift=(least + most) / 2, log_se=(most - least) / 2 / t_quantile(0.975, DF), log_df=DF,
        machine_drift=machine, n=5, n_baseline=5,
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
    finding = judge(compared(0.20, 0.26, 0.13, 0.02), DEFAULT_POLICY)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "the machine itself is 13 % slower than when the baseline was accepted" in finding.sentence
    assert finding.next_step.startswith(
        "measure again when the machine is as fast as it was, or side by side:\npytest "
    )
    assert finding.next_step.endswith("--matrix-variants q4 --matrix-against=OLD-PYTHON")


def test_the_other_direction_is_named_too() -> None:
    assert "12 % faster" in judge(compared(0.02, 0.06, -0.12), DEFAULT_POLICY).sentence


def test_more_launches_are_no_help_against_another_machine() -> None:
    blamed, noisy = (judge(found, DEFAULT_POLICY) for found in (compared(0.20, 0.26, 0.13), compared(0.0, 0.20)))
    assert blamed.verdict is noisy.verdict is Verdict.INCONCLUSIVE
    assert (needs_more(blamed), needs_more(noisy)) == (False, True)
