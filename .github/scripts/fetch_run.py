"""Fetch what a pull request's run measured, and find out which pull request that is.

::

    fetch_run.py FILE

Writes the ``run.json`` of the run that has ended to FILE, unread, and sets the output ``number``. Without an open pull
request that has exactly the measured head, or without a run, it says so and sets nothing.

The number comes from the event and from GitHub, never from the artifact, which whoever opened the pull request wrote. For
a pull request from a fork the event names none, so it is found by head repository and branch. Either way, GitHub must
agree that its head is the commit that was measured.

Reads ``GITHUB_EVENT_PATH`` (of ``workflow_run``); ``gh`` needs ``GH_TOKEN``, which may read actions and pull requests.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import artifacts
import gh_api

ARTIFACT, FILE = "quantdrift-pull-request", "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What has ended, as the event tells it."""

    repository: str
    run: int
    head_repository: str
    """``owner/name``: of a fork, or the repository itself."""
    branch: str
    commit: str
    numbers: tuple[int, ...]
    """Pull requests into this repository that the event names; none for a fork."""


def main() -> None:
    """Fetch, and say what was found."""
    (file,) = sys.argv[1:]
    measured = read_measured(gh_api.read_event())
    if measured is None:
        gh_api.say(
            "the run was not one of a pull request whose repository still exists: there is nothing to comment on"
        )
        return
    number = find_number(measured)
    artifact = None if number is None else artifacts.find_artifact(measured.repository, measured.run, ARTIFACT)
    if number is None:
        return
    if artifact is None:
        gh_api.say(f"the run brought no results: artifact {ARTIFACT} is not there")
        return
    Path(file).write_bytes(artifacts.read_file(measured.repository, artifact, FILE))
    gh_api.put_output("number", number)
    gh_api.put_output("commit", measured.commit)
    gh_api.say(f"pull request {number}, measured at {measured.commit}")


def read_measured(event: dict[str, Any]) -> Measured | None:
    """The run of a pull request that ended; None when it was another kind, or its repository is gone."""
    run, repository = event["workflow_run"], event["repository"]
    if run["event"] != "pull_request" or not run["head_repository"]:
        return None
    named = [pull["number"] for pull in run["pull_requests"] if pull["base"]["repo"]["id"] == repository["id"]]
    return Measured(
        repository=repository["full_name"],
        run=int(run["id"]),
        head_repository=run["head_repository"]["full_name"],
        branch=run["head_branch"],
        commit=run["head_sha"],
        numbers=tuple(int(number) for number in named),
    )


def find_number(measured: Measured) -> int | None:
    """The one open pull request whose head was measured; None, said in the log, when there is none or more than one."""
    base = f"repos/{measured.repository}/pulls"
    if measured.numbers:
        candidates = [gh_api.ask(f"{base}/{number}") for number in measured.numbers]
    else:
        owner = measured.head_repository.split("/")[0]
        candidates = gh_api.ask_all(base, state="open", head=f"{owner}:{measured.branch}")
    found = [int(pull["number"]) for pull in candidates if has_head(pull, measured)]
    if len(found) == 1:
        return found[0]
    if found:
        gh_api.say(f"pull requests {found} all have this head: which one was measured cannot be told")
    else:
        gh_api.say(f"no open pull request has {measured.commit} as its head: it was closed, or pushed to since")
    return None


def has_head(pull: dict[str, Any], measured: Measured) -> bool:
    """Whether GitHub says that this open pull request, into this repository, has the head that was measured."""
    head, base = pull["head"], pull["base"]
    return (
        pull["state"] == "open"
        and head["sha"] == measured.commit
        and head["ref"] == measured.branch
        and head["repo"] is not None
        and head["repo"]["full_name"] == measured.head_repository
        and base["repo"]["full_name"] == measured.repository
    )


if __name__ == "__main__":
    sys.exit(gh_api.run(main))
