"""Which findings hold on when a run is taken up again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suite.engine.keeping import still_holds
from suite.gate.judge import judge
from suite.records import Aspect, Comparison, Finding, Tier, Tolerance, Verdict

TOLERANCE = Tolerance(relative=0.1)
SPEED = Comparison(
    variant="q4", metric="itl_s", scope="short", aspect=Aspect.SPEED, tier=Tier.STORED, observed=2.0, baseline=1.0,
    drift=1.0, log_drift=0.7, log_se=0.01, log_df=9.0, n=5, n_baseline=5, accepted="accepted 2026-11-29",
)  # fmt: skip
ANSWERS = Comparison(
    variant="q4", metric="score", scope="all", aspect=Aspect.QUALITY, tier=Tier.STORED, observed=0.5, baseline=0.9,
    drift=0.4, p_value=0.001, n=24, accepted="accepted 2026-11-29",
)  # fmt: skip


def found(comparison: Comparison, verdict: Verdict = Verdict.REGRESSED) -> Finding:
    finding = judge(comparison, {"itl_s": TOLERANCE, "score": TOLERANCE})
    return replace(finding, verdict=verdict, tolerance=TOLERANCE)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_what_was_decided_holds_whatever_launches_came(verdict: Verdict) -> None:
    more = replace(SPEED, observed=1.0, drift=0.0, log_drift=0.0, n=10, looks=2)
    is_decided = verdict in (Verdict.PASS, Verdict.REGRESSED, Verdict.IMPROVED)
    assert still_holds(found(SPEED, verdict), more, TOLERANCE) is is_decided


@pytest.mark.parametrize(("change", "holds"), [
    ({"baseline": 1.5}, False),
    ({"accepted": "accepted 2026-11-30"}, False),
    ({"tier": Tier.DUET}, False),
    ({"unresolved": Verdict.NOT_COMPARABLE}, False),
    ({"unresolved": Verdict.UNBASELINED}, False),
    ({"unresolved": Verdict.NOT_MEASURED, "accepted": "", "baseline": None}, True),
])  # fmt: skip
def test_it_does_not_hold_against_another_baseline(change: dict[str, Any], holds: bool) -> None:
    assert still_holds(found(SPEED), replace(SPEED, **change), TOLERANCE) is holds
    assert not still_holds(found(SPEED), SPEED, replace(TOLERANCE, relative=0.2))


def test_the_old_side_of_a_duet_is_measured_on_and_stays_the_same() -> None:
    duet = replace(SPEED, tier=Tier.DUET)
    assert still_holds(found(duet), replace(duet, baseline=1.1, n=10), TOLERANCE)


@pytest.mark.parametrize("change", [{"n": 25}, {"drift": 0.2}, {"left_out": ("math/a",)}, {"p_value": 0.5}])
def test_other_answers_are_judged_anew(change: dict[str, Any]) -> None:
    assert still_holds(found(ANSWERS), replace(ANSWERS, suspects=("kernel: 1 → 2",)), TOLERANCE)
    assert not still_holds(found(ANSWERS), replace(ANSWERS, **change), TOLERANCE)
