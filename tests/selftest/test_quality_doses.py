"""Corrupted answers through the real gate, and the smallest loss that could be seen."""

from __future__ import annotations

import pytest

from suite.records import Verdict
from suite.selftest.characteristics import quality_section
from suite.selftest.quality import CASES, DOSES, dose, enumerate_mde
from suite.selftest.table import failed


@pytest.mark.parametrize(("corrupted", "verdict"), DOSES.items())
def test_each_dose_gets_its_verdict(corrupted: int, verdict: Verdict) -> None:
    found = dose(corrupted)
    assert (found.verdict, found.lost) == (verdict, corrupted)
    assert found.mde == found.enumerated


def test_enumeration_agrees_with_known_values() -> None:
    assert enumerate_mde(CASES, 0) == 5 / CASES  # 2^-5 is the first below 5 %
    assert enumerate_mde(CASES, 0, alpha=0.01) == 7 / CASES
    assert enumerate_mde(CASES, 1) == 6 / CASES  # 7 lost, 1 gained: 9 of 256
    assert enumerate_mde(4, 0) is None


def test_a_wrong_verdict_or_a_wrong_mde_fails() -> None:
    import dataclasses

    good = [dose(corrupted) for corrupted in (0, 5)]
    assert failed([quality_section(good)]) == []
    asleep = dataclasses.replace(good[1], verdict=Verdict.PASS)
    boastful = dataclasses.replace(good[1], mde=0.01)
    assert len(failed([quality_section([good[0], asleep])])) == 1
    assert len(failed([quality_section([good[0], boastful])])) == 1
