"""The action that other repositories use, the wheel that they install, and measuring by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.foreign_project import WRONG, ForeignProject
from workflows.conftest import accept_baselines
from workflows.local_runner import ROOT, GitHub, Runner, Step, write_program

ACTION = ROOT / ".github" / "actions" / "quantdrift" / "action.yml"
SCRIPTS = ROOT / ".github" / "scripts"


def use_action(runner: Runner, project: ForeignProject, arguments: str = "", directory: str = ".") -> dict[str, Step]:
    """`uses: …/quantdrift` in a repository whose matrix is in `directory`."""
    context = {
        "inputs.arguments": arguments, "inputs.directory": directory, "inputs.extras": "none",
        "inputs.python-version": "none", "inputs.artifact": "quantdrift",
    }  # fmt: skip
    return runner.run_job(
        ACTION, None, workspace=project.root, context=context, more={"GITHUB_ACTION_PATH": str(ACTION.parent)}
    )


def test_another_repository_measures_with_the_action(runner: Runner, github: GitHub, project: ForeignProject) -> None:
    steps = use_action(runner, project, "--matrix-quick\n\n--matrix-variants=f16,q8_0\n")
    assert steps["Measure"].outcome == "success", steps["Measure"].log
    assert {*github.read_artifact(1, "quantdrift").namelist()} == {"run.json", "report.html"}
    page = (runner.temp / "quantdrift" / "report.html").read_text(encoding="utf-8")
    assert "q8_0" in page
    assert "q4_k_m" not in page.replace("matrix.toml", "") or "left out" in page


def test_an_argument_with_spaces_is_one_argument(runner: Runner, project: ForeignProject) -> None:
    accept = "--matrix-update=new\n--matrix-reason=one reason; $(touch pwned)"
    steps = use_action(runner, project, accept)
    assert "never written in CI" in steps["Measure"].log  # it was understood, and refused
    assert not [*project.root.rglob("pwned")]


def test_a_failing_gate_fails_the_step_and_uploads_all_the_same(
    runner: Runner, github: GitHub, project: ForeignProject
) -> None:
    accept_baselines(runner, project)
    project.write_script("q4_k_m", replies=WRONG)
    steps = use_action(runner, project)
    assert steps["Measure"].outcome == "failure"
    assert (runner.temp / "quantdrift" / "status").read_text() == "1\n"
    assert "run.json" in github.read_artifact(1, "quantdrift").namelist()


def test_commands_to_the_runner_are_paused_while_models_speak(runner: Runner, project: ForeignProject) -> None:
    accept_baselines(runner, project)
    project.write_script("q4_k_m", replies=dict.fromkeys(WRONG, "\n::add-mask::everything\n"))
    lines = use_action(runner, project)["Measure"].log.splitlines()
    (start,) = [at for at, line in enumerate(lines) if line.startswith("::stop-commands::")]
    word = lines[start].removeprefix("::stop-commands::")
    end = lines.index(f"::{word}::")
    assert len(word) == 32
    assert not [line for line in lines[:start] + lines[end + 1 :] if "add-mask" in line and line.startswith("::add")]


def test_a_matrix_that_cannot_be_read_says_so_and_leaves_its_status(runner: Runner, project: ForeignProject) -> None:
    (project.root / "matrix.toml").write_text("nonsense = 1")
    steps = use_action(runner, project)
    assert steps["Measure"].outcome == "failure"
    assert "wrote no run" in steps["Measure"].log
    assert (runner.temp / "quantdrift" / "status").read_text() == "2\n"


def test_an_installed_wheel_is_tried_and_the_checkout_is_not_mistaken_for_one(runner: Runner, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [
        *pip,
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    there = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path / "there"), str(wheel)]
    subprocess.run(there, check=True, capture_output=True)
    write_program(runner.bin / "apart", f'PYTHONPATH="{tmp_path / "there"}" exec "{sys.executable}" "$@"')
    environment = runner.environment()

    tried = subprocess.run(
        [SCRIPTS / "try_wheel.sh", runner.bin / "apart", tmp_path / "project"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "toy" in tried.stdout

    mistaken = subprocess.run(
        [SCRIPTS / "try_wheel.sh", runner.bin / "python", tmp_path / "other"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert mistaken.returncode == 1
    assert "from the checkout" in mistaken.stderr
