"""``quantdrift history``, on real files."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import sample_diffs, sample_history
from support import sample_stories as stories
from support.laid_out import lay_out

from suite.cli import main
from suite.store.baselines import BaselineStore
from suite.store.history import append_history, read_history

HISTORY = Path(".quantdrift/history.jsonl")
RUN = "2026-11-29T18-04-11-7c1f"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finished run, as the working directory."""
    lay_out(tmp_path, stories.healthy())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def nights(project: Path) -> Path:
    """The same with a history of nights."""
    for entry in (*sample_history.slower(), *sample_history.elsewhere()):
        append_history(project / HISTORY, entry)
    return project / HISTORY


@pytest.mark.parametrize("given", ["latest", RUN, ".quantdrift/latest", ".quantdrift/latest/run.json"])
@pytest.mark.usefixtures("project")
def test_a_run_is_appended_once(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--append", given, "--commit", "0123abcd"]) == 0
    assert f"run {RUN} was appended" in capsys.readouterr().err
    (entry,) = read_history(HISTORY)
    assert (entry.run, entry.commit, entry.accepted) == (RUN, "0123abcd", False)
    assert main(["history", "--append", given]) == 0
    assert "holds run" in capsys.readouterr().err
    assert len(read_history(HISTORY)) == 1


@pytest.mark.usefixtures("project")
def test_a_run_goes_into_the_file_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "kept/nights.jsonl", "--append", "latest"]) == 0
    assert main(["history", "kept/nights.jsonl"]) == 0
    assert "1 run, 2026-11-29" in capsys.readouterr().out
    assert not HISTORY.exists()


@pytest.mark.parametrize("from_it", [True, False])
def test_a_run_counts_as_accepted_when_a_baseline_is_from_it(
    from_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replace(stories.healthy(), settings={"update": "changed"})
    lay_out(tmp_path, run)
    baseline = sample_diffs.answers("q4_k_m")
    provenance = replace(baseline.provenance, run=run.id if from_it else "another")
    BaselineStore(tmp_path / "baselines").write(replace(baseline, provenance=provenance))
    monkeypatch.chdir(tmp_path)
    assert main(["history", "--append", "latest"]) == 0
    (entry,) = read_history(HISTORY)
    assert entry.accepted is from_it
    assert ("none of those in" in capsys.readouterr().err) is not from_it


@pytest.mark.usefixtures("nights")
def test_trends_of_each_machine_are_shown_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    out = capsys.readouterr().out
    assert f"{sample_history.MACHINE} · 34 runs, 2026-09-01 … 2026-10-04" in out
    assert f"{sample_history.OTHER_MACHINE} · 3 runs" in out
    assert f"A level shifted at run {sample_history.entry(sample_history.SLOWER_AT).run}" in out


@pytest.mark.usefixtures("nights")
def test_what_is_selected_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--machine", sample_history.MACHINE, "--variant", "f16", "--metric", "score", "--last", "7"]
    assert main(["history", *arguments]) == 0
    out = capsys.readouterr().out
    assert "the last 7 runs of 34" in out
    assert "f16" in out
    assert "q4_k_m" not in out
    assert "decode" not in out
    assert sample_history.OTHER_MACHINE not in out


@pytest.mark.usefixtures("nights")
def test_for_programs_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--format", "json", "--machine", sample_history.MACHINE]) == 0
    (trend,) = json.loads(capsys.readouterr().out)["trends"]
    shifted = {series["metric"] for series in trend["series"] if series["shifts"]}
    assert shifted == {"decode_tok_s", "mean_kld"}


def test_looking_changes_nothing(nights: Path) -> None:
    before = nights.read_bytes()
    assert main(["history"]) == 0
    assert nights.read_bytes() == before
    assert not Path("baselines").exists()


def test_a_damaged_line_is_named_beside_what_can_be_read(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = nights.read_bytes()
    nights.write_bytes(whole[:-25])
    assert main(["history"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "NOT READ: .quantdrift/history.jsonl, line 37:" in shown
    assert "not JSON" in shown
    assert "34 runs" in shown
    assert main(["history", "--append", "latest"]) == 0
    assert "NOT READ: .quantdrift/history.jsonl, line 37:" in capsys.readouterr().err
    assert RUN in nights.read_text(encoding="utf-8").splitlines()[-1]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is no history yet; begin one with: quantdrift history --append latest"),
        (["--last", "0"], "--last: must be 1 or more"),
        (["--commit", "0123"], "--commit: belongs to a run that is appended"),
        (["--append", "nowhere"], "there is no run here"),
    ],
)
def test_a_wrong_call_is_a_usage_error(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("nights")
def test_a_name_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--variant", "q4_k"]) == 2
    assert "did you mean 'q4_k_m'?" in capsys.readouterr().err


@pytest.mark.usefixtures("nights")
def test_as_a_page_it_is_one_file_with_every_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--format", "html", "--output", "history.html"]) == 0
    assert capsys.readouterr().out == ""
    page = Path("history.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert sample_history.MACHINE in page
    assert sample_history.OTHER_MACHINE in page
    assert main(["history", "--format", "html", "--machine", sample_history.OTHER_MACHINE]) == 0
    assert sample_history.MACHINE not in capsys.readouterr().out


def test_a_page_says_which_lines_cannot_be_read(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nights.write_text(nights.read_text(encoding="utf-8") + '{"schema":1,"kind":"hist\n', encoding="utf-8")
    assert main(["history", "--format", "html"]) == 0
    assert f"Not read: {HISTORY}, line {len(read_lines(nights))}" in capsys.readouterr().out


@pytest.mark.usefixtures("nights")
def test_a_history_that_is_written_to_a_file_keeps_its_pictures_and_has_no_colour() -> None:
    command = [sys.executable, "-m", "suite.cli", "history", "--output", "h.txt", "--color", "auto"]
    root = str(Path(__file__).parent.parent)
    subprocess.run(command, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": root}, check=True)
    text = Path("h.txt").read_text(encoding="utf-8")
    assert "▁" in text
    assert "\x1b" not in text


@pytest.mark.usefixtures("nights")
def test_an_old_locale_shows_pictures_too() -> None:
    command = [sys.executable, "-m", "suite.cli", "history", "--machine", sample_history.MACHINE]
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        command, capture_output=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": root}, check=True
    )
    assert b"\\u" not in done.stdout
    assert b"0.3.35 -> 0.3.36" in done.stdout


def test_a_page_has_the_runs_of_a_damaged_history_that_can_be_read_and_says_which_cannot(
    nights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, err = shown_page(capsys)
    assert err == ""
    nights.write_text(nights.read_text(encoding="utf-8") + '{"schema":1,"kind":"hist\n', encoding="utf-8")
    damaged, err = shown_page(capsys)
    assert damaged == whole
    assert f"NOT READ: {HISTORY}, line {len(read_lines(nights))}" in err


def shown_page(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert main(["report", "--format", "html"]) == 0
    out, err = capsys.readouterr()
    return out, err


def read_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()
