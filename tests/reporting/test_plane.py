"""Positions on the plane: who is beaten, and where the error bars say so."""

from __future__ import annotations

from support import sample_advice as sample

from suite.gate.advice.advising import advise
from suite.reporting.model import build_report
from suite.reporting.page.plane import find_spots, frontier_of
from suite.reporting.page.plane_plot import describe


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
