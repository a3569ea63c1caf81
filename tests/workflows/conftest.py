"""A foreign repository with our workflows in it, and a machine to run them on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.foreign_project import ForeignProject
from workflows.local_runner import ROOT, GitHub, Runner, write_program

COMMIT = "c0ffee" + "0" * 34


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    return GitHub(tmp_path / "github")


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    return Runner(tmp_path / "machine", github)


@pytest.fixture
def project(pytester: pytest.Pytester) -> ForeignProject:
    """Three scripted variants, called as matrix-pr.yml calls them, and an environment as `make setup` leaves it."""
    made = ForeignProject(pytester)
    made.write_cases()
    made.write_matrix({"f16": {"reference": True}, "q8_0": {}, "q4_k_m": {}})
    (made.root / ".github").symlink_to(ROOT / ".github")
    write_program(made.root / ".venv" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    return made


def accept_baselines(runner: Runner, project: ForeignProject) -> None:
    """Accept what the project measures, as on a person's machine."""
    command = [
        str(runner.bin / "python"),
        "-m",
        "pytest",
        "--model-matrix",
        "--matrix-update=new",
        "--matrix-reason=first",
    ]
    subprocess.run(command, cwd=project.root, env=runner.environment(CI="false"), check=True, capture_output=True)
