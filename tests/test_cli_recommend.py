"""``quantdrift recommend``, on a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import sample_advice as sample
from support.laid_out import lay_out

from suite.cli import main
from suite.cli.recommend import command_for

RUN = "2026-11-29T18-04-11-7c1f"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finished run, as the working directory."""
    lay_out(tmp_path, sample.healthy())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize("given", [[], [RUN], [".quantdrift/latest"], [".quantdrift/latest/run.json"]])
@pytest.mark.usefixtures("project")
def test_what_keeps_within_the_limits_is_recommended(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--max-loss", "3", "--min-speedup", "1.5", "--memory", "300MB"]
    assert main(["recommend", *given, *limits]) == 0
    shown = capsys.readouterr().out
    assert "Take q8_0" in shown
    assert "[variants.q8_0]" in shown
    assert "and this machine is" in shown


@pytest.mark.parametrize(("limits", "said"), [
    (["--min-speedup", "9"], "Nothing satisfies your limits"),
    (["--max-loss", "1", "--min-speedup", "2"], "Nothing for sure satisfies"),
    ([], "quantdrift recommend --max-loss 2 --min-speedup 1.5 --memory 300MB"),
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_where_nothing_is_recommended_the_exit_status_says_so(
    limits: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", *limits]) == 1
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("option", "given", "value"), [
    ("--memory", "300MB", 300e6), ("--memory", "300 mb", 300e6), ("--memory", "0.5GiB", 2**29), ("--memory", "12345B", 12345),
    ("--max-ttft", "200ms", 0.2), ("--max-ttft", "1.5", 1.5), ("--min-speedup", "1.5x", 1.5), ("--max-loss", "0", 0),
    ("--max-kld", "1e-3", 0.001), ("--min-decode", "100tok/s", 100),
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_limits_are_read_with_their_units(
    option: str, given: str, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", option, given, "--format", "json"]) in (0, 1)
    (found,) = json.loads(capsys.readouterr().out)["limits"].values()
    assert found == pytest.approx(value)


@pytest.mark.parametrize(("arguments", "said"), [
    (["--max-loss", "two"], "--max-loss: must be a number, 0 or more, as in --max-loss 2 (got 'two')"),
    (["--max-loss=-1"], "--max-loss: must be a number, 0 or more"),
    (["--max-loss", "200"], "--max-loss: more than 100 cannot be lost (got '200')"),
    (["--memory", "300 elephants"], "--memory: must be a number, more than 0, as in --memory 300MB"),
    (["--memory", "300"], "--memory: must have a unit, as in --memory 300MB (got '300'); known: B, kB, MB"),
    (["--memory", "0MB"], "more than 0"),
    (["--min-speedup", "nan"], "--min-speedup: must be"),
    (["--min-speedup", "1e999"], "--min-speedup: must be"),
    (["--scenario", "shrt"], f"--scenario: run {RUN} has no 'shrt'; did you mean 'short'?"),
    (["nowhere"], "there is no run here"),
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_a_wrong_call_is_a_usage_error(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_it_is_written_whole_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", "--memory", "300MB", "--format", "markdown", "--output", "advice.md"]) == 0
    assert capsys.readouterr().out == ""
    assert Path("advice.md").read_text(encoding="utf-8").startswith("## Take ")


def test_a_matrix_file_that_is_not_the_usual_one_is_named_in_commands(project: Path) -> None:
    def command(file: str) -> str:
        run = sample.healthy()
        return command_for(replace(run, matrix=replace(run.matrix, file=file)))

    assert command("matrix.toml") == command(str(project / "matrix.toml")) == "pytest --model-matrix"
    assert command(str(project / "gpu 7.toml")) == "pytest --model-matrix --matrix-file 'gpu 7.toml'"
    assert command("/elsewhere/matrix.toml") == "pytest --model-matrix --matrix-file /elsewhere/matrix.toml"


@pytest.mark.usefixtures("project")
def test_looking_writes_nothing_and_imports_no_model_library() -> None:
    code = (
        "import sys; from suite.cli import main; main(['recommend', '--memory', '300MB']); "
        "sys.stderr.write(repr(sorted({'torch', 'transformers', 'pytest', 'llama_cpp', 'matplotlib'} & set(sys.modules))))"
    )
    before = sorted(Path().rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parent.parent)},
        check=True,
    )
    assert done.stderr == "[]"
    assert "Take " in done.stdout
    assert sorted(Path().rglob("*")) == before
