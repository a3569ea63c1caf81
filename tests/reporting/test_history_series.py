"""Runs as series: never mixed, judged as one family, each shift at its run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_history as sample

from suite.errors import UsageError
from suite.records import HistoryEntry
from suite.reporting.history_series import (
    ALPHA,
    Selection,
    Series,
    Trend,
    build_trends,
    changes_of,
    relative_change,
)

ALL_OF_IT = Selection()


def trend_of(entries: tuple[HistoryEntry, ...], selection: Selection = ALL_OF_IT) -> Trend:
    (trend,) = build_trends(entries, selection)
    return trend


def find(trend: Trend, variant: str, metric: str, scope: str) -> Series:
    return next(one for one in trend.series if (one.variant, one.metric, one.scope) == (variant, metric, scope))


def test_a_shift_is_named_with_the_run_that_it_began_with() -> None:
    trend = trend_of(sample.slower())
    series = find(trend, "q4_k_m", "decode_tok_s", "short")
    (shift,) = series.shifts
    assert trend.entries[shift.entry].run == sample.entry(sample.SLOWER_AT).run
    assert shift.worse is True
    assert shift.change == pytest.approx(-0.12, abs=0.02)
    assert (shift.runs_before, shift.runs_after) == (sample.SLOWER_AT, 34 - sample.SLOWER_AT)


def test_which_way_is_worse_comes_from_the_catalogue() -> None:
    trend = trend_of(sample.slower())
    (shift,) = find(trend, "q4_k_m", "mean_kld", "all").shifts
    assert shift.worse is True  # it rose, and less is better
    assert shift.change == pytest.approx(0.26)


def test_what_did_not_shift_is_steady() -> None:
    trend = trend_of(sample.slower())
    shifted = {(one.variant, one.metric) for one in trend.series if one.shifts}
    assert shifted == {("q4_k_m", "decode_tok_s"), ("q4_k_m", "mean_kld")}


def test_a_metric_that_is_not_in_the_catalogue_moved_and_is_neither_better_nor_worse() -> None:
    entries = [sample.entry(night, values={"q4_k_m/own/all": float(night >= 10)}) for night in range(20)]
    (series,) = trend_of(tuple(entries), Selection(metric="own")).series
    assert [shift.worse for shift in series.shifts] == [None]
    assert series.shifts[0].change is None  # from 0


def test_machines_and_models_are_never_joined() -> None:
    other_model = replace(sample.entry(7), run="other", model="another-model")
    trends = build_trends([*sample.steady(6), *sample.elsewhere(), other_model], ALL_OF_IT)
    told = [(trend.model, trend.machine, len(trend.entries)) for trend in trends]
    assert sorted(told) == [
        ("another-model", sample.MACHINE, 1),
        ("smollm2-135m-instruct", sample.MACHINE, 6),
        ("smollm2-135m-instruct", sample.OTHER_MACHINE, 3),
    ]
    assert all(not one.shifts for trend in trends for one in trend.series)


def test_runs_are_put_in_the_order_of_their_time() -> None:
    entries = sample.slower()
    assert trend_of(tuple(reversed(entries))) == trend_of(entries)


def test_the_level_is_divided_among_all_series_whatever_is_selected() -> None:
    whole = trend_of(sample.slower())
    closer = trend_of(sample.slower(), Selection(variant="q4_k_m"))
    assert whole.tested == 8  # those of 11 that move
    assert whole.level == ALPHA / 8
    assert (closer.tested, closer.level) == (whole.tested, whole.level)
    assert {one.variant for one in closer.series} == {"q4_k_m"}
    assert find(closer, "q4_k_m", "decode_tok_s", "short") == find(whole, "q4_k_m", "decode_tok_s", "short")


def test_series_of_other_machines_take_their_part_of_the_level() -> None:
    entries = [*sample.steady(10), *sample.elsewhere(10)]
    levels = [trend.level for trend in build_trends(entries, Selection(machine=sample.MACHINE))]
    assert levels == [ALPHA / 14]


def test_only_the_last_runs_are_looked_at() -> None:
    trend = trend_of(sample.slower(), Selection(last=10))
    assert [one.run for one in trend.entries] == [sample.entry(night).run for night in range(24, 34)]
    assert trend.left_out == 24
    assert all(not one.shifts for one in trend.series)


def test_a_metric_that_is_asked_for_is_shown_in_every_scope() -> None:
    trend = trend_of(sample.steady(), Selection(metric="itl_s"))
    assert [(one.variant, one.metric) for one in trend.series] == [("q4_k_m", "itl_s")]


def test_nights_that_lack_a_value_are_no_part_of_its_series() -> None:
    entries = [sample.entry(night) for night in range(12)]
    entries[5] = replace(entries[5], values={})
    series = find(trend_of(tuple(entries)), "f16", "decode_tok_s", "short")
    assert series.entries == (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11)


def test_changes_are_told_once_where_they_happened() -> None:
    changed = changes_of(sample.slower())
    assert [place for place, changes in enumerate(changed) if changes] == [sample.SLOWER_AT]
    assert changed[sample.SLOWER_AT] == ("llama-cpp-python: 0.3.35 → 0.3.36",)


def test_a_night_that_does_not_tell_a_version_changes_nothing() -> None:
    entries = [sample.entry(night) for night in range(4)]
    entries[1] = replace(entries[1], versions={})
    entries[3] = replace(entries[3], suite_version="0.2.0")
    assert changes_of(entries) == [(), (), (), ("quantdrift: 0.1.0 → 0.2.0",)]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(variant="q4_k"), "--variant: the history holds no 'q4_k'; did you mean 'q4_k_m'"),
        (Selection(metric="decode"), "--metric: .*did you mean 'decode_tok_s'"),
        (Selection(machine="nowhere"), "--machine: the history holds no 'nowhere'"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_with_the_nearest(selection: Selection, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build_trends(sample.steady(3), selection)


@pytest.mark.parametrize(("was", "now", "change"), [(4, 5, 0.25), (-4, -5, -0.25), (0, 0, 0), (0, 1, None)])
def test_changes_are_shares_of_what_was(was: float, now: float, change: float | None) -> None:
    assert relative_change(was, now) == change
