"""A run as a table."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import sample_runs as sample
from support import sample_stories as stories

from suite.records import Run
from suite.reporting.csv_rows import COLUMNS, render_csv


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(run))))


def test_there_is_one_row_for_each_variant_metric_and_scope() -> None:
    run = stories.slower()
    found = [(row["variant"], row["metric"], row["scope"]) for row in rows(run)]
    assert len(found) == len(set(found))
    measured = {(r.variant.name, m.metric, m.scope) for r in run.variants for m in r.measurements}
    assert set(found) == measured | {(f.variant, f.metric, f.scope) for f in run.findings}


def test_a_judged_row_has_all_its_numbers() -> None:
    (row,) = (r for r in rows(stories.slower()) if (r["variant"], r["metric"]) == ("q4_k_m", "decode_tok_s"))
    assert (row["value"], row["unit"], row["direction"]) == ("152.7", "tok/s", "higher")
    assert (row["drift"], row["drift_low"], row["drift_high"]) == ("0.118", "0.104", "0.131")
    assert (row["tolerance_relative"], row["verdict"], row["gate"]) == ("0.1", "REGRESSED", "block")


def test_what_was_not_measured_has_a_status_and_no_value() -> None:
    (row,) = (r for r in rows(stories.killed()) if (r["variant"], r["metric"]) == ("int8", "decode_tok_s"))
    assert (row["value"], row["status"], row["verdict"]) == ("", "not_measured", "ERROR")


def test_numbers_have_all_their_digits_and_stay_numbers() -> None:
    odd = sample.measurement("delta_p", "all", -1.1637112372624156e-05)
    (row,) = rows(sample.run([sample.result("q8_0", measurements=(odd,))]))
    assert float(row["value"]) == -1.1637112372624156e-05
    assert not row["value"].startswith("'")


@pytest.mark.parametrize("attack", [
    '=HYPERLINK("http://x","y")', "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1+1", "\r=1+1", "＝1+1", "\u200b=1",
])  # fmt: skip
def test_text_is_no_formula(attack: str) -> None:
    odd = sample.measurement("decode_tok_s", attack, 1.0)
    (row,) = rows(replace(sample.run([sample.result("q8_0", measurements=(odd,))]), model=attack))
    assert row["scope"].startswith("'")
    assert row["model"].startswith("'")


@given(st.text())
def test_whatever_a_scope_is_called_the_table_stays_a_table(scope: str) -> None:
    odd = sample.measurement("decode_tok_s", scope, 1.5)
    text = render_csv(sample.run([sample.result("q8_0", measurements=(odd,))]))
    heading, row = csv.reader(io.StringIO(text))
    assert tuple(heading) == COLUMNS
    assert len(row) == len(COLUMNS)
    assert not row[COLUMNS.index("scope")].startswith(tuple("=+-@\t\r"))
    assert text.count("\n") == 2
