"""What a report says of the limits: who comes how close, what bounds it, and what does not fit together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_limits, sample_runs

from suite.records import Limits
from suite.reporting.limits import cells, limits_lines, limits_markdown, limits_remarks, measured_limits
from suite.reporting.page.limits import limits_sheet

FOUND = measured_limits(sample_limits.limited())


def test_a_row_for_each_variant_that_was_asked() -> None:
    assert [row.variant for row in FOUND.rows] == ["fp16", "f16", "q8_0", "q5_k_m", "q4_k_m"]
    f16 = next(row for row in FOUND.rows if row.variant == "f16")
    assert f16.token_bytes == 271_000_000 + 30 * 768 * (128 + 16)
    assert f16.roofline_tok_s == pytest.approx(62e9 / f16.token_bytes)
    assert f16.mbu is not None
    assert f16.mbu[0] == pytest.approx(f16.token_bytes * 128.4 / 62e9, rel=1e-4)
    assert f16.mbu[1] is not None
    assert f16.mbu[1][0] < f16.mbu[0] < f16.mbu[1][1]
    assert (f16.decode_bound, f16.prefill_bound) == ("memory", "arithmetic")


def test_a_bound_that_is_far_away_is_not_what_holds_a_variant_up() -> None:
    fp16 = next(row for row in FOUND.rows if row.variant == "fp16")
    assert (fp16.decode_bound, fp16.prefill_bound) == ("neither (memory first)", "neither (arithmetic first)")


def test_what_does_not_fit_together_and_what_is_not_told_is_said() -> None:
    (disagreement,) = FOUND.disagreements
    assert "q8_0 takes 94.37 MB as its backend reports, 47.19 MB" in disagreement
    assert FOUND.notes == (
        "no limits of int8: no header of weights tells what a token reads",
        "MFU is a share of what products of float32 matrices reached here, 290 GFLOP/s (cpu, 2 threads); kernels of narrower "
        "types can go beyond it",
    )


def test_a_run_in_which_nobody_was_asked_says_so_where_it_is_asked_for_and_nowhere_else() -> None:
    nothing = measured_limits(sample_runs.run())
    assert limits_markdown(nothing) == ""
    assert limits_remarks(nothing, "short") == ()
    assert limits_sheet(nothing) is None
    assert list(limits_lines(nothing, 80)) == [" no limits: no device was asked what it gives in this run"]


def test_the_end_of_a_run_says_it_in_one_sentence() -> None:
    first, second = limits_remarks(FOUND, "short")
    assert first.startswith(
        "share of the memory bandwidth (62 GB/s) that decoding reached: fp16 29 %, f16 57 %, q8_0 39 %"
    )
    assert second == FOUND.disagreements[0]
    assert limits_remarks(FOUND, "other") == FOUND.disagreements


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = list(limits_lines(FOUND, width))
    assert max(map(len, lines)) <= width
    assert "MBU" in lines[0]


def test_names_cannot_break_out_of_the_table() -> None:
    run = sample_limits.limited()
    bad = replace(run.variants[0].variant, name="x|<b>`\x1b[2J")
    sample = replace(run.speed_samples[0], variant=bad.name, scenario="a|b")
    hostile = replace(run, variants=(replace(run.variants[0], variant=bad),), speed_samples=(sample,))
    found = measured_limits(hostile)
    assert all("\x1b" not in line for line in limits_lines(found, 160))
    table = limits_markdown(found).splitlines()[4]
    assert "<b>`" not in table.replace("`", "", 1).split("`")[-1]
    assert "a\\|b" in table or "a&#124;b" in table


def test_the_page_has_the_same_cells() -> None:
    sheet = limits_sheet(FOUND)
    assert sheet is not None
    assert [tuple(cell.text for cell in row) for row in sheet.rows] == [cells(row) for row in FOUND.rows]
    assert sheet.rows[0][6].sort == pytest.approx(FOUND.rows[0].mbu[0] if FOUND.rows[0].mbu else None)


def test_a_variant_that_was_not_asked_for_a_reason_of_its_own_is_told_with_that_alone() -> None:
    run = sample_limits.limited()
    away = Limits(reason="its model lies elsewhere")
    results = [
        replace(r, launches=tuple(replace(launch, limits=away) for launch in r.launches))
        if r.variant.name == "int8"
        else r
        for r in run.variants
    ]
    notes = measured_limits(replace(run, variants=tuple(results))).notes
    assert [note for note in notes if "int8" in note] == ["int8: its model lies elsewhere"]
