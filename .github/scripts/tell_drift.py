"""Open an issue when the nightly run drifted, or bring the open one up to date. There is one issue, not one a night.

::

    tell_drift.py DIRECTORY FILE

DIRECTORY holds what the run left (``status``: pytest's exit status; absent when it brought nothing), FILE the rendered
report (may be absent). What the state was is kept in a hidden first line of the issue, so that the people who follow it
hear of a change and of nothing else. A run that holds again is told there; closing is left to a person, since drift
that comes and goes is still to be explained.

``GITHUB_REPOSITORY`` and ``RUN_URL`` say where; ``gh`` needs ``GH_TOKEN``, which may write issues.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import gh_api

TITLE = "Nightly matrix: something drifted"
MARK = re.compile(r"<!-- quantdrift: nightly matrix, (?P<state>held|drifted|lost) -->")
LIMIT = 65_536
"""Characters of an issue's body (GitHub)."""
SENTENCES = {
    "held": "The last run held: every gate that was asked for passed. Close this when you know why it had drifted.",
    "drifted": "The last run drifted, or measured something that it could not compare. What failed is below.",
    "lost": "The last run brought no verdict: the machine did not answer, or the run ended early. Its log says more.",
}


def main() -> None:
    """Tell it, where there is something to tell."""
    directory, file = Path(sys.argv[1]), Path(sys.argv[2])
    repository, state = os.environ["GITHUB_REPOSITORY"], read_state(directory / "status")
    issue = find_issue(repository)
    if issue is None and state == "held":
        gh_api.say("the run held, and no issue is open: there is nothing to tell")
        return
    body = compose(state, file.read_text(encoding="utf-8") if file.is_file() else "", url=os.environ["RUN_URL"])
    if issue is None:
        issue = gh_api.send("POST", f"repos/{repository}/issues", {"title": TITLE, "body": body})
        gh_api.say(f"opened {issue['html_url']}")
        return
    before = state_of(issue["body"])
    path = f"repos/{repository}/issues/{int(issue['number'])}"
    gh_api.send("PATCH", path, {"body": body})
    if before != state:
        told = f"{SENTENCES[state]} ([run]({os.environ['RUN_URL']}); before, it was: {before})"
        gh_api.send("POST", f"{path}/comments", {"body": told})
    gh_api.say(f"updated {issue['html_url']}")


def read_state(file: Path) -> str:
    """``held``, ``drifted``, or ``lost``, which is also what no status at all means."""
    status = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    return {"0": "held", "1": "drifted"}.get(status, "lost")


def find_issue(repository: str) -> dict[str, Any] | None:
    """The oldest open issue of ours; None where there is none. Anybody can write the hidden line, but not as our bot."""
    opened = gh_api.ask_all(f"repos/{repository}/issues", state="open", sort="created", direction="asc")
    mine = [issue for issue in opened if "pull_request" not in issue and is_mine(issue)]
    return mine[0] if mine else None


def is_mine(issue: dict[str, Any]) -> bool:
    """Whether a workflow of ours opened it."""
    user = issue["user"] or {}
    return user.get("type") == "Bot" and user.get("login") == gh_api.BOT and state_of(issue["body"]) is not None


def state_of(body: str | None) -> str | None:
    """The state in the hidden line; None where there is no such line."""
    found = MARK.match(body or "")
    return found["state"] if found else None


def compose(state: str, rendered: str, *, url: str) -> str:
    """The issue's body. Raises Refused when it is too long for one."""
    parts = [f"<!-- quantdrift: nightly matrix, {state} -->", f"{SENTENCES[state]} [The run]({url}).", rendered.strip()]
    body = "\n\n".join(part for part in parts if part) + "\n"
    if len(body) > LIMIT:
        raise gh_api.Refused(f"the issue has {len(body):,} characters, and GitHub takes {LIMIT:,}")
    return body


if __name__ == "__main__":
    sys.exit(gh_api.run(main))
