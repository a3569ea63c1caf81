"""A night on the machine of our own: measured there, told by another job, kept from one night to the next."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.foreign_project import WRONG, ForeignProject
from workflows.conftest import accept_baselines
from workflows.local_runner import ROOT, WORKFLOWS, GitHub, Runner, Step

NIGHTLY = WORKFLOWS / "nightly-gpu.yml"
CONTEXT = {
    "vars.QUANTDRIFT_GPU_PYTHON": ".venv/bin/python",
    "inputs.matrix || vars.QUANTDRIFT_GPU_MATRIX || 'matrix.toml'": "matrix.toml",
    "secrets.HF_TOKEN": "token-of-the-hub",
    "github.token": "token-of-the-job",
    "github.ref_name": "main",
    "github.server_url": "https://github.example",
    "github.repository": "org/toy",
}


class Nights:
    """One night after the other; what GitHub remembers of each."""

    def __init__(self, runner: Runner, github: GitHub, project: ForeignProject) -> None:
        self._runner, self._github, self._project = runner, github, project
        self._runner.run_id = 0

    def pass_one(self, *, machine: bool = True) -> dict[str, Step]:
        """Both jobs; without the `machine`, only the one that tells."""
        self._runner.run_id += 1
        number = self._runner.run_id
        context = {**CONTEXT, "github.run_id": str(number)}
        place = {
            "workspace": self._project.root,
            "context": context,
            "event_name": "schedule",
            "leave_out": ["Install"],
        }
        steps = self._runner.run_job(NIGHTLY, "measure", **place) if machine else {}  # type: ignore[arg-type]
        if machine:  # the other job runs on another machine
            self._runner.temp.rename(self._runner.temp.with_name(f"gpu-{number}"))
        steps |= self._runner.run_job(NIGHTLY, "tell", **place)  # type: ignore[arg-type]
        run = {
            "id": number, "workflow": "nightly-gpu.yml", "event": "schedule", "head_branch": "main", "status": "completed",
            "created_at": f"2026-12-{number:02}T02:23:00Z", "html_url": f"https://github.example/{number}",
        }  # fmt: skip
        self._github.write("runs", [*self._github.read("runs", []), run])
        return steps

    def history(self) -> list[dict[str, Any]]:
        archive = self._github.read_artifact(self._runner.run_id, "quantdrift-history")
        return [json.loads(line) for line in archive.read("history.jsonl").decode().splitlines()]


@pytest.fixture
def nights(runner: Runner, github: GitHub, project: ForeignProject) -> Nights:
    accept_baselines(runner, project)
    return Nights(runner, github, project)


def test_a_quiet_night_tells_nobody_and_is_kept(nights: Nights, github: GitHub, runner: Runner) -> None:
    steps = nights.pass_one()
    assert steps["Measure"].outcome == "success", steps["Measure"].log
    assert steps["Open or update the issue"].outcome == "success", steps["Open or update the issue"].log
    assert github.read("issues", []) == []
    assert "a new one begins" in steps["Take up the history"].log
    assert "a new one begins" in (runner.temp / "summary.md").read_text(encoding="utf-8")
    assert len(nights.history()) == 1


def test_the_history_grows_from_night_to_night(nights: Nights) -> None:
    for night in (1, 2, 3):
        nights.pass_one()
        assert len(nights.history()) == night


def test_a_history_that_anybody_could_have_uploaded_is_not_taken_up(nights: Nights, github: GitHub) -> None:
    nights.pass_one()
    forged = {**github.read("runs")[0], "id": 900, "event": "pull_request"}
    github.write("runs", [*github.read("runs"), forged])
    github.add_artifact(900, "quantdrift-history", b"not even an archive")
    nights.pass_one()
    assert len(nights.history()) == 2


def test_a_history_that_is_damaged_stops_the_job_and_begins_no_new_one(nights: Nights, github: GitHub) -> None:
    nights.pass_one()
    for archive in github.state.glob("*.zip"):
        archive.write_bytes(b"damaged")
    steps = nights.pass_one()
    assert steps["Take up the history"].outcome == "failure"
    assert steps["Append to it"].outcome == "skipped"
    with pytest.raises(FileNotFoundError):
        nights.history()
    assert steps["Open or update the issue"].outcome == "success"  # drift is told all the same


def test_drift_opens_one_issue_and_further_nights_keep_to_it(
    nights: Nights, github: GitHub, project: ForeignProject
) -> None:
    project.write_script("q4_k_m", replies=WRONG)
    for _ in range(2):
        assert nights.pass_one()["Measure"].outcome == "failure"
    (issue,) = github.read("issues")
    assert "REGRESSED" in issue["body"]
    assert "/actions/runs/2)" in issue["body"]
    assert github.read("comments", {}) == {}  # nothing changed, so nobody is called

    project.write_script("q4_k_m")
    for _ in range(2):
        assert nights.pass_one()["Measure"].outcome == "success"
    (issue,) = github.read("issues")
    assert issue["state"] == "open"
    (told,) = github.read("comments")["1"]
    assert "held" in told["body"]
    assert "before, it was: drifted" in told["body"]


def test_a_machine_that_does_not_answer_is_worth_an_issue(nights: Nights, github: GitHub) -> None:
    steps = nights.pass_one(machine=False)
    assert steps["Open or update the issue"].outcome == "success", steps["Open or update the issue"].log
    (issue,) = github.read("issues")
    assert "brought no verdict" in issue["body"]


def test_an_issue_of_a_person_is_left_alone(nights: Nights, github: GitHub, project: ForeignProject) -> None:
    mark = "<!-- quantdrift: nightly matrix, drifted -->"
    theirs = {"number": 1, "state": "open", "user": {"login": "mallory", "type": "User"}, "body": mark, "html_url": "x"}
    github.write("issues", [theirs])
    project.write_script("q4_k_m", replies=WRONG)
    nights.pass_one()
    assert github.read("issues")[0] == theirs
    assert len(github.read("issues")) == 2


def test_weights_are_fetched_before_and_never_while_it_measures(nights: Nights) -> None:
    steps = nights.pass_one()
    assert steps["Fetch the weights"].environment["HF_TOKEN"] == "token-of-the-hub"
    assert "HF_HUB_OFFLINE" not in steps["Fetch the weights"].environment
    assert steps["Measure"].environment["HF_HUB_OFFLINE"] == "1"
    assert "HF_TOKEN" not in steps["Measure"].environment
    assert "GH_TOKEN" not in steps["Measure"].environment


@pytest.mark.parametrize(("source", "status", "told"), [
    ("org/name@main", 1, "is not pinned"),
    ("org/name", 1, "is not pinned"),
    ("org/name:Q4_K_M@v1.0", 1, "is not pinned"),
    ("package:no_such_package_here", 1, "is not installed"),
])  # fmt: skip
def test_weights_that_are_not_pinned_or_not_there_are_refused(
    runner: Runner, project: ForeignProject, source: str, status: int, told: str
) -> None:
    backend = {"backend": "llama_cpp", "source": source, "options": {}}
    project.write_matrix({"f16": {"reference": True}, "q8_0": backend})
    done = project.pytester.run(
        runner.bin / "python", ROOT / ".github" / "scripts" / "prefetch.py", project.root / "matrix.toml"
    )
    assert done.ret == status
    done.stdout.fnmatch_lines(["f16: needs no weights"])
    assert told in done.stderr.str()
    assert "variants.q8_0" in done.stderr.str()
