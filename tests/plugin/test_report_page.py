"""``report.html`` beside ``report.md``: a convenience that a run is never worse for."""

from __future__ import annotations

import pytest
from support.foreign_project import ForeignProject

from suite.reporting.history_entry import enter_run
from suite.store.history import append_history
from suite.store.runs import read_run

ANSWERS = "--matrix-only=answers"


def page_of(project: ForeignProject) -> str:
    return (project.root / ".quantdrift" / "latest" / "report.html").read_text()


def test_a_run_writes_its_page_beside_its_report(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    result = project.run(ANSWERS)
    assert result.ret == 0
    (directory,) = project.run_directories()
    shown = f".quantdrift/runs/{directory.name}"
    result.stdout.fnmatch_lines(
        [f" run     {shown}/run.json", f" report  {shown}/report.md", f" report  {shown}/report.html"]
    )
    page = page_of(project)
    assert "quantdrift · toy" in page
    assert "No history was given" in page


def test_a_history_becomes_the_trend_of_the_page_and_its_faults_are_told(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    history = project.root / ".quantdrift" / "history.jsonl"
    for _ in range(2):
        assert project.run(ANSWERS).ret == 0
        append_history(history, enter_run(read_run(project.root / ".quantdrift" / "latest" / "run.json")))
    with history.open("a") as lines:
        lines.write("{\n")
    result = project.run(ANSWERS)
    assert result.ret == 0
    result.stdout.fnmatch_lines([" warning *history.jsonl, line 3*"])
    assert 'id="trend"' in page_of(project)


def test_a_page_that_cannot_be_made_loses_nothing(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS).ret == 0
    (directory,) = project.run_directories()
    project.pytester.makepyfile(jinja2="raise ValueError('a module of somebody else')")
    result = project.run_apart(ANSWERS, "--matrix-resume")
    assert result.ret == 0
    shown = f".quantdrift/runs/{directory.name}"
    result.stdout.fnmatch_lines(
        [f" warning no report.html: a module of somebody else; try again:  quantdrift report {shown} --format html "
         f"--output {shown}/report.html", f" report  {shown}/report.md"]
    )  # fmt: skip
    result.stdout.no_fnmatch_line("* report  *report.html")
    assert project.read_run()["id"] == directory.name
    assert not (directory / "report.html").exists()  # that of the earlier look tells other verdicts


def test_a_page_that_cannot_be_written_is_a_warning(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS).ret == 0
    (directory,) = project.run_directories()
    (directory / "report.html").unlink()
    (directory / "report.html").mkdir()
    result = project.run(ANSWERS, "--matrix-resume")
    assert result.ret == 0
    result.stdout.fnmatch_lines([" warning no report.html: *; try again: *"])


def test_what_draws_is_loaded_at_the_end_and_its_warnings_are_nobodys_errors(project: ForeignProject) -> None:
    project.pytester.makepyfile(
        test_own="""
        import sys

        def test_light(matrix_variant):
            assert {"matplotlib", "jinja2"}.isdisjoint(sys.modules)
            matrix_variant.record(score=1.0)
        """
    )
    project.write_matrix({"q4": {}})
    result = project.run_apart("-W", "error", "-p", "no:hypothesispytest", "test_own.py")
    assert result.ret == pytest.ExitCode.OK, result.outlines
    assert "quantdrift · toy" in page_of(project)


def test_a_new_run_in_a_directory_takes_the_page_of_the_old_one_away(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    assert project.run(ANSWERS, "--matrix-report=out").ret == 0
    assert (project.root / "out" / "report.html").exists()
    project.write_matrix({"bad": {"options": {"fault": "kill"}}})
    assert project.run(ANSWERS, "--matrix-report=out").ret == 3
    assert not {"report.html", "report.md", "run.json"} & {file.name for file in (project.root / "out").iterdir()}
