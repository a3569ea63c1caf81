"""Positions on the plane: who is beaten, and where the error bars say so."""

from __future__ import annotations

import math

import pytest
from support import sample_advice as sample
from support.sample_runs import comparison, finding, matrix

from suite.gate.advice.advising import advise
from suite.gate.advice.estimates import find_estimates
from suite.records import Run, Verdict
from suite.reporting.model import build_report
from suite.reporting.page.plane import find_spots, frontier_of
from suite.reporting.page.plane_plot import describe, draw_plane


def test_who_is_beaten_is_said_and_whether_the_error_bars_tell() -> None:
    run = sample.healthy()
    spots = {spot.variant: spot for spot in find_spots(run, build_report(run), "mean_kld")}
    assert [spot.variant for spot in frontier_of(tuple(spots.values()))] == ["fp16", "f16", "q8_0", "q4_k_m"]
    assert (spots["int8"].beaten_by, spots["int8"].surely) == (("fp16", "f16", "q8_0"), True)
    assert (spots["q5_k_m"].beaten_by, spots["q5_k_m"].surely) == (("q4_k_m",), False)
    assert "int8 by fp16, f16, q8_0; q5_k_m by q4_k_m, within the error bars" in describe(tuple(spots.values()))


def test_the_plane_and_the_advice_agree_on_who_is_dominated() -> None:
    """The advice counts memory too, so that it may spare what needs less of it; it never adds one."""
    run = sample.healthy()
    sure = {spot.variant for spot in find_spots(run, build_report(run), "mean_kld") if spot.surely}
    assert {one.variant for one in advise(run, sample.asked()).front.placed if one.is_dominated} <= sure


def beaten(looks: int, busy: str = "") -> Run:
    """int8 is 3 % slower than the reference, diverges and needs more memory: beaten for sure, if its speed-up is."""
    ratios = tuple(math.exp(-0.03) * ratio for ratio in (0.99, 1.0, 1.01))
    slow = sample.changed(sample.loaded("int8"), "speedup", value=math.exp(-0.03), samples=ratios)
    if busy:
        slow = sample.changed(slow, "speedup", status="contended", reason=busy)
    large = sample.changed(slow, "peak_rss_bytes", value=7e8, samples=(7e8,) * 3)
    judged = finding(Verdict.PASS, of=comparison(name="int8", looks=looks))
    return sample.whole([sample.loaded("fp16"), large], matrix=matrix(["fp16", "int8"]), findings=(judged,))


@pytest.mark.parametrize(("looks", "level", "sure"), [(1, 0.95, True), (2, 0.975, False)])
def test_launches_that_were_judged_again_have_the_interval_of_the_advice(looks: int, level: float, sure: bool) -> None:
    run = beaten(looks)
    (spot,) = (one for one in find_spots(run, build_report(run), "mean_kld") if not one.reference)
    told = find_estimates(run, "short")["int8"]["speedup"]
    assert (spot.speedup, spot.speedup_interval, spot.confidence) == (told.value, told.interval, told.confidence)
    assert spot.confidence == pytest.approx(level)
    (advised,) = (one for one in advise(run, sample.asked()).front.placed if one.variant == "int8")
    assert (spot.beaten_by, spot.surely, advised.is_dominated) == (("fp16",), sure, sure)


def test_what_the_bars_hold_is_said() -> None:
    once, twice = (find_spots(run, build_report(run), "mean_kld") for run in (beaten(1), beaten(2)))
    assert describe(once).endswith("Bars hold 95 %.")
    assert "97.5 % for the speed-up of int8, whose launches were judged more than once" in describe(twice)
    drawn = draw_plane(twice, "mean_kld", "fp16")
    assert any(cell.text.endswith("(97.5 %)") for row in drawn.sheet.rows for cell in row)


def test_a_speedup_in_doubt_tells_nothing_apart() -> None:
    run = beaten(1, busy="9 of 9 samples contended")
    spots = find_spots(run, build_report(run), "mean_kld")
    assert not any(spot.surely for spot in spots)
    assert not any(one.is_dominated for one in advise(run, sample.asked()).front.placed)
    assert "The speed-up of int8 tells nothing apart: the machine was not ours" in describe(spots)
