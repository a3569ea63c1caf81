"""What must not be there at all: no baseline is needed, and none excuses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from suite.gate.compare_speed import compare_speed
from suite.gate.judge import judge
from suite.gate.plan import GateItem
from suite.gate.policy import DEFAULT_POLICY
from suite.records import Aspect, Baselines, Finding, Measurement, Tolerance, VariantFailure, Verdict

MIB = 2**20


def held(made: Any, metric: str, launches: Sequence[float], **changes: Any) -> Finding:
    """The finding on one metric of one value a launch."""
    measured = Measurement(
        metric=metric, scope="long", value=sorted(launches)[len(launches) // 2], samples=tuple(launches),
        launches=tuple(range(len(launches))),
    )  # fmt: skip
    result = replace(made.result(), measurements=(replace(measured, **changes),))
    planned = [GateItem(Aspect.MEMORY, metric, "long")]
    (found,) = compare_speed(result, Baselines(), made.environment, planned)
    return judge(found, DEFAULT_POLICY)


@pytest.mark.parametrize(("launches", "verdict"), [
    ([0, 0, 0], Verdict.PASS),
    ([3 * MIB] * 3, Verdict.PASS),
    ([30 * MIB] * 3, Verdict.REGRESSED),
    ([30 * MIB, 31 * MIB, 1 * MIB], Verdict.INCONCLUSIVE),  # one launch did without
    ([0, 0, 30 * MIB], Verdict.PASS),
])  # fmt: skip
def test_growth_is_held_against_nothing(made: Any, launches: list[float], verdict: Verdict) -> None:
    finding = held(made, "growth_bytes", launches)
    assert finding.verdict is verdict
    assert finding.comparison.unresolved is None  # though there is no baseline
    if verdict is not Verdict.PASS:
        assert "absolute in [policy.growth_bytes]" in finding.next_step


def test_the_sentences_tell_amounts_and_never_shares_of_nothing(made: Any) -> None:
    grown = held(made, "growth_bytes", [30 * MIB, 31 * MIB, 32 * MIB]).sentence
    assert grown.endswith("(long) is 32.5 MB (3 launches: 31.5 MB … 33.6 MB); at most 4.2 MB may be")
    assert held(made, "growth_bytes", [0, 0, 0]).sentence.endswith("(long) is 0.0 MB, as it must be (3 launches)")
    counted = held(made, "reevaluated_tokens", [329.0]).sentence
    assert counted.endswith("(long) is 329.0 tokens (1 launch); at most 32.0 tokens may be")


def test_a_share_that_was_timed_beside_neighbours_accuses_nobody(made: Any) -> None:
    finding = held(made, "reevaluated_share", [0.9, 0.9, 0.9], status="contended", reason="pressure 40 %")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "the machine was not ours (pressure 40 %)" in finding.sentence
    assert held(made, "growth_bytes", [30 * MIB], status="contended").verdict is Verdict.REGRESSED
    assert held(made, "reevaluated_share", [0.9, 0.9, 0.9]).verdict is Verdict.REGRESSED


LEAK = Measurement(metric="growth_bytes", scope="long", value=9.0 * MIB, samples=(9.0 * MIB,), launches=(0,))


def test_what_was_accepted_excuses_nothing(made: Any) -> None:
    speed = made.speed_baseline({"growth_bytes/long": [9.0 * MIB] * 3})
    (found,) = compare_speed(replace(made.result(), measurements=(LEAK,)), Baselines(speed=speed), made.environment, ())
    assert judge(found, DEFAULT_POLICY).verdict is Verdict.REGRESSED
    assert judge(found, {"growth_bytes": Tolerance(absolute=10 * MIB)}).verdict is Verdict.PASS


def test_without_numbers_nothing_is_said_and_a_failure_stays_one(made: Any) -> None:
    missing = held(made, "growth_bytes", [0.0], value=None, status="not_measured", reason="it needs more context")
    assert (missing.verdict, missing.comparison.reason) == (Verdict.NOT_MEASURED, "it needs more context")
    failure = VariantFailure(variant="q4", verdict=Verdict.ERROR, reason="killed")
    result = replace(made.result(), failure=failure, measurements=(LEAK,))
    (found,) = compare_speed(result, Baselines(), made.environment, ())
    assert judge(found, DEFAULT_POLICY).verdict is Verdict.ERROR
