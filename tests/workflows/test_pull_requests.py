"""From a smoke matrix on a pull request to the comment in it: the steps of the workflow files themselves, run here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.foreign_project import WRONG, ForeignProject
from workflows.conftest import COMMIT, accept_baselines
from workflows.local_runner import WORKFLOWS, GitHub, Runner, Step, pack

MARK = "<!-- quantdrift: comment, run -->"
FORK, OURS = "stranger/toy", "org/toy"


def smoke(runner: Runner, project: ForeignProject) -> dict[str, Step]:
    return runner.run_job(
        WORKFLOWS / "matrix-pr.yml", "smoke", workspace=project.root, context={}, event_name="pull_request",
        leave_out=["Install"],
    )  # fmt: skip


def comment(runner: Runner, tmp_path: Path, event: Mapping[str, Any]) -> dict[str, Step]:
    """The job of comment.yml, in a checkout that is not the pull request's."""
    checkout = tmp_path / "default-branch"
    checkout.mkdir(exist_ok=True)
    if not (checkout / ".github").exists():
        (checkout / ".github").symlink_to(WORKFLOWS.parent)
    context = {
        "github.token": "token-of-the-job",
        "github.event.workflow_run.html_url": event["workflow_run"]["html_url"],
        "github.event.repository.default_branch": "main",
    }
    return runner.run_job(
        WORKFLOWS / "comment.yml", "comment", workspace=checkout, context=context, event=event,
        event_name="workflow_run", leave_out=["Install"],
    )  # fmt: skip


def ended(head: str = OURS, *, numbers: tuple[int, ...] = (), branch: str = "faster", run: int = 1) -> dict[str, Any]:
    """The event of a run that ended; `numbers` are empty for a fork."""
    return {
        "repository": {"id": 1, "full_name": OURS, "default_branch": "main"},
        "workflow_run": {
            "id": run,
            "event": "pull_request",
            "head_sha": COMMIT,
            "head_branch": branch,
            "head_repository": {"full_name": head},
            "html_url": f"https://github.example/org/toy/actions/runs/{run}",
            "pull_requests": [{"number": number, "base": {"repo": {"id": 1}}} for number in numbers],
        },
    }


def pull(number: int, head: str = OURS, **changes: Any) -> dict[str, Any]:
    return {
        "number": number,
        "state": "open",
        "head": {"sha": COMMIT, "ref": "faster", "repo": {"full_name": head}, **changes},
        "base": {"repo": {"full_name": OURS}},
    }


def test_a_matrix_becomes_one_comment_that_a_later_run_replaces(
    runner: Runner, github: GitHub, project: ForeignProject, tmp_path: Path
) -> None:
    accept_baselines(runner, project)
    project.write_script("q4_k_m", replies=WRONG)
    github.write("pulls", [pull(7), pull(8, "other/toy", sha="f" * 40)])
    measured = smoke(runner, project)
    assert measured["Measure"].outcome == "failure"  # q4_k_m regressed
    assert measured["Upload what was measured"].outcome == "success"
    assert {*github.read_artifact(1, "quantdrift-pull-request").namelist()} == {"run.json", "report.html"}
    assert "q4_k_m" in (runner.temp / "summary.md").read_text(encoding="utf-8")

    told = comment(runner, tmp_path, ended(numbers=(7,)))
    assert [step.outcome for step in told.values() if step.name != "Install"] == ["success"] * 5, told
    (posted,) = github.read("comments")["7"]
    assert posted["body"].startswith(MARK)
    assert "REGRESSED" in posted["body"]
    assert COMMIT[:12] in posted["body"]

    project.write_script("q4_k_m")
    runner.run_id = 2
    assert smoke(runner, project)["Measure"].outcome == "success"
    comment(runner, tmp_path, ended(numbers=(7,), run=2))
    (replaced,) = github.read("comments")["7"]
    assert replaced["id"] == posted["id"]
    assert "REGRESSED" not in replaced["body"]
    assert "/actions/runs/2" in replaced["body"]


def test_only_the_steps_that_speak_to_github_are_given_a_token(
    runner: Runner, github: GitHub, project: ForeignProject, tmp_path: Path
) -> None:
    github.write("pulls", [pull(7)])
    measured = smoke(runner, project)
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    having = [step.name for step in (*measured.values(), *told.values()) if "GH_TOKEN" in step.environment]
    assert having == ["Fetch", "Post"]
    assert told["Render"].outcome == "success"


@pytest.fixture
def uploaded(github: GitHub) -> bytes:
    """A harmless artifact, for tests of what is around it."""
    packed = pack({"run.json": b"{}"})
    github.add_artifact(1, "quantdrift-pull-request", packed)
    return packed


@pytest.mark.usefixtures("uploaded")
def test_a_fork_is_found_by_head_repository_and_branch(runner: Runner, github: GitHub, tmp_path: Path) -> None:
    others = [pull(1, FORK, sha="e" * 40), pull(2, "stranger/copy"), pull(3, FORK, ref="other")]
    github.write("pulls", [*others, pull(9, FORK)])
    told = comment(runner, tmp_path, ended(FORK))
    assert "pull request 9" in told["Fetch"].log
    assert told["Render"].environment  # it went on to render


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize(("pulls", "reason"), [
    ([pull(9, FORK, sha="e" * 40)], "no open pull request"),           # pushed to since
    ([pull(9, FORK) | {"state": "closed"}], "no open pull request"),
    ([pull(9, FORK, repo=None)], "no open pull request"),              # the fork was deleted meanwhile
    ([pull(9, FORK), pull(10, FORK)], "cannot be told"),               # one head, two pull requests
    ([], "no open pull request"),
])  # fmt: skip
def test_nothing_is_posted_where_the_pull_request_cannot_be_told(
    runner: Runner, github: GitHub, tmp_path: Path, pulls: list[dict[str, Any]], reason: str
) -> None:
    event = ended(FORK)
    if pulls and pulls[0]["head"]["repo"] is None:
        event = ended(FORK, numbers=(9,))
    github.write("pulls", pulls)
    told = comment(runner, tmp_path, event)
    assert told["Fetch"].outcome == "success"
    assert reason in told["Fetch"].log
    assert told["Post"].outcome == "skipped"
    assert not github.read("comments")


