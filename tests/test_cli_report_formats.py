"""``quantdrift report --format``: what other programs read."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import sample_limits
from support import sample_stories as stories
from support.laid_out import lay_out

from suite.cli import main
from suite.cli.report import FORMATS

MODEL, MACHINE = "smollm2-135m-instruct", "x86_64-avx512-2c"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finished run, below the root of a repository, as the working directory."""
    (tmp_path / ".git").mkdir()
    root = tmp_path / "models" / "tiny"
    root.mkdir(parents=True)
    lay_out(root, stories.slower())
    monkeypatch.chdir(root)
    return root


def write_baseline(root: Path, *parts: str) -> None:
    file = root.joinpath("baselines", MODEL, *parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}", encoding="utf-8")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("action-benchmark", "terminal")])
def test_a_file_holds_what_standard_output_would(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "out" / "file"
    printed = shown(capsys, "--format", name)
    assert shown(capsys, "--format", name, "--output", str(output)) == ""
    assert output.read_bytes().decode("utf-8").rstrip("\n") == printed.rstrip("\n")
    assert printed.strip()


@pytest.mark.usefixtures("project")
def test_a_report_in_a_file_has_no_colours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--output", str(tmp_path / "report.txt"), "--width", "100") == ""
    assert "\x1b[" not in (tmp_path / "report.txt").read_text(encoding="utf-8")


@pytest.mark.usefixtures("project")
def test_a_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["report", "--format", "csv", "--output", str(tmp_path / "file" / "below")]) == 2
    assert "could not be written" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_csv_and_benchmarks_are_what_their_readers_expect(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(capsys, "--format", "csv"))))
    assert {row["verdict"] for row in rows} >= {"PASS", "REGRESSED"}
    bigger = json.loads(shown(capsys, "--format", "action-benchmark", "--direction", "bigger"))
    smaller = json.loads(shown(capsys, "--format", "action-benchmark", "--direction", "smaller"))
    assert {entry["unit"] for entry in bigger} >= {"tok/s", "x"}
    assert {entry["unit"] for entry in smaller} >= {"s", "bytes"}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("arguments", [
    ["--format", "action-benchmark"], ["--format", "csv", "--direction", "bigger"], ["--direction", "bigger"],
])  # fmt: skip
def test_a_direction_belongs_to_benchmarks(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *arguments]) == 2
    assert "--direction" in capsys.readouterr().err


def test_annotations_name_the_baseline_below_the_root_of_the_repository(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_baseline(project, "quality", "q4_k_m.json")
    write_baseline(project, "speed", MACHINE, "q4_k_m.json")
    first, second = shown(capsys, "--format", "annotations").splitlines()
    assert first.startswith(
        f"::error file=models/tiny/baselines/{MODEL}/speed/{MACHINE}/q4_k_m.json,title=q4_k_m is REGRESSED::"
    )
    assert second.startswith("::notice title=q5_k_m is IMPROVED::")  # it has no file at all


def test_annotations_fall_back_to_the_other_baseline_and_then_to_the_matrix_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_baseline(project, "quality", "q4_k_m.json")
    (project / "matrix.toml").write_text("", encoding="utf-8")
    first, second = shown(capsys, "--format", "annotations").splitlines()
    assert f"file=models/tiny/baselines/{MODEL}/quality/q4_k_m.json," in first
    assert "file=models/tiny/matrix.toml," in second


def test_annotations_find_baselines_where_pytest_is_told_to_look(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pytest.ini").write_text("[pytest]\nmatrix_baselines = accepted\n", encoding="utf-8")
    write_baseline(project / "accepted", "speed", MACHINE, "q4_k_m.json")
    (project / "accepted" / "baselines" / MODEL).rename(project / "accepted" / MODEL)
    assert "file=models/tiny/accepted/" in shown(capsys, "--format", "annotations")


def test_annotations_of_a_healthy_run_are_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(tmp_path, stories.healthy())
    run = tmp_path / ".quantdrift" / "latest"
    assert shown(capsys, str(run), "--format", "annotations") == ""


def test_an_old_encoding_of_standard_output_is_no_crash(project: Path) -> None:
    run = replace(stories.slower(), id="other", model="시속")
    lay_out(project / "other", run)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parent.parent)}
    for name in ("summary", "annotations", "csv"):
        command = [
            sys.executable,
            "-m",
            "suite.cli",
            "report",
            str(project / "other" / ".quantdrift" / "latest"),
            "--format",
            name,
        ]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        assert done.stdout


def test_limits_are_a_table_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path, sample_limits.limited())
    monkeypatch.chdir(tmp_path)
    lines = shown(capsys, "--format", "limits", "--width", "160").splitlines()
    assert lines[0].split()[:6] == ["variant", "scenario", "bytes/token", "bandwidth", "roofline", "reached"]
    assert lines[2].split()[:8] == ["f16", "short", "274", "MB", "62", "GB/s", "226", "128"]
