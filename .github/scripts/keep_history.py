"""Take up the history where the last nightly run left it.

::

    keep_history.py FILE WORKFLOW

Writes the history that the newest earlier run of WORKFLOW (its file name) on the default branch uploaded to FILE. Where none
is found, nothing is written, and the log and the step's summary say that a new history begins: it is never re-based in silence.

Only runs that a schedule or a dispatch started are asked. A pull request can bring a workflow of the same name, and an artifact
of the same name, from a branch that is called as the default one.

``GITHUB_REPOSITORY``, ``BRANCH`` (the default branch) and ``GITHUB_RUN_ID`` say where; ``gh`` needs ``GH_TOKEN``, which may
read actions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import artifacts
import gh_api

ARTIFACT, FILE = "quantdrift-history", "history.jsonl"
OURS = frozenset({"schedule", "workflow_dispatch"})


def main() -> None:
    """Fetch, and say from where."""
    file, workflow = Path(sys.argv[1]), sys.argv[2]
    repository = os.environ["GITHUB_REPOSITORY"]
    for run in list_earlier(repository, workflow):
        artifact = artifacts.find_artifact(repository, int(run["id"]), ARTIFACT)
        if artifact is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(artifacts.read_file(repository, artifact, FILE))
            gh_api.say(f"the history goes on from the run of {run['created_at']} ({run['html_url']})")
            return
    gh_api.say("no earlier run left a history: a new one begins")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as text:
            text.write("\nNo earlier run left a history, so a new one begins with this run.\n")


def list_earlier(repository: str, workflow: str) -> list[dict[str, Any]]:
    """Finished runs of the workflow that we started ourselves, newest first, this one left out; at most a hundred."""
    answer = gh_api.ask(
        f"repos/{repository}/actions/workflows/{workflow}/runs",
        branch=os.environ["BRANCH"],
        status="completed",
        per_page="100",
    )
    return [
        run for run in answer["workflow_runs"] if run["event"] in OURS and str(run["id"]) != os.environ["GITHUB_RUN_ID"]
    ]


if __name__ == "__main__":
    sys.exit(gh_api.run(main))
