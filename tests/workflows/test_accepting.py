"""New baselines: a person asks, a machine measures, a pull request shows, and nothing is written otherwise."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.foreign_project import WRONG, ForeignProject
from workflows.conftest import accept_baselines
from workflows.local_runner import ROOT, WORKFLOWS, GitHub, Runner, Step

ACCEPT = WORKFLOWS / "accept.yml"
REASON = 'llama.cpp b9999: "faster" $(touch pwned)'


def context(reason: str = REASON, mode: str = "changed") -> dict[str, str]:
    return {
        "inputs.reason": reason,
        "inputs.mode": mode,
        "inputs.machine": "gpu",
        "inputs.matrix": "matrix.toml",
        "inputs.baselines": "baselines",
        "inputs.machine == 'gpu' && vars.QUANTDRIFT_GPU_PYTHON || '.venv/bin/python'": ".venv/bin/python",
        "github.triggering_actor": "octocat",
        "github.server_url": "https://github.example",
        "github.repository": "org/toy",
        "github.run_id": "1",
        "github.ref_name": "main",
        "github.token": "token-of-the-job",
        "secrets.HF_TOKEN": "",
    }


@pytest.fixture
def repository(runner: Runner, project: ForeignProject, tmp_path: Path) -> Path:
    """The project in git, with accepted baselines and a remote; returns the remote."""
    accept_baselines(runner, project)
    (project.root / ".gitignore").write_text(".quantdrift/\n.venv/\n.github\n")
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(project.root, "init", "--quiet", "--initial-branch=main")
    git(project.root, "add", "--all")
    git(project.root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "first")
    git(project.root, "remote", "add", "origin", str(remote))
    git(project.root, "push", "--quiet", "origin", "main")
    return remote


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def measure(runner: Runner, project: ForeignProject, *, event: str = "workflow_dispatch", reason: str = REASON) -> Step:
    steps = runner.run_job(
        ACCEPT, "measure", workspace=project.root, context=context(reason), event_name=event,
        leave_out=["Install on a hosted runner", "Install on the GPU machine"],
    )  # fmt: skip
    return steps["Measure and accept"]


def propose(runner: Runner, project: ForeignProject) -> Step:
    git(project.root, "checkout", "--quiet", "--", "baselines")  # the second job has a checkout of its own
    steps = runner.run_job(
        ACCEPT,
        "propose",
        workspace=project.root,
        context=context(),
        event_name="workflow_dispatch",
        leave_out=["Install"],
    )
    return steps["Propose them"]


def test_new_baselines_arrive_as_a_pull_request_with_who_and_why(
    runner: Runner, github: GitHub, project: ForeignProject, repository: Path
) -> None:
    project.write_script("q4_k_m", replies=WRONG)
    measured = measure(runner, project)
    assert measured.outcome == "success", measured.log
    proposed = propose(runner, project)
    assert proposed.outcome == "success", proposed.log

    (call,) = [call for call in github.calls() if call["arguments"][:2] == ["pr", "create"]]
    assert call["options"]["--base"] == "main"
    assert call["options"]["--head"] == "baselines/run-1"
    assert REASON in call["body"]
    assert "q4_k_m" in call["body"]
    changed = git(repository, "diff", "--name-only", "main", "baselines/run-1").splitlines()
    assert changed
    assert all(name.startswith("baselines/") for name in changed)
    baseline = json.loads(git(repository, "show", "baselines/run-1:baselines/toy/quality/q4_k_m.json"))
    assert REASON in json.dumps(baseline, ensure_ascii=False).replace('\\"', '"')
    assert "asked for by octocat, https://github.example/org/toy/actions/runs/1" in json.dumps(baseline)
    assert REASON in git(repository, "log", "-1", "--format=%B", "baselines/run-1")
    assert not [*project.root.rglob("pwned")]
    assert git(repository, "rev-list", "--count", "main") == "1\n"  # nothing is written but the branch


@pytest.mark.usefixtures("repository")
def test_what_did_not_change_is_not_proposed(runner: Runner, github: GitHub, project: ForeignProject) -> None:
    assert measure(runner, project).outcome == "success"
    proposed = propose(runner, project)
    assert proposed.outcome == "success"
    assert "nothing differs" in proposed.log
    assert github.calls() == []


@pytest.mark.parametrize("event", ["schedule", "push", "pull_request", ""])
def test_no_event_but_a_dispatch_accepts(runner: Runner, project: ForeignProject, event: str) -> None:
    before = project.baseline_files()
    project.write_script("q4_k_m", replies=WRONG)
    refused = measure(runner, project, event=event)
    assert refused.outcome == "failure"
    assert "when a person dispatches it" in refused.log
    assert project.baseline_files() == before


@pytest.mark.parametrize("reason", ["", "  \n\t "])
def test_nothing_is_accepted_without_a_reason(runner: Runner, project: ForeignProject, reason: str) -> None:
    before = project.baseline_files()
    refused = measure(runner, project, reason=reason)
    assert refused.outcome == "failure"
    assert "REASON, ACTOR and RUN_URL" in refused.log
    assert project.baseline_files() == before


def test_the_rule_that_ci_writes_no_baselines_holds_for_everything_else(
    runner: Runner, project: ForeignProject
) -> None:
    done = subprocess.run(
        [runner.bin / "python", "-m", "pytest", "--model-matrix", "--matrix-update=all", "--matrix-reason=because"],
        cwd=project.root, env=runner.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "never written in CI" in done.stdout + done.stderr


def test_what_is_no_baseline_is_not_proposed(runner: Runner, github: GitHub, project: ForeignProject) -> None:
    measured = runner.home / "measured"
    (measured / "toy").mkdir(parents=True)
    (measured / "toy" / "setup.py").write_text("")
    (measured / "toy" / "link.json").symlink_to("/etc/passwd")
    environment = runner.environment(REASON="r", ACTOR="a", RUN_URL="u", RUN_ID="1", BASE="main", GH_TOKEN="t")
    done = subprocess.run(
        [ROOT / ".github" / "scripts" / "propose.sh", measured, "baselines"],
        cwd=project.root, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "setup.py" in done.stderr
    assert "link.json" in done.stderr
    assert github.calls() == []
