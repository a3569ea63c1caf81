"""The doctor at the end of a run, of faults that a scripted backend tells of itself."""

from __future__ import annotations

from support.foreign_project import ForeignProject

AILING = {"eval mode": "no", "n_threads": "999"}


def test_what_a_backend_tells_is_found_and_fails_nothing(project: ForeignProject) -> None:
    project.write_script("bad", facts=AILING, seen={"inference mode": "no"})
    project.write_matrix({"bad": {}, "good": {}})
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines([
        "*Doctor: 2 findings, none of which fails the run*",
        "*eval and inference mode of bad: modules are in training mode*",
        "*threads of bad: 999 threads on * physical core*",
    ])  # fmt: skip
    run = project.read_run()
    launch = run["variants"][0]["launches"][0]
    assert launch["seen"]["inference mode"] == "no"
    assert launch["facts"]["eval mode"] == "no"
    assert "thread variables" in run["environment"]["readings"]
    report = (project.root / ".quantdrift" / "latest" / "report.md").read_text()
    assert "## Doctor" in report
    assert "- threads of `bad`: 999 threads on" in report


def test_a_run_without_timing_is_looked_at_by_what_was_told_on_loading(project: ForeignProject) -> None:
    project.write_script("bad", facts=AILING)
    project.write_matrix({"bad": {}})
    result = project.run("--matrix-only=answers")
    result.stdout.fnmatch_lines(["*eval and inference mode of bad: modules are in training mode*"])


def test_a_fact_that_backends_began_to_tell_is_no_change_since_the_baseline(project: ForeignProject) -> None:
    project.write_matrix({"q4": {}})
    project.accept()
    project.write_script("q4", decode_tok_s=50.0, facts={"flash attention": "off", "fake": "2"})
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*changed since the baseline: fake: 1 → 2"])
    result.stdout.no_fnmatch_line("*flash attention: (absent)*")
