"""What a person sees of the items: ids, selection, order, JUnit properties."""

from __future__ import annotations

import pytest
from support.foreign_project import ForeignProject, junit_properties

ANSWERS = "--matrix-only=answers"


def test_ids_are_readable_and_in_the_order_in_which_they_run(project: ForeignProject) -> None:
    project.write_matrix({"ref": {"reference": True}, "q4": {}})
    result = project.run("--collect-only", "-q")
    assert result.ret == 0
    ids = [line for line in result.outlines if "::" in line]
    assert ids[0] == "matrix.toml::test_case[ref-math/apples]"
    assert "matrix.toml::test_quality[q4-math-score]" in ids
    assert "matrix.toml::test_speed[q4-short-decode_tok_s]" in ids
    assert "matrix.toml::test_memory[q4-peak_rss_bytes]" in ids
    answers_of_ref = [index for index, item in enumerate(ids) if "[ref-" in item and "test_case" in item]
    answers_of_q4 = [index for index, item in enumerate(ids) if "[q4-" in item and "test_case" in item]
    timed = [index for index, item in enumerate(ids) if "test_speed" in item or "test_memory" in item]
    assert max(answers_of_ref) < min(answers_of_q4)
    assert max(answers_of_q4) < min(timed)
    assert not (project.root / ".quantdrift").exists()


def test_all_is_measured_before_anything_is_judged(project: ForeignProject) -> None:
    project.write_matrix({"ref": {"reference": True}, "q4": {}})
    project.pytester.makepyfile(test_own="def test_own(matrix_variant): matrix_variant.record(score=1.0)")
    ids = [line for line in project.run("--collect-only", "-q").outlines if "::" in line]
    words = [next(w for w in ("case", "own", "quality", "speed", "memory") if f"test_{w}[" in item) for item in ids]
    kinds = [{"memory": "speed"}.get(word, word) for word in words]
    assert list(dict.fromkeys(kinds)) == ["case", "own", "quality", "speed"]
    assert kinds == sorted(kinds, key=["case", "own", "quality", "speed"].index)


def test_keyword_selects_variant_and_domain(project: ForeignProject) -> None:
    project.write_matrix({"ref": {}, "q4": {}})
    result = project.run("-k", "q4 and math", "-v")
    assert result.ret == 0
    passed = [line for line in result.outlines if "PASSED" in line]
    assert len(passed) == 6
    assert all("test_case[q4-math/" in line for line in passed)
    run = project.read_run()
    assert {trial["variant"] for trial in run["trials"]} == {"q4"}
    assert run["speed_samples"] == []


def test_markers_tags_and_single_ids_select(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "-m", "matrix_quality", "--collect-only", "-q").ret == 0
    result = project.run("matrix.toml::test_case[q4-math/figs]")
    result.assert_outcomes(passed=1)
    assert [trial["case"] for trial in project.read_run()["trials"]] == ["math/figs"]


def test_nothing_selected_is_status_5_and_writes_nothing(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run("-k", "no_such_thing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (project.root / ".quantdrift").exists()


def test_other_tests_are_deselected(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    project.pytester.makepyfile(test_other="def test_other():\n    raise AssertionError('it ran')")
    result = project.run(ANSWERS, "-k", "apples or other")
    result.assert_outcomes(passed=1, deselected=result.parseoutcomes()["deselected"])
    assert result.ret == 0


def test_first_failure_stops_and_last_failed_runs_it_again(project: ForeignProject) -> None:
    project.write_matrix({"q4": {"options": {"script": "q4.json", "fault": "raise", "fault_at": 2}}})
    result = project.run(ANSWERS, "-x")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*q4 could not answer math/figs: *planted failure while generating*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    again = project.run(ANSWERS, "--lf", "-v")
    ran = [line for line in again.outlines if "test_case[" in line and "%]" in line]
    assert len(ran) == 1
    assert "q4-math/figs" in ran[0]
    assert again.ret == 0


def test_junit_carries_the_numbers(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run("--junitxml=junit.xml").ret == 0
    case = junit_properties(project.root / "junit.xml", "test_case[q4-math/apples]")
    assert case["quantdrift.variant"] == "q4"
    assert case["quantdrift.correct"] == "true"
    assert case["quantdrift.answer"] == "18"
    assert case["quantdrift.evaluated_tokens"] == case["quantdrift.prompt_tokens"]
    gate = junit_properties(project.root / "junit.xml", "test_speed[q4-short-decode_tok_s]")
    assert gate["quantdrift.verdict"] == "UNBASELINED"
    assert float(gate["quantdrift.observed"]) == pytest.approx(100, rel=0.05)


def test_every_timed_sample_evaluated_its_whole_prompt(project: ForeignProject) -> None:
    project.write_matrix({"ref": {"reference": True}, "q4": {}})
    assert project.run("-k", "test_speed").ret == 0
    samples = project.read_run()["speed_samples"]
    assert len(samples) == 3 * 2 * 2
    assert all(sample["evaluated_tokens"] == sample["prompt_tokens"] == 24 for sample in samples)
    assert {sample["status"] for sample in samples} == {"clean"}
    order = [(s["launch"], s["round"], s["variant"]) for s in samples]
    assert order == [
        (launch, turn, name)
        for launch in (0, 1, 2)
        for turn, names in enumerate((("ref", "q4"), ("q4", "ref")))
        for name in names
    ]


@pytest.mark.parametrize("where", [".", "sub"])
def test_the_matrix_is_found_from_any_directory_of_the_project(project: ForeignProject, where: str) -> None:
    project.write_matrix({"q4": {}})
    project.pytester.makeini("[pytest]")
    (project.root / "sub").mkdir()
    with project.pytester._monkeypatch.context() as patch:
        patch.chdir(project.root / where)
        result = project.run(ANSWERS, "--collect-only", "-q")
    assert any("test_case[q4-math/apples]" in line for line in result.outlines)
