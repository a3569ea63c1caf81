"""What fails a run under which rules, and what an update takes."""

from __future__ import annotations

import pytest
from support import sample_runs as sample

from suite.gate.failing import fails, is_accepted
from suite.records import Aspect, Gate, Tier, Verdict

GATE = sample.comparison()
ALWAYS = {Verdict.ERROR, Verdict.INVALID, Verdict.REGRESSED}


@pytest.mark.parametrize(("strict", "required", "more"), [
    (False, False, set()),
    (True, False, {Verdict.INCONCLUSIVE, Verdict.UNBASELINED, Verdict.NOT_MEASURED}),
    (False, True, {Verdict.NOT_COMPARABLE, Verdict.UNBASELINED, Verdict.NOT_MEASURED}),
])  # fmt: skip
def test_stricter_rules_fail_more_verdicts(strict: bool, required: bool, more: set[Verdict]) -> None:
    failed = {v for v in Verdict if fails(sample.finding(v, of=GATE), strict=strict, require_baselines=required)}
    assert failed == ALWAYS | more


def test_a_gate_that_warns_fails_for_broken_variants_only_and_one_that_informs_never() -> None:
    warned, informed = (
        {v for v in Verdict if fails(sample.finding(v, of=GATE, gate=gate), strict=True, require_baselines=True)}
        for gate in (Gate.WARN, Gate.INFO)
    )
    assert warned == {Verdict.ERROR, Verdict.INVALID}
    assert informed == set()


@pytest.mark.parametrize(("mode", "taken"), [
    (None, set()),
    ("new", {Verdict.UNBASELINED}),
    ("changed", {Verdict.UNBASELINED, Verdict.REGRESSED, Verdict.NOT_COMPARABLE}),
    ("all", {Verdict.UNBASELINED, Verdict.REGRESSED, Verdict.NOT_COMPARABLE, Verdict.INCONCLUSIVE}),
])  # fmt: skip
def test_an_update_takes_what_its_mode_says(mode: str | None, taken: set[Verdict]) -> None:
    assert {v for v in Verdict if is_accepted(sample.finding(v, of=GATE), mode)} == taken


@pytest.mark.parametrize(("mode", "taken"), [(None, False), ("new", False), ("changed", True), ("all", True)])
def test_answers_that_cannot_be_told_are_taken_deliberately(mode: str | None, taken: bool) -> None:
    undecided = sample.finding(Verdict.INCONCLUSIVE, of=sample.comparison(aspect=Aspect.QUALITY))
    assert is_accepted(undecided, mode) is taken


def test_new_takes_what_only_another_machine_has() -> None:
    foreign = sample.finding(Verdict.NOT_COMPARABLE, of=sample.comparison(tier=Tier.FOREIGN))
    assert is_accepted(foreign, "new")
    assert not is_accepted(foreign, None)
