"""Post a comment on a pull request, or replace the one that is there: one pull request, one comment.

::

    post_comment.py NUMBER FILE

``GITHUB_REPOSITORY``, ``COMMIT`` and ``RUN_URL`` say where, of what, and where it was measured; ``gh`` needs ``GH_TOKEN``,
which may write pull requests. The comment is known by a hidden first line, and only one of our own bot's is ever replaced:
anybody can write that line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gh_api

MARK = "<!-- quantdrift: comment, run -->"
"""The first line of what `quantdrift comment` renders of a run."""
LIMIT = 65_536
"""Characters of a comment (GitHub)."""


def main() -> None:
    """Post, and say where."""
    number, file = int(sys.argv[1]), Path(sys.argv[2])
    repository = os.environ["GITHUB_REPOSITORY"]
    body = compose(file.read_text(encoding="utf-8"), commit=os.environ["COMMIT"], url=os.environ["RUN_URL"])
    comments = gh_api.ask_all(f"repos/{repository}/issues/{number}/comments")
    mine = [int(comment["id"]) for comment in comments if is_mine(comment["user"], comment["body"])]
    if mine:
        posted = gh_api.send("PATCH", f"repos/{repository}/issues/comments/{mine[0]}", {"body": body})
    else:
        posted = gh_api.send("POST", f"repos/{repository}/issues/{number}/comments", {"body": body})
    gh_api.say(f"{'replaced' if mine else 'posted'} {posted['html_url']}")


def compose(rendered: str, *, commit: str, url: str) -> str:
    """The comment: what was rendered, hidden line first, and what it is about. Raises Refused when it is anything else, or too
    long.
    """
    if not rendered.startswith(MARK):
        raise gh_api.Refused("that was not rendered by `quantdrift comment`: its first line is another one")
    body = f"{rendered.strip()}\n\n<sub>Measured at {commit[:12]} in [this run]({url}).</sub>\n"
    if len(body) > LIMIT:
        raise gh_api.Refused(f"the comment has {len(body):,} characters, and GitHub takes {LIMIT:,}")
    return body


def is_mine(user: dict[str, str] | None, body: str | None) -> bool:
    """Whether a workflow of ours wrote it. `user` is None once an account is gone."""
    ours = user is not None and user["type"] == "Bot" and user["login"] == gh_api.BOT
    return ours and (body or "").startswith(MARK)


if __name__ == "__main__":
    sys.exit(gh_api.run(main))
