"""From no baseline to an accepted one, to drift, to the drift accepted: what a person types and sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.foreign_project import WRONG, ForeignProject, junit_properties, verdicts

ANSWERS = "--matrix-only=answers"


@pytest.fixture
def accepted(project: ForeignProject) -> ForeignProject:
    """A project with one variant whose answers and speed are accepted."""
    project.write_matrix({"q4": {}})
    result = project.accept()
    assert result.ret == 0, result.outlines
    return project


def test_life_of_a_speed_baseline(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    first = project.run()
    assert first.ret == 0
    assert set(verdicts(project.read_run(), "q4").values()) == {"UNBASELINED"}
    assert not project.baselines.exists()
    first.stdout.fnmatch_lines(["*--matrix-update=new*"])

    assert project.accept("new").ret == 0
    files = project.baseline_files()
    assert [Path(name).parts[2] for name in files] == ["quality", "speed"]
    assert all("because the test says so" in text for text in files.values())

    assert project.run().ret == 0
    held = verdicts(project.read_run(), "q4")
    assert held["decode_tok_s/short"] == held["score/math"] == held["kv_cache_bytes/all"] == "PASS"

    project.write_script("q4", decode_tok_s=70.0)  # the same declaration serves a file that is 30 % slower
    slow = project.run("--junitxml=junit.xml")
    assert slow.ret == 1
    now = verdicts(project.read_run(), "q4")
    assert now["decode_tok_s/short"] == "REGRESSED"
    assert now["score/math"] == "PASS"
    slow.stdout.fnmatch_lines(
        ["*REGRESSED: q4: decode rate (short) fell by *", "*tolerance*", "*--matrix-update=changed*"]
    )
    properties = junit_properties(project.root / "junit.xml", "test_speed[q4-short-decode_tok_s]")
    assert float(properties["quantdrift.drift"]) == pytest.approx(0.3, abs=0.03)

    assert project.accept("changed").ret == 0
    changed = project.baseline_files()
    assert {name for name in files if files[name] != changed[name]} == {name for name in files if "/speed/" in name}
    assert project.run().ret == 0


def test_new_does_not_excuse_what_regressed(accepted: ForeignProject) -> None:
    before = accepted.baseline_files()
    accepted.write_script("q4", decode_tok_s=70.0)
    result = accepted.accept("new")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] >= 1
    result.stdout.fnmatch_lines(["*FAILED matrix.toml::test_speed*q4-short-decode_tok_s*REGRESSED*"])
    result.stdout.no_fnmatch_line("*being accepted*")
    assert accepted.baseline_files() == before


def test_new_with_nothing_new_is_no_failure(accepted: ForeignProject) -> None:
    before = accepted.baseline_files()
    result = accepted.accept("new")
    assert result.ret == 0
    assert accepted.baseline_files() == before


def test_worse_answers_regress_and_name_the_flips(accepted: ForeignProject) -> None:
    accepted.write_script("q4", replies=WRONG)
    result = accepted.run(ANSWERS)
    assert result.ret == 1
    now = verdicts(accepted.read_run(), "q4")
    assert now["score/all"] == "REGRESSED"
    journal = (accepted.root / ".quantdrift" / "latest" / "journal.jsonl").read_text()
    assert "q4@control" in journal  # asked once more whether they depend on the number of threads
    assert {trial["variant"] for trial in accepted.read_run()["trials"]} == {"q4"}
    assert now["score/math"] == "INCONCLUSIVE"  # its share of the 5 % is small: six losses are p = 1.6 %
    result.stdout.fnmatch_lines(["*math/apples is now wrong*", "*was*18*", "*now*99*"])


def test_a_wrong_answer_alone_fails_nothing(project: ForeignProject) -> None:
    project.write_script("q4", replies=WRONG)
    project.write_matrix({"q4": {}})
    result = project.run(ANSWERS)
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == 7


def test_an_unchanged_refresh_is_an_empty_diff(accepted: ForeignProject) -> None:
    before = accepted.baseline_files()
    stamps = {file: file.stat().st_mtime_ns for file in accepted.baselines.rglob("*.json")}
    result = accepted.accept("changed")
    assert result.ret == 0
    assert accepted.baseline_files() == before
    assert {file: file.stat().st_mtime_ns for file in accepted.baselines.rglob("*.json")} == stamps
    result.stdout.fnmatch_lines(["*nothing to accept*"])


def test_a_changed_case_is_not_comparable_and_is_named(accepted: ForeignProject) -> None:
    accepted.write_cases(versions={"figs": 2, "sky": 2})
    result = accepted.run(ANSWERS, "-rs")
    assert result.ret == 0
    now = verdicts(accepted.read_run(), "q4")
    assert now["score/math/figs"] == "NOT_COMPARABLE"
    assert now["score/reasoning"] == "NOT_COMPARABLE"
    result.stdout.fnmatch_lines(["*NOT_COMPARABLE*math/figs*version: 1 → 2*"])
    strict = accepted.run(ANSWERS, "--matrix-require-baselines")
    assert strict.ret == 1


def test_a_changed_option_of_a_scorer_is_not_comparable_and_is_named(project: ForeignProject) -> None:
    file = project.root / "cases" / "reasoning" / "own.toml"
    file.write_text(file.read_text().replace('scorer = "exact"', 'scorer = { name = "fuzzy", threshold = 0.8 }'))
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "--matrix-update=new", "--matrix-reason=first").ret == 0
    file.write_text(file.read_text().replace("0.8", "0.5"))
    result = project.run(ANSWERS, "-rs")
    assert result.ret == 0
    now = verdicts(project.read_run(), "q4")
    assert now["score/reasoning/sky"] == now["score/reasoning"] == "NOT_COMPARABLE"
    assert now["score/math"] == "PASS"
    told = "scorer: fuzzy@1(threshold=0.8) → fuzzy@1(threshold=0.5)"
    result.stdout.fnmatch_lines([f"*NOT_COMPARABLE: q4: score (reasoning) *{told}*"])
    (case,) = (found for found in project.read_run()["findings"] if found["scope"] == "reasoning/sky")
    assert case["comparison"]["reason"] == told


def test_the_size_of_the_cache_holds_without_any_tolerance(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}}, more="policy.kv_cache_bytes = { relative = 0.0 }")
    assert project.accept().ret == 0
    before = project.baseline_files()
    assert project.accept("changed").ret == 0
    assert verdicts(project.read_run(), "q4")["kv_cache_bytes/all"] == "PASS"
    assert project.baseline_files() == before


def test_the_last_line_says_what_the_exit_status_does(accepted: ForeignProject) -> None:
    accepted.write_script("q4", decode_tok_s=70.0)
    taken = accepted.accept("changed")
    assert taken.ret == 0, taken.outlines
    taken.stdout.fnmatch_lines(["*Nothing failed*", "*being accepted: q4 REGRESSED.*"])


def test_a_strict_run_that_fails_does_not_say_that_nothing_did(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    strict = project.run(ANSWERS, "--matrix-strict")
    assert strict.ret == 1
    strict.stdout.fnmatch_lines(["*gates failed: q4 UNBASELINED.*"])
    strict.stdout.no_fnmatch_line("*Nothing failed*")


def test_missing_baselines_fail_only_where_they_are_required(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "-k", "test_quality and math").ret == 0
    required = project.run(ANSWERS, "-k", "test_quality and math", "--matrix-require-baselines")
    assert required.ret == 1
    required.stdout.fnmatch_lines(["*UNBASELINED*", "*--matrix-update=new*"])
    assert project.run(ANSWERS, "-k", "test_quality and math", "--matrix-strict").ret == 1


def test_a_partial_update_is_refused(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    result = project.run(ANSWERS, "-k", "math", "--matrix-update=new", "--matrix-reason=why not")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*refused q4 (quality): the run is partial*reasoning/sky*"])
    assert not project.baselines.exists()


def test_update_of_answers_only_writes_quality_only(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    result = project.run(ANSWERS, "--matrix-update=new", "--matrix-reason=answers first")
    assert result.ret == 0, result.outlines
    assert list(project.baseline_files()) == ["baselines/toy/quality/q4.json"]
    assert json.loads(project.baseline_files()["baselines/toy/quality/q4.json"])


@pytest.mark.parametrize(("arguments", "message"), [
    (["--matrix-update=new"], "--matrix-update needs a reason"),
    (["--matrix-update=new", "--matrix-reason= "], "--matrix-update needs a reason"),
    (["--matrix-reason=why"], "add --matrix-update"),
    (["--matrix-variants=q4_k"], "has no variant 'q4_k'; did you mean 'q4_k_m'?"),
    (["--matrix-file=nowhere.toml"], "nowhere.toml: there is no such matrix file"),
    (["--matrix-cases=nowhere"], "nowhere: no such directory"),
    (["--matrix-add=./nowhere.gguf"], "does not exist"),
])  # fmt: skip
def test_what_cannot_be_meant_is_status_2_and_writes_nothing(
    project: ForeignProject, arguments: list[str], message: str
) -> None:
    project.write_matrix({"q4_k_m": {}})
    before = sorted(project.root.rglob("*"))
    status, told = project.refuse(*arguments)
    assert status == 2
    assert message in told
    assert sorted(project.root.rglob("*")) == before


def test_ci_never_writes_baselines(project: ForeignProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_matrix({"q4": {}})
    monkeypatch.setenv("CI", "true")
    status, told = project.refuse("--matrix-update=new", "--matrix-reason=because")
    assert (status, "never written in CI" in told) == (2, True)


def test_an_unknown_key_names_file_key_and_the_nearest(project: ForeignProject) -> None:
    project.write_matrix({"q4": {"options": {"decode_tok": 3.0}}})
    result = project.run_apart()
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        ["*matrix.toml: variants.q4.options: unknown key 'decode_tok'; did you mean 'decode_tok_s'?*"]
    )
    assert not (project.root / ".quantdrift").exists()


def test_ini_values_are_the_twins_of_options(project: ForeignProject) -> None:
    project.write_matrix({"ref": {}, "q4": {}})
    project.pytester.makeini("[pytest]\nmatrix_variants = q4\nmatrix_only = answers\nmatrix_baselines = elsewhere")
    assert project.accept().ret == 0
    assert {trial["variant"] for trial in project.read_run()["trials"]} == {"q4"}
    assert [file.name for file in (project.root / "elsewhere").rglob("q4.json")] == ["q4.json"]
    project.pytester.makeini("[pytest]\nmatrix_only = answer")
    status, told = project.refuse()
    assert (status, "matrix_only = 'answer' is none of fidelity, answers, speed" in told) == (2, True)


def test_a_baseline_that_was_edited_by_hand_is_told(accepted: ForeignProject) -> None:
    (file,) = accepted.root.glob("baselines/*/quality/q4.json")
    file.write_text(file.read_text().replace('"score": 1.0', '"score": 0.5', 1))
    told = accepted.run(ANSWERS).stdout.str()
    assert f"edited by hand since it was accepted: {file}" in told


def test_options_without_model_matrix_are_refused(accepted: ForeignProject) -> None:
    result = accepted.pytester.runpytest_subprocess("--matrix-update=new", "--matrix-reason=x")
    assert result.ret == 2
    assert (
        "--matrix-update, --matrix-reason does nothing without --model-matrix"
        in result.stderr.str() + result.stdout.str()
    )