@pytest.mark.usefixtures("uploaded")
def test_a_number_that_the_event_names_must_have_the_measured_head(
    runner: Runner, github: GitHub, tmp_path: Path
) -> None:
    github.write("pulls", [pull(7, sha="d" * 40)])
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    assert told["Post"].outcome == "skipped"


def test_the_name_of_a_branch_is_one_value_of_a_query(runner: Runner, github: GitHub, tmp_path: Path) -> None:
    branch = "x&state=all&head=org:main#$(touch pwned)"
    comment(runner, tmp_path, ended(FORK, branch=branch))
    (call,) = [call for call in github.calls() if call["path"] == "repos/org/toy/pulls"]
    assert call["query"] == {"per_page": "100", "state": "open", "head": f"stranger:{branch}"}
    assert not [*tmp_path.rglob("pwned")]


def test_a_run_without_results_is_said_to_be_one(runner: Runner, github: GitHub, tmp_path: Path) -> None:
    github.write("pulls", [pull(7)])
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    assert "brought no results" in told["Fetch"].log
    assert told["Post"].outcome == "skipped"


def test_a_comment_of_a_person_is_never_replaced(
    runner: Runner, github: GitHub, project: ForeignProject, tmp_path: Path
) -> None:
    smoke(runner, project)
    github.write("pulls", [pull(7)])
    forged = {"id": 5, "user": {"login": "mallory", "type": "User"}, "body": f"{MARK}\nmine", "html_url": "https://c"}
    gone = {"id": 6, "user": None, "body": MARK, "html_url": "https://c"}
    github.write("comments", {"7": [forged, gone]})
    comment(runner, tmp_path, ended(numbers=(7,)))
    comments = github.read("comments")["7"]
    assert comments[:2] == [forged, gone]
    assert len(comments) == 3


@pytest.mark.parametrize(("packed", "more", "reason"), [
    pytest.param(b"no archive", {}, "not an archive", id="text"),
    pytest.param(pack({"run.json": b"{}" * 400})[:-40], {}, "not an archive", id="cut off"),
    pytest.param(pack({"../run.json": b"{}", "x/run.json": b"{}"}), {}, "does not hold exactly one", id="elsewhere"),
    pytest.param(pack({"run.json": bytes(65 * 2**20)}), {}, "unpacks to more than", id="bomb"),
    pytest.param(b"", {"size_in_bytes": 10**12}, "at most", id="large"),
    pytest.param(bytes(17 * 2**20), {"size_in_bytes": 1}, "more than", id="larger than told"),
])  # fmt: skip
def test_an_archive_that_cannot_be_read_safely_is_refused(
    runner: Runner, github: GitHub, tmp_path: Path, packed: bytes, more: dict[str, Any], reason: str
) -> None:
    github.write("pulls", [pull(7)])
    github.add_artifact(1, "quantdrift-pull-request", packed, **more)
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    assert told["Fetch"].outcome == "failure"
    assert "refused: " in told["Fetch"].log
    assert reason in told["Fetch"].log
    assert not github.read("comments")


@pytest.mark.parametrize("content", [
    pytest.param(b"", id="empty"),
    pytest.param(b"{}", id="nothing in it"),
    pytest.param(b"[" * 100_000, id="deep"),
    pytest.param(b'{"schema": 1, "kind": "baseline"}', id="a baseline"),
    pytest.param(b"\xff\xfe", id="no text"),
    pytest.param(b'{"schema": 9999, "kind": "run"}', id="of the future"),
])  # fmt: skip
def test_what_is_not_a_run_is_not_posted(runner: Runner, github: GitHub, tmp_path: Path, content: bytes) -> None:
    github.write("pulls", [pull(7)])
    github.add_artifact(1, "quantdrift-pull-request", pack({"run.json": content}))
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    assert told["Fetch"].outcome == "success"
    assert told["Render"].outcome == "failure"
    assert "Traceback" not in told["Render"].log
    assert told["Post"].outcome == "skipped"
    assert not github.read("comments")


def test_what_a_model_said_is_inert_in_the_comment(
    runner: Runner, github: GitHub, project: ForeignProject, tmp_path: Path
) -> None:
    smoke(runner, project)
    run = json.loads((runner.temp / "quantdrift" / "run.json").read_text(encoding="utf-8"))
    said = "@org/everyone <script>x</script> ![x](https://evil.example/x) <!-- --> ::error::x\n# Title"
    for finding in run["findings"]:
        finding["reason"] = said
    for trial in run["trials"]:
        trial["answer"] = trial["text"] = said
    github.write("pulls", [pull(7)])
    github.write("artifacts", [])
    github.add_artifact(1, "quantdrift-pull-request", pack({"run.json": json.dumps(run).encode()}))
    told = comment(runner, tmp_path, ended(numbers=(7,)))
    log = "".join(step.log for step in told.values())
    assert not [line for line in log.splitlines() if line.lstrip().startswith("::")]
    (posted,) = github.read("comments")["7"]
    body = posted["body"]
    assert body.count("<!--") == 1  # our own line
    assert "<script" not in body
    assert "](https://evil" not in body
    assert len(body) <= 65_536
