"""The trends as people and programs see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support import sample_history as sample

from suite.records import HistoryEntry
from suite.reporting.history_json import history_json
from suite.reporting.history_series import Selection, build_trends
from suite.reporting.history_signs import BLOCKS, DIGITS, marks, sparkline, stretches, to_ascii
from suite.reporting.history_story import share
from suite.reporting.history_text import Screen, history_lines
from suite.reporting.hostile import columns

HOSTILE = "q4\x1b[31m\nred\u202e|<b>"
FAULT = "h.jsonl, line 3: not JSON; the line is kept: delete it"


def shown(entries: Sequence[HistoryEntry], screen: Screen, selection: Selection | None = None, **given: Any) -> str:
    trends = build_trends(entries, selection or Selection())
    return "\n".join(history_lines(trends, given.pop("faults", ()), screen, **given)) + "\n"


@pytest.mark.parametrize("width", [80, 160])
def test_a_history_with_a_shift_looks_as_agreed(width: int, check_golden: Callable[[str, str], None]) -> None:
    entries = [*sample.slower(), *sample.elsewhere()]
    check_golden(f"history-{width}.txt", shown(entries, Screen(width=width), faults=[FAULT]))


def test_in_an_old_locale_it_looks_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    text = shown(sample.slower(), Screen(width=100, ascii=True))
    assert text.isascii()
    check_golden("history-ascii.txt", text)


def test_for_programs_it_is_as_agreed(check_golden: Callable[[str, str], None]) -> None:
    text = history_json(build_trends(sample.slower(), Selection(variant="q4_k_m")), [FAULT])
    check_golden("history.json", text)
    assert json.loads(text)["faults"] == [FAULT]


def test_nothing_shifted_is_said_with_what_was_looked_at() -> None:
    assert (
        "No level shifted among 7 series; the chance that one of them is told to have shifted by luck is 5 %."
        in shown(sample.steady(), Screen(width=160))
    )


def test_too_few_runs_are_said_to_have_shown_nothing() -> None:
    text = shown(sample.steady(9), Screen(width=160))
    assert (
        "No level shifted, but none could have been seen: among 7 series, 11 runs are needed and there are 9." in text
    )


def test_what_has_too_few_runs_is_not_called_steady() -> None:
    text = shown(sample.steady(9), Screen(width=160))
    assert "steady" not in text
    assert "too few runs" in text


def test_one_run_asks_for_a_second_instead_of_showing_rows_of_nothing() -> None:
    text = shown(sample.steady(1), Screen(width=120))
    assert "1 run, 2026-09-01" in text
    assert "One run shows no trend: it takes a second one. After it:\n   quantdrift history --append latest\n" in text
    assert "decode tok/s" not in text


def test_a_run_of_a_part_of_the_cases_is_named_and_changes_nothing() -> None:
    whole = {"cases": "91c091c091c0"}
    nights = [sample.entry(night, versions=whole) for night in range(3)]
    nights[1] = replace(nights[1], versions={}, cases="3 of 77")
    text = shown(nights, Screen(width=120))
    assert f"A part of the cases was answered in\n   {nights[1].run} (commit 000000000001): 3 of 77" in text
    assert "Versions changed at" not in text


def test_a_shift_names_what_changed_near_it_and_what_was_accepted() -> None:
    text = shown(sample.slower(), Screen(width=160))
    run = sample.entry(sample.SLOWER_AT).run
    assert f"A level shifted at run {run} (commit 000000000016)" in text
    assert "changed with this run: llama-cpp-python: 0.3.35 → 0.3.36" in text
    assert f"Baselines were accepted from\n   {sample.entry(sample.ACCEPTED_AT).run}" in text
    assert "Baselines stay as they are" in text


def test_a_change_one_run_beside_a_shift_is_told_as_near() -> None:
    entries = [replace(one, versions=one.versions if place != 21 else {**one.versions, "python": "3.12.1"})
               for place, one in enumerate(sample.slower())]  # fmt: skip
    assert "changed 1 run earlier: python: 3.11.7 → 3.12.1" in shown(entries, Screen(width=160))


def test_a_shift_without_a_recorded_change_says_so() -> None:
    entries = [replace(one, versions={}) for one in sample.slower()]
    assert "nothing that is recorded changed there" in shown(entries, Screen(width=160))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_rows_fit_into_the_width(width: int) -> None:
    lines = shown(sample.slower(), Screen(width=width)).splitlines()
    table = lines[2 : lines.index("", 3)]
    assert max(map(columns, table)) <= width


def test_colour_only_repeats_words() -> None:
    plain = shown(sample.slower(), Screen(width=120))
    painted = shown(sample.slower(), Screen(width=120, color=True))
    assert "\x1b[1;31mworse\x1b[0m" in painted
    assert painted.replace("\x1b[1;31m", "").replace("\x1b[0m", "") == plain


def test_what_a_file_says_is_made_harmless() -> None:
    values = {f"{HOSTILE}/decode_tok_s/{HOSTILE}": 1.0, "q8/score/all": 0.5}
    odd = [sample.entry(night, values=values, versions={HOSTILE: str(night)}, commit=HOSTILE, run=f"{HOSTILE}{night}",
                        model=HOSTILE, machine=HOSTILE, accepted=True) for night in range(3)]  # fmt: skip
    text = shown(odd, Screen(width=120), faults=[HOSTILE])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "q4 red" in text


def test_every_scope_of_a_metric_that_is_asked_for_is_a_row() -> None:
    some = shown(sample.steady(), Screen(width=120))
    every = shown(sample.steady(), Screen(width=120), Selection(metric="score"), scopes=True)
    assert "score (math)" not in some
    assert "score (math)" in every
    assert "decode" not in every


def test_a_name_that_is_nowhere_in_the_last_runs_is_said() -> None:
    entries = [*(replace(one, values={}) for one in sample.steady(3)[1:]), sample.entry(0)]
    assert "nothing of what is asked for was measured" in shown(entries, Screen(width=100), Selection(last=2))


def test_pictures_go_from_the_lowest_sign_to_the_highest() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 20, BLOCKS) == BLOCKS
    assert sparkline([8.0, 1.0], 20, DIGITS) == "70"


def test_what_never_moves_is_a_line_in_the_middle_and_what_is_missing_a_gap() -> None:
    assert sparkline([5.0, None, 5.0], 20, DIGITS) == "3 3"
    assert sparkline([None, None], 20, DIGITS) == "  "


def test_long_series_are_drawn_by_the_medians_of_stretches() -> None:
    assert sparkline([0, 0, 100, 8, 8, 8, 4, 4, 4], 3, DIGITS) == "074"
    assert [len(part) for part in stretches(range(10), 4)] == [2, 3, 2, 3]


def test_marks_stand_under_their_runs() -> None:
    assert marks([(True, False), (False, False), (False, True), (True, True)], 10) == "a v*"
    assert marks([(True, False), (False, True), (False, False), (False, False)], 2) == "* "


@pytest.mark.parametrize(("change", "told"), [
    (0.0, "0 %"), (0.0412, "+4.1 %"), (-0.118, "−11.8 %"), (None, "–"), (12.3, "+1230 %"), (-1e-9, "−<0.1 %"),
])  # fmt: skip
def test_changes_are_told_with_their_sign(change: float | None, told: str) -> None:
    assert share(change) == told


def test_our_typography_is_spelled_out_in_ascii() -> None:
    assert to_ascii("a → b · −1 %…") == "a -> b | -1 %..."
