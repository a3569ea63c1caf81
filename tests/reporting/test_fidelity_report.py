"""What the reports show of fidelity."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_fidelity as fidelity
from support import sample_runs as sample
from support import sample_stories as stories

from suite.records import Run, Tolerance
from suite.reporting import markdown, wording
from suite.reporting.fidelity import describe_legs, measured_fidelity
from suite.reporting.layout import layout
from suite.reporting.model import build_report
from suite.reporting.terminal import lines


def legs(run: Run, name: str) -> str:
    (found,) = [row.legs for row in measured_fidelity(run) if row.variant == name]
    assert found is not None
    return describe_legs(found)


def without(run: Run, *names: str) -> Run:
    return replace(run, variants=tuple(result for result in run.variants if result.variant.name not in names))


def test_a_run_without_fidelity_has_no_column_and_no_section() -> None:
    report = build_report(stories.healthy())
    assert report.fidelity == ()
    assert "KLD" not in [column.heading for column in layout(report, 200).kept]
    assert "KLD" not in markdown.render(report)


@pytest.mark.parametrize("width", [79, 159])
def test_the_column_is_kept_on_a_narrow_terminal(width: int) -> None:
    kept = {column.heading: list(column.cells) for column in layout(build_report(fidelity.damaged()), width).kept}
    assert kept["KLD"] == ["0", ".0200", "<.0001", ".0040", ".0790", ".0580"]
    assert {"prefill", "decode", "vs ref", "mem", "code", "math", "reas.", "verdict"} <= set(kept) or width > 100


def test_a_variant_that_was_not_forced_has_no_kld() -> None:
    run = fidelity.damaged()
    run = replace(run, forced=tuple(one for one in run.forced if one.variant != "int8"))
    run = replace(run, variants=tuple(sample.result("int8") if r.variant.name == "int8" else r for r in run.variants))
    report = build_report(run)
    assert [row.kld for row in report.rows if row.variant == "int8"] == [None]
    assert "int8" not in [row.variant for row in report.fidelity]


def test_legs_are_told_by_what_the_matrix_holds() -> None:
    run = fidelity.damaged()
    assert legs(run, "q4_k_m") == "engine <.0001 (as of f16), quantization .0574 (from f16)"
    assert legs(run, "int8") == "quantization alone: the reference fp16 is of the same engine"
    assert legs(run, "f16") == "engine alone: its weights are not quantized"


def test_without_the_peer_the_reports_say_that_the_figure_mixes_both() -> None:
    run = fidelity.damaged()
    alone = tuple(replace(one, peer=None, peer_kld=None) for one in run.forced)
    run = without(replace(run, forced=alone), "f16", "int8")
    assert legs(run, "q4_k_m").startswith("engine and quantization mixed")
    text = "\n".join(lines(build_report(run), width=300, color=False))
    assert "KLD of q8_0, q5_k_m, q4_k_m mixes what the engine does and what quantization does" in text
    assert "mixed" in markdown.render(build_report(run))


def test_old_sides_of_a_duet_are_in_no_row() -> None:
    run = fidelity.damaged()
    old = tuple(replace(one, variant="q4_k_m@old") for one in run.forced if one.variant == "q4_k_m")
    assert measured_fidelity(replace(run, forced=(*run.forced, *old))) == measured_fidelity(run)


def test_the_section_shows_the_tail_the_interval_and_each_domain() -> None:
    (row,) = [row for row in measured_fidelity(fidelity.damaged()) if row.variant == "q4_k_m"]
    assert row.interval is not None
    assert row.interval[0] < row.values["mean_kld"] < row.interval[1]
    assert row.tail == pytest.approx(row.values["p99_kld"] / row.values["mean_kld"])
    assert list(row.domains) == ["code", "math", "reasoning"]
    assert (row.cases, row.positions) == (6, 42)
    text = markdown.render(build_report(fidelity.damaged()))
    assert "| `q4_k_m` | 0.058 [0.0486, 0.0674] | 0.0348 |" in text
    assert "a lower bound" in text


def test_broken_logits_are_told_in_the_section() -> None:
    run = fidelity.damaged()
    broken = [replace(one, broken=(0,)) if one.variant == "q4_k_m" else one for one in run.forced]
    own = [one for one in broken if one.variant == "q4_k_m"]
    results = tuple(fidelity.measured("q4_k_m", own) if r.variant.name == "q4_k_m" else r for r in run.variants)
    text = markdown.render(build_report(replace(run, forced=tuple(broken), variants=results)))
    assert "- `q4_k_m`: 14 % of its logits are no numbers" in text


def test_drift_of_a_divergence_is_a_share_and_its_absolute_tolerance_is_in_nats() -> None:
    moved = sample.comparison("mean_kld", "all", baseline=0.0461, observed=0.058, drift=0.258, interval=(0.19, 0.33))
    assert wording.drift(moved) == "25.8 % worse"
    assert wording.drift_interval(moved) == "95 %: +19 … +33 % (+ is worse)"
    assert wording.tolerance(Tolerance(relative=0.1, absolute=0.0005), moved) == "10 % and 0.0005 nats"
    assert wording.value("mean_kld", 0.0461) == "0.0461 nats"
    assert wording.value("path_distance", None) == wording.ABSENT


@pytest.mark.parametrize(("number", "short"), [
    (None, "–"), (0.0, "0"), (4e-6, "<.0001"), (0.00005, ".0001"), (0.058, ".0580"), (1.0, "1"), (2.345, "2.35"),
])  # fmt: skip
def test_a_divergence_fits_into_a_narrow_column(number: float | None, short: str) -> None:
    assert wording.short_nats(number) == short
