"""``quantdrift explain``, on a stored run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import sample_fidelity as fidelity
from support.laid_out import lay_out

from suite.cli import main

RUN = "2026-11-29T18-04-11-7c1f"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finished run whose variants were taken through the trace, as the working directory."""
    lay_out(tmp_path, fidelity.damaged())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", [[], [RUN], [".quantdrift/latest"], [".quantdrift/latest/run.json"]])
@pytest.mark.usefixtures("project")
def test_every_variant_of_the_run_is_explained(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *given, "--width", "160"]) == 0
    shown = capsys.readouterr().out
    assert "q4_k_m against fp16" in shown
    assert "int8 against fp16" in shown
    assert "math/apples: right → wrong" in shown
    assert "lead 0.07 nat: a near tie" in shown
    assert "\x1b[" not in shown


@pytest.mark.usefixtures("project")
def test_one_variant_and_one_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--variant", "q4_k_m", "--case", "reasoning/apples"]) == 0
    shown = capsys.readouterr().out
    assert "reasoning/apples: right on both sides" in shown
    assert "its answer ends here" in shown
    assert "int8" not in shown
    assert "math/apples" not in shown


@pytest.mark.parametrize(("arguments", "said"), [
    (["--variant", "q4_k"], "--variant: run 2026-11-29T18-04-11-7c1f holds no 'q4_k'; did you mean 'q4_k_m'?"),
    (["--variant", "zzz"], "known: f16, fp16, int8, q4_k_m, q5_k_m, q8_0"),
    (["--case", "math/aples"], "holds no 'math/aples'; did you mean 'math/apples'?"),
    (["--case", "trains"], "did you mean 'code/trains'?"),
    (["nowhere"], "there is no run here (looked at nowhere, nowhere/run.json, .quantdrift/runs/nowhere/run.json)"),
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_what_is_not_there_is_a_usage_error_that_names_the_nearest(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_any_run_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain"]) == 2
    assert "pytest --model-matrix" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_it_imports_nothing_heavy_and_survives_an_old_encoding() -> None:
    code = (
        "import sys; from suite.cli import main; main(['explain']); "
        "sys.stderr.write(repr(sorted({'torch', 'scipy', 'numpy', 'transformers', 'pytest'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parent.parent)},
        check=True,
    )
    assert done.stderr == "[]"
    assert "q4_k_m against fp16" in done.stdout
