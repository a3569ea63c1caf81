"""Properties of the renderers that a golden file cannot hold."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import sample_runs as sample
from support import sample_stories as stories
from support.github_page import ATTACKS, GithubPage, active_in

from suite.records import Aspect, Tolerance, TrialStatus, Verdict
from suite.reporting import hostile, markdown, wording
from suite.reporting.junit import case_properties, gate_properties
from suite.reporting.layout import layout
from suite.reporting.model import build_report
from suite.reporting.table import Column, fit, padded
from suite.reporting.terminal import lines


def table_rows(text: list[str]) -> list[str]:
    """The heading line of the table and its rows."""
    start = next(number for number, line in enumerate(text) if line.startswith(" variant"))
    return text[start : start + 1 + len(sample.VARIANTS)]


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 81, 100, 120, 160, 250])
@pytest.mark.parametrize("story", ["healthy", "slower", "killed"])
def test_the_table_never_wraps(story: str, width: int) -> None:
    text = list(lines(build_report(stories.STORIES[story]()), width=width, color=False))
    assert all(hostile.columns(line) <= width for line in table_rows(text))


def test_at_80_columns_speed_scores_and_verdict_are_kept() -> None:
    kept = [column.heading for column in layout(build_report(stories.healthy()), 79).kept]
    assert {"variant", "prefill", "decode", "vs ref", "mem", "code", "math", "reas.", "verdict"} <= set(kept)


def test_at_160_columns_nothing_is_dropped() -> None:
    assert layout(build_report(stories.healthy()), 159).dropped == ()


def test_colour_only_repeats_the_words() -> None:
    report = build_report(stories.slower())
    colored = list(lines(report, width=100, color=True))
    assert any("\x1b[" in line for line in colored)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in colored] == list(lines(report, width=100, color=False))


def test_device_memory_has_a_column_where_there_is_a_device() -> None:
    device = sample.measurement("peak_device_bytes", "all", 4.92e9)
    run = sample.run([sample.result("q8_0", measurements=(*sample.measurements("q8_0"), device))])
    assert any("4.92 GB" in line for line in lines(build_report(run), width=200, color=False))


@pytest.mark.parametrize("width", [80, 160])
def test_hostile_text_reaches_no_terminal(width: int) -> None:
    text = "\n".join(lines(build_report(stories.hostile()), width=width, color=False))
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    assert "owned" not in text


def test_a_command_to_copy_has_a_line_of_its_own() -> None:
    report = build_report(stories.slower())
    command = "pytest --model-matrix --matrix-variants q8_0 --matrix-only=speed"
    shown = list(lines(report, width=80, color=False))
    assert shown[shown.index(f"     {command}") - 1] == "   → measure again:"
    told = markdown.render(report).splitlines()
    assert f"    {command}" in told
    assert "Next: measure again:" in told


def test_a_run_without_variants_can_be_shown() -> None:
    assert " (no variant was run)" in list(lines(build_report(sample.run([])), width=80, color=False))


@given(st.text())
def test_plain_text_is_free_of_control_characters_and_stays_so(text: str) -> None:
    safe = hostile.plain(text)
    assert not [c for c in safe if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")]
    assert hostile.plain(safe) == safe
    assert safe.encode("utf-8").decode("utf-8") == safe


@pytest.mark.parametrize(("attack", "left"), [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b2Jcleared", "cleared"),
    ("\x1bPdevice\x1b\\after", "after"),
    ("a\u202eb\u200bc", "abc"),
    ("one\r\ntwo\rthree", "one\ntwo\nthree"),
    ("lone \ud800 surrogate", "lone  surrogate"),
    ("\x1b", ""),
])  # fmt: skip
def test_escape_sequences_are_removed_whole(attack: str, left: str) -> None:
    assert hostile.plain(attack) == left


@pytest.mark.parametrize(("was", "now", "told"), [
    ("18", "24", '"18" → "24"'),
    ("18", None, '"18" → no answer'),
    ("18", "18", '"18" both times, graded otherwise'),
    ("def double_all(numbers): return x", "def double_all(numbers): return y", '"… return x" → "… return y"'),
    ("def double_all(numbers): return", "def double_all(numbers): return y", '"…: return" → "…: return y"'),
])  # fmt: skip
def test_two_answers_are_shown_where_they_part(was: str, now: str | None, told: str) -> None:
    assert hostile.became(was, now, 24) == told


@given(st.text(), st.text(), st.integers(min_value=4, max_value=40))
def test_two_answers_fit_wherever_they_part(was: str, now: str, width: int) -> None:
    shown = [hostile.quoted(text, width) for text in hostile.apart(was, now, width)]
    assert all(hostile.columns(text) <= max(width, len("an empty answer")) for text in shown)


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_cut_text_fits(text: str, width: int) -> None:
    assert hostile.columns(hostile.cut(hostile.one_line(text), width)) <= width


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("시속", 4), ("e\u0301", 1), ("ｗ", 2), ("", 0)])
def test_columns_count_wide_and_combining_characters(text: str, width: int) -> None:
    assert hostile.columns(text) == width


@given(st.text())
def test_markdown_cells_have_no_open_pipe_and_no_html(text: str) -> None:
    for cell in (hostile.markdown(text), hostile.markdown_code(text)):
        assert "\n" not in cell
        assert not re.search(r"(?<!\\)(?:\\\\)*\|", cell) or cell.startswith("`")
    assert "<" not in hostile.markdown(text)


def test_markdown_code_survives_backticks_and_pipes() -> None:
    assert hostile.markdown_code("a`b") == "``a`b``"
    assert hostile.markdown_code("`") == "`` ` ``"
    assert hostile.markdown_code("a|b") == "`a\\|b`"
    assert hostile.markdown_code("\x1b[0m") == "(empty)"


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("around", ["{}", "see {} there", "({}),", "x{}"])
def test_github_finds_nothing_in_text_that_was_made_inert(attack: str, around: str) -> None:
    text = around.format(attack)
    cell = hostile.markdown(text)
    page = GithubPage(f"| {cell} |\n|---|\n")
    assert active_in(page).keys() <= {"mathematics"}
    assert "$" not in cell  # mathematics are looked for in the source
    assert set(page.tags) <= {"table", "thead", "tr", "th", "code"}
    shown = "".join(page.whole).replace("\u200b", "")
    assert shown.split() == hostile.one_line(text).split()


def test_numbers_and_times_are_left_as_they_are() -> None:
    text = "2026-11-29T18:04:11+00:00, 1234567 bytes, 0.01234567 nats, defaced, a: b"
    assert hostile.markdown(text) == text


def test_wrapped_text_keeps_its_words() -> None:
    text = "one two three a-very-long-command-that-cannot-be-broken four"
    broken = hostile.wrapped(text, 12, first=" ", rest="   ")
    assert " ".join(" ".join(broken).split()) == text
    assert all(hostile.columns(line) <= 12 for line in broken if "long" not in line)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 120))
def test_a_fitted_table_fits(widths: list[int], width: int) -> None:
    columns = [Column(heading="x" * w, cells=["y"], keep=position) for position, w in enumerate(widths)]
    for cells in padded(found := fit(columns, width)):
        assert hostile.columns((" " * found.gap).join(cells)) <= width
    assert len(found.kept) + len(found.dropped) == len(columns)


def test_the_least_important_column_goes_first() -> None:
    columns = [Column(heading=name * 10, cells=["1"], keep=keep) for name, keep in (("a", 3), ("b", 1), ("c", 2))]
    assert [column.heading[0] for column in fit(columns, 22).kept] == ["a", "c"]


@pytest.mark.parametrize(("metric", "number", "worded"), [
    ("decode_tok_s", 171.2, "171 tok/s"),
    ("decode_tok_s", 7.617, "7.62 tok/s"),
    ("prefill_tok_s", 99.97, "100 tok/s"),
    ("peak_rss_bytes", 205e6, "205 MB"),
    ("peak_rss_bytes", 999.9e6, "1 GB"),
    ("peak_device_bytes", 4.92e9, "4.92 GB"),
    ("kv_cache_bytes", 1500, "1.5 kB"),
    ("ttft_s", 0.0982, "98.2 ms"),
    ("load_s", 12.04, "12 s"),
    ("score", 0.52, ".52"),
    ("score", 1.0, "1.00"),
    ("output_tokens", 41.25, "41.25"),
    ("score", None, "–"),
])  # fmt: skip
def test_values_are_worded_with_their_unit(metric: str, number: float | None, worded: str) -> None:
    assert wording.value(metric, number) == worded


@pytest.mark.parametrize(("metric", "name"), [
    ("decode_tok_s", "decode tok/s"),
    ("ttft_s", "TTFT"),
    ("cold_ttft_s", "cold TTFT"),
    ("peak_rss_bytes", "peak RSS"),
    ("kv_cache_bytes", "KV cache"),
    ("score", "score"),
])  # fmt: skip
def test_metrics_have_readable_names(metric: str, name: str) -> None:
    assert wording.metric_name(metric) == name


def test_drift_is_worded_never_signed_alone() -> None:
    assert wording.drift(sample.comparison(drift=0.118)) == "11.8 % worse"
    assert wording.drift(sample.comparison(drift=-0.118)) == "11.8 % better"
    assert wording.drift(sample.comparison(drift=0.0)) == "unchanged"
    assert wording.drift(sample.comparison(drift=None)) == "not known"
    assert wording.drift(sample.comparison("score", "math", drift=0.01)) == "1 point worse"
    assert wording.drift(sample.comparison("output_tokens", "math", drift=3.5)) == "3.5 tokens worse"


@pytest.mark.parametrize(("nats", "told"), [(0.09, "0.09"), (-0.562, "−0.56"), (-0.0004, "<0.01"), (0.004, "<0.01")])
def test_a_lead_is_never_a_negative_zero(nats: float, told: str) -> None:
    assert wording.lead(nats) == told


def test_a_log_probability_has_a_minus_and_no_hyphen() -> None:
    assert wording.value("logprob", -0.48874) == "−0.4887"


def test_a_tolerance_names_both_of_its_limits() -> None:
    speed = sample.comparison()
    assert wording.tolerance(Tolerance(relative=0.1, absolute=2.0), speed) == "10 % and 2.00 tok/s"
    assert wording.tolerance(Tolerance(absolute=0.02), sample.comparison("score", "math")) == "2 points"
    assert wording.tolerance(None, speed) == "none set"
    assert speed.aspect is Aspect.SPEED


def test_junit_properties_of_a_case() -> None:
    found = dict(case_properties(sample.trial()))
    assert found["quantdrift.score"] == "1"
    assert found["quantdrift.correct"] == "true"
    assert found["quantdrift.decode_tok_s"] == "10"
    assert "quantdrift.error" not in found


def test_junit_properties_of_a_case_without_a_score_name_its_status() -> None:
    lost = sample.trial(score=sample.score(TrialStatus.ERROR), generation=None, error="killed\x1b[0m")
    found = dict(case_properties(lost))
    assert found["quantdrift.status"] == "error"
    assert found["quantdrift.error"] == "killed"
    assert "quantdrift.score" not in found
    assert "quantdrift.ttft_s" not in found


def test_junit_properties_of_a_gate() -> None:
    judged = sample.finding(Verdict.REGRESSED, "slower", of=sample.comparison(drift=0.118, suspects=("a: 1 → 2", "b")))
    found = dict(gate_properties([judged], judged.scope))
    assert found["quantdrift.verdict"] == "REGRESSED"
    assert found["quantdrift.drift"] == "0.118"
    assert (found["quantdrift.unit"], found["quantdrift.direction"]) == ("tok/s", "higher")
    assert (found["quantdrift.aspect"], found["quantdrift.tolerance_relative"]) == ("speed", "0.1")
    assert (found["quantdrift.drift_low"], found["quantdrift.drift_high"]) == ("-0.012", "0.012")
    assert found["quantdrift.suspects"] == "a: 1 → 2; b"
    assert "quantdrift.p_value" not in found


def test_no_junit_property_of_a_gate_with_several_findings_comes_twice() -> None:
    case = sample.finding(Verdict.NOT_COMPARABLE, "asked otherwise", of=sample.comparison("score", "math/apples"))
    domain = sample.finding(Verdict.PASS, "held", of=sample.comparison("score", "math"))
    found = gate_properties([case, domain], "math")
    names = [name for name, _ in found]
    assert len(names) == len(set(names))
    told = dict(found)
    assert (told["quantdrift.verdict"], told["quantdrift.scope"]) == ("PASS", "math")
    assert told["quantdrift.verdict[math/apples]"] == "NOT_COMPARABLE"
    alone = dict(gate_properties([case], "math"))
    assert (alone["quantdrift.verdict"], alone["quantdrift.scope"]) == ("NOT_COMPARABLE", "math/apples")


def test_an_improvement_is_loud_even_without_a_next_step() -> None:
    gained = sample.finding(Verdict.IMPROVED, "q4_k_m: faster", of=sample.comparison())
    shown = lines(build_report(sample.run(findings=(gained,))), width=160, color=False)
    assert any("the baseline is stale" in line for line in shown)
