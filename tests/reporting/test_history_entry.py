"""What the history keeps of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from support import sample_stories as stories
from support.sample_runs import failed, measurement, result, run, trial

from suite.records import Verdict
from suite.reporting.history_entry import enter_run
from suite.store.history import append_history, read_history


def test_values_are_named_by_variant_metric_and_scope() -> None:
    entry = enter_run(run([result("q4_k_m")]))
    assert entry.values["q4_k_m/decode_tok_s/short"] == 173.1
    assert entry.values["q4_k_m/score/math"] == 0.31
    assert entry.values["q4_k_m/peak_rss_bytes/all"] == 165e6


def test_the_run_is_told_as_it_was() -> None:
    made = run()
    entry = enter_run(made, accepted=True, commit="0123456789ab")
    assert (entry.run, entry.created, entry.model) == (made.id, made.created, made.model)
    assert (entry.machine, entry.suite_version) == (made.environment.machine, made.suite_version)
    assert (entry.accepted, entry.commit) == (True, "0123456789ab")


def test_each_variant_has_its_worst_verdict() -> None:
    verdicts = enter_run(stories.slower()).verdicts
    assert verdicts["q4_k_m"] == "REGRESSED"
    assert verdicts["f16"] == "PASS"


def test_what_was_not_measured_cleanly_is_left_out() -> None:
    measured = (
        measurement("decode_tok_s", "short", 120.0, status="contended", reason="a neighbour"),
        measurement("peak_device_bytes", "all", None, status="not_measured"),
        measurement("ttft_s", "short", 0.1),
    )
    assert list(enter_run(run([result("q4_k_m", measurements=measured)])).values) == ["q4_k_m/ttft_s/short"]


def test_what_failed_or_was_something_else_has_no_values() -> None:
    gone = failed("q4_k_m", Verdict.INVALID, "other token ids")
    with_values = replace(gone, measurements=result("q4_k_m").measurements)
    entry = enter_run(run([result("f16"), with_values]))
    assert {key.split("/")[0] for key in entry.values} == {"f16"}
    assert entry.verdicts["q4_k_m"] == "INVALID"


def test_versions_that_all_variants_share_are_told_once_and_others_apart() -> None:
    one = result("q8_0", suspects={"llama-cpp-python": "0.3.36", "sha256 of *.gguf": "91c0" * 16, "flags": "AVX " * 20})
    other = result(
        "q4_k_m", suspects={"llama-cpp-python": "0.3.36", "sha256 of *.gguf": "5be2" * 16, "flags": "AVX " * 20}
    )
    versions = enter_run(run([one, other])).versions
    assert versions["llama-cpp-python"] == "0.3.36"
    assert versions["q8_0: sha256 of *.gguf"] == "91c091c091c0"
    assert versions["q4_k_m: sha256 of *.gguf"] == "5be25be25be2"
    assert len(versions["flags"]) == 12


def test_other_cases_and_another_question_are_other_versions() -> None:
    before = enter_run(run([result("q4_k_m")], trials=(trial(),))).versions
    assert enter_run(run([result("q4_k_m")], trials=(trial(case_version=2),))).versions["cases"] != before["cases"]
    asked = result("q4_k_m", identity={"variant": "q4_k_m", "prompt_format": "completion"})
    assert enter_run(run([asked])).versions["question"] != before["question"]
    assert enter_run(run([result("q4_k_m")], trials=(trial(),))).versions == before


def test_a_part_of_the_cases_is_no_other_cases() -> None:
    made = run([result("q4_k_m")], trials=(trial(),))
    entry = enter_run(replace(made, settings={**made.settings, "cases": "1 of 77"}))
    assert (entry.cases, "cases" in entry.versions) == ("1 of 77", False)
    assert (enter_run(made).cases, "cases" in enter_run(made).versions) == ("", True)


def test_the_entry_of_a_whole_run_is_stored_and_read_again(tmp_path: Path) -> None:
    entry = enter_run(stories.healthy())
    append_history(tmp_path / "h.jsonl", entry)
    (read,) = read_history(tmp_path / "h.jsonl")
    assert read.values.keys() == entry.values.keys()
    assert (read.versions, read.verdicts) == (entry.versions, entry.verdicts)
