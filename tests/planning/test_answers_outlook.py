"""What cases can find, against enumeration."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from support.in_process import make_case

from suite.planning.quality import cases_needed, certified, count_independent, look_out, loss_power
from suite.stats.binomial import mcnemar_p
from suite.stats.power import detectable_loss, mcnemar_power


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_power_is_that_of_enumerating_every_outcome(gain: float) -> None:
    cases, loss, alpha, tolerance = 7, 0.6, 0.06, 0.5
    total = 0.0
    for outcome in itertools.product((0, 1, -1), repeat=cases):
        lost, gained = outcome.count(1), outcome.count(-1)
        if lost - gained > tolerance * cases and mcnemar_p(lost, gained) <= alpha:
            total += loss**lost * gain**gained * (1 - loss - gain) ** (cases - lost - gained)
    assert loss_power(cases, loss, gain, alpha, tolerance) == pytest.approx(total)


@pytest.mark.parametrize(("cases", "gain"), [(30, 0.0), (54, 0.02), (72, 0.0)])
def test_where_the_tolerance_asks_for_nothing_it_is_the_power_of_mcnemar(cases: int, gain: float) -> None:
    assert loss_power(cases, 0.2, gain, 0.03, 0.0) == pytest.approx(mcnemar_power(cases, 0.2, gain, 0.03))
    found = look_out("all", cases, 0.0, alpha=0.03, crowd=1)
    assert found.loss_95 == detectable_loss(cases, 0.03, 0.95)
    assert found.loss_80_gain == detectable_loss(cases, 0.03, 0.80, 0.02)


def test_published_figures_of_fifty_cases() -> None:
    found = look_out("all", 50, 0.0, alpha=0.05, crowd=1)
    assert found.loss_80 == pytest.approx(0.135, abs=0.005)  # in steps of half a point
    assert found.loss_95 == pytest.approx(0.175, abs=0.005)
    assert found.certified == pytest.approx(0.058, abs=0.0005)


def test_five_losses_are_called_alone_and_more_are_needed_in_a_crowd() -> None:
    found = look_out("all", 72, 0.05, alpha=0.032, crowd=6)
    assert (found.called, found.called_crowded) == (5, 8)
    assert look_out("math", 4, 0.05, alpha=0.032, crowd=6).called is None, "not even losing all four is"


def test_a_loss_must_pass_the_tolerance_too() -> None:
    assert look_out("all", 200, 0.05, alpha=0.032, crowd=1).called == 11
    large = look_out("all", 400, 0.10, alpha=0.032, crowd=1)
    assert large.loss_95 is not None
    assert large.loss_95 > 0.10


def test_a_family_counts_once() -> None:
    twins = [dataclasses.replace(make_case(f"math/{name}"), family="apples") for name in "ab"]
    assert count_independent([*twins, make_case("math/c")]) == 2


def test_cases_that_a_tolerance_needs() -> None:
    needed = cases_needed(0.05, 0.032)
    assert needed.certify == math.ceil(math.log(0.05) / math.log(0.95)) == 59
    assert certified(needed.certify) <= 0.05 < certified(needed.certify - 1)
    assert needed.find is not None
    assert loss_power(needed.find, 0.10, 0.0, 0.032, 0.05) >= 0.95
    assert loss_power(needed.find // 2, 0.10, 0.0, 0.032, 0.05) < 0.95
