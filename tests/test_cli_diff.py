"""``quantdrift diff``, in a real git repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import sample_diffs as samples
from support import sample_runs
from support.git_project import commit, git
from support.laid_out import lay_out

from suite.cli import main
from suite.records import QualityBaseline, SpeedBaseline
from suite.store.baselines import BaselineStore

ROOT = Path(__file__).parent.parent
MATRIX = (ROOT / "matrix.toml").read_text(encoding="utf-8")
WORSE = replace(
    samples.answers(wrong=(2, 3, 7, 9, 19, 22, 25, 27, 33, 36), kld=1.26 * samples.KLD, suspects=samples.OTHER_WEIGHTS),
    provenance=samples.NOW,
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with accepted baselines of three variants, as the working directory."""
    for name in samples.VARIANTS:
        write(tmp_path, samples.answers(name), samples.times(name))
    BaselineStore(tmp_path / "baselines").write_noise(samples.noise())
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "accepted")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def write(root: Path, *baselines: QualityBaseline | SpeedBaseline) -> None:
    for baseline in baselines:
        BaselineStore(root / "baselines").write(baseline)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["diff", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["diff", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_nothing_changed_is_said_and_shown_as_an_empty_diff(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys)
    assert out.startswith("Baselines: nothing changed (6 baselines, 21 figures)\n")
    assert "→ the working tree" in out
    assert "verdict" not in out


def test_an_update_in_the_working_tree_is_held_against_the_last_commit(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, WORSE)
    out = shown(capsys)
    assert out.startswith("Baselines: 2 losses")
    assert "q4_k_m got worse in quality (mean KLD +26 %, score −15 points, 6 answers flipped to wrong)." in out
    assert '"re-quantized with imatrix"' in out


def test_refreshing_without_drift_is_an_empty_diff(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in samples.VARIANTS:
        write(project, samples.answers(name), samples.times(name))
    assert "nothing changed" in shown(capsys)


def test_two_revisions_are_compared_whatever_the_working_tree_holds(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, WORSE)
    commit(project, "worse")
    shutil.rmtree(project / "baselines")
    (project / "matrix.toml").unlink()
    document = json.loads(shown(capsys, "HEAD~1", "main", "--format", "json"))
    assert document["base"]["label"].startswith("HEAD~1 (")
    assert document["head"]["label"].startswith("main (")
    assert document["headline"].startswith("Baselines: 2 losses")
    assert document["tolerances"]["compared"] is True


def test_directories_of_baselines_or_of_projects_are_compared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(project / "baselines", project / "older")
    write(project, WORSE)
    assert "2 losses" in shown(capsys, "older", ".")
    assert "2 losses" in shown(capsys, "older", "baselines")
    assert "2 gains" in shown(capsys, ".", "older")


def test_a_run_is_held_against_what_was_accepted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = sample_runs.run()
    lay_out(project, run)
    for given in (run.id, f".quantdrift/runs/{run.id}", f".quantdrift/runs/{run.id}/run.json", "latest"):
        document = json.loads(shown(capsys, "HEAD", given, "--format", "json"))
        assert document["head"] == {"label": f"run {run.id}", "kind": "run"}
        assert document["questions"] == []


def test_a_loosened_tolerance_is_in_the_first_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "matrix.toml").write_text(MATRIX.replace("duet = 0.03", "duet = 0.30"), encoding="utf-8")
    out = shown(capsys)
    assert out.splitlines()[0].startswith("Baselines: 1 setting loosened")
    assert "policy.itl_s: 15 %, 3 % side by side (block) → 15 %, 30 % side by side (block)" in out


def test_an_edit_by_hand_is_in_the_first_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "baselines" / samples.MODEL / "quality" / "q8_0.json"
    file.write_text(
        file.read_text(encoding="utf-8").replace('"correct": false', '"correct": true', 1), encoding="utf-8"
    )
    out = shown(capsys)
    assert "edited by hand" in out.splitlines()[0]
    assert "the baseline of q8_0's answers was edited by hand" in out


def test_a_file_that_cannot_be_parsed_is_named_and_the_rest_is_compared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "baselines" / samples.MODEL / "quality" / "q8_0.json").write_text("{", encoding="utf-8")
    write(project, WORSE)
    out = shown(capsys)
    assert "1 file unreadable" in out.splitlines()[0]
    assert f"baselines/{samples.MODEL}/quality/q8_0.json: not JSON" in out
    assert "q4_k_m got worse in quality" in out


def test_first_baselines_are_all_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(project, "rm", "-r", "-q", "baselines")
    commit(project, "none")
    for name in samples.VARIANTS:
        write(project, samples.answers(name), samples.times(name))
    assert shown(capsys).startswith("Baselines: 3 variants new")


def test_a_project_whose_configuration_names_other_places_is_read_there(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(project, "mv", "baselines", "accepted")
    (project / "pytest.ini").write_text("[pytest]\nmatrix_baselines = accepted\n", encoding="utf-8")
    commit(project, "moved")
    assert "nothing changed" in shown(capsys)
    assert "nothing changed" in shown(capsys, "--matrix-baselines", "accepted")


@pytest.mark.parametrize(("arguments", "said"), [
    (["nowhere"], "git knows no revision 'nowhere', and there is no directory or run of that name"),
    (["HEAD", "HEAD~7"], "git knows no revision 'HEAD~7'"),
    (["empty"], "empty: holds no baselines, neither as MODEL/quality/VARIANT.json nor below baselines/"),
    (["main"], "'main' is both a git revision and a file or run here; write ./main or refs/heads/main"),
    (["matrix.toml"], "matrix.toml: not JSON"),
    (["--matrix-baselines", "none"], "has baselines in none; accept some with"),
])  # fmt: skip
def test_what_cannot_be_compared_is_a_usage_error_that_says_what_to_do(
    project: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "empty").mkdir()
    shutil.copytree(project / "baselines", project / "main")
    assert said in refused(capsys, *arguments)


def test_a_name_that_is_two_things_is_written_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(project / "baselines", project / "main")
    assert "nothing changed" in shown(capsys, "./main")
    assert "nothing changed" in shown(capsys, "refs/heads/main")


def test_outside_of_a_repository_it_says_what_else_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "name two directories or run files instead: quantdrift diff OLD NEW" in refused(capsys)


def test_a_repository_without_a_commit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    assert "git knows no revision 'HEAD'" in refused(capsys)


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_nothing_heavy_is_imported_for_what_is_only_read(project: Path, form: str) -> None:
    write(project, samples.answers("q5_k_m", provenance=samples.NOW))
    (project / "baselines" / samples.MODEL / "quality" / "q8_0.json").unlink()
    heavy = "{'torch', 'scipy', 'numpy', 'transformers', 'llama_cpp', 'pytest', 'huggingface_hub', 'psutil'}"
    code = (
        f"import sys; from suite.cli import main; main(['diff', '--format', {form!r}]); "
        f"sys.stderr.write(repr(sorted({heavy} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )  # fmt: skip
    assert done.stderr == "[]"
    assert "1 variant new" in done.stdout
