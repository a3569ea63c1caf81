"""The console script, on a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import sample_stories as stories
from support.laid_out import lay_out

from suite.cli import find_run, main
from suite.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finished run, as the working directory."""
    lay_out(tmp_path, stories.slower())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", [
    [],
    ["2026-11-29T18-04-11-7c1f"],
    [".quantdrift/latest"],
    [".quantdrift/latest/run.json"],
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_report_shows_the_run(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *given, "--width", "160"]) == 0
    shown = capsys.readouterr().out
    assert "q4_k_m is REGRESSED" in shown
    assert "1 of 42 gates failed" in shown
    assert "\x1b[" not in shown


@pytest.mark.usefixtures("project")
def test_report_in_colour_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--color", "always"]) == 0
    assert "\x1b[1;31mREGRESSED\x1b[0m" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_report_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("# smollm2")


@pytest.mark.usefixtures("project")
def test_report_as_json_is_the_stored_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "json"]) == 0
    stored = json.loads(Path(".quantdrift/latest/run.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == stored


def test_a_missing_run_is_a_usage_error_that_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    message = capsys.readouterr().err
    assert ".quantdrift/latest/run.json" in message
    assert "pytest --model-matrix" in message
    with pytest.raises(UsageError, match="nowhere"):
        find_run("nowhere")


def test_a_damaged_run_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text("{ not json", encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 2
    assert "run.json" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["reprot"], ["report", "--format", "pdf"]])
def test_a_wrong_call_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_version_and_help_answer_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--version"], "quantdrift "), (["--help"], "show a stored run again")):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert said in capsys.readouterr().out


def test_starting_imports_nothing_heavy() -> None:
    code = (
        "import sys, suite.cli; print(sorted({'torch', 'scipy', 'numpy', 'transformers', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("project")
def test_a_terminal_with_an_old_encoding_is_no_crash() -> None:
    command = [sys.executable, "-m", "suite.cli", "report"]
    done = subprocess.run(
        command, capture_output=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": _root()}, check=True
    )
    assert b"REGRESSED" in done.stdout


def _root() -> str:
    return str(Path(__file__).parent.parent)
