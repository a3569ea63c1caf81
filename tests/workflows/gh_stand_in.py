"""A stand-in for ``gh``: the few calls that the scripts make, answered from files, and each one written down.

It is a program on PATH and knows nothing of the scripts. ``GH_STAND_IN`` names its directory: lists in ``pulls.json``,
``runs.json``, ``artifacts.json``, ``issues.json``, and ``comments.json`` (by number); ``calls.jsonl`` is what was asked.
Listings come in pages of two, one JSON document a page, as ``gh api --paginate`` wrote them for years. Like ``gh``, it
refuses without a token.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

STATE = Path(os.environ["GH_STAND_IN"])
PAGE = 2
Query = Mapping[str, str]


def main(arguments: list[str]) -> int:
    call: dict[str, Any] = {"arguments": arguments}
    if not os.environ.get("GH_TOKEN"):
        sys.stderr.write("gh: set the GH_TOKEN environment variable\n")
        return 4
    if arguments[:2] == ["auth", "setup-git"]:
        write_down(call)
        return 0
    if arguments[:2] == ["pr", "create"]:
        options = dict(zip(arguments[2::2], arguments[3::2], strict=True))
        write_down({**call, "body": Path(options["--body-file"]).read_text(encoding="utf-8"), "options": options})
        sys.stdout.write("https://github.example/org/toy/pull/99\n")
        return 0
    return call_api(arguments[1:], call)


def call_api(arguments: list[str], call: dict[str, Any]) -> int:
    method, path, query, paginate, body = "GET", "", {}, False, None
    words = iter(arguments)
    for word in words:
        match word:
            case "-X":
                method = next(words)
            case "-f":
                name, _, value = next(words).partition("=")
                query[name] = value
            case "--paginate":
                paginate = True
            case "--input":
                assert next(words) == "-"
                body = json.load(sys.stdin)
            case _:
                path = word
    write_down({**call, "method": method, "path": path, "query": query, "body": body})
    for wanted, pattern, answer in ROUTES:
        found = re.fullmatch(f"repos/org/toy/{pattern}", path)
        if wanted == method and found:
            reply(answer(*found.groups(), query if body is None else body), paginate=paginate)
            return 0
    sys.stderr.write("gh: Not Found (HTTP 404)\n")
    return 1


def reply(answer: Any, *, paginate: bool) -> None:
    if isinstance(answer, bytes):
        sys.stdout.buffer.write(answer)
    elif paginate:
        for at in range(0, max(len(answer), 1), PAGE):
            json.dump(answer[at : at + PAGE], sys.stdout)
    else:
        json.dump(answer, sys.stdout)


def load(name: str, empty: Any) -> Any:
    file = STATE / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else empty


def store(name: str, content: Any) -> None:
    (STATE / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")


def write_down(call: dict[str, Any]) -> None:
    with (STATE / "calls.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(call) + "\n")


def list_pulls(query: Query) -> Any:
    owner, _, branch = query["head"].partition(":")
    return [
        pull
        for pull in load("pulls", [])
        if pull["state"] == query["state"]
        and pull["head"]["ref"] == branch
        and pull["head"]["repo"]["full_name"].split("/")[0] == owner
    ]


def one_pull(number: str, _: Query) -> Any:
    return next(pull for pull in load("pulls", []) if pull["number"] == int(number))


def list_artifacts(run: str, query: Query) -> Any:
    found = [one for one in load("artifacts", []) if one["run"] == int(run) and one["name"] == query["name"]]
    return {"total_count": len(found), "artifacts": found}


def read_archive(artifact: str, _: Query) -> bytes:
    return (STATE / f"{artifact}.zip").read_bytes()


def list_runs(workflow: str, query: Query) -> Any:
    found = [
        run
        for run in load("runs", [])
        if (run["workflow"], run["head_branch"], run["status"]) == (workflow, query["branch"], query["status"])
    ]
    return {"total_count": len(found), "workflow_runs": sorted(found, key=lambda run: -run["id"])}


def list_comments(number: str, _: Query) -> Any:
    return load("comments", {}).get(number, [])


def add_comment(number: str, body: Query) -> Any:
    comments = load("comments", {})
    made = {"id": 1000 + sum(map(len, comments.values())), "user": BOT, "body": body["body"], "html_url": "https://c"}
    comments.setdefault(number, []).append(made)
    store("comments", comments)
    return made


def edit_comment(identifier: str, body: Query) -> Any:
    comments = load("comments", {})
    made = next(one for of in comments.values() for one in of if one["id"] == int(identifier))
    made["body"] = body["body"]
    store("comments", comments)
    return made


def list_issues(query: Query) -> Any:
    return [issue for issue in load("issues", []) if issue["state"] == query["state"]]


def add_issue(body: Query) -> Any:
    issues = load("issues", [])
    made = {"number": len(issues) + 1, "state": "open", "user": BOT, "html_url": "https://i", **body}
    store("issues", [*issues, made])
    return made


def edit_issue(number: str, body: Query) -> Any:
    issues = load("issues", [])
    made = next(issue for issue in issues if issue["number"] == int(number))
    made.update(body)
    store("issues", issues)
    return made


BOT = {"login": "github-actions[bot]", "type": "Bot"}
ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", r"pulls", list_pulls),
    ("GET", r"pulls/(\d+)", one_pull),
    ("GET", r"actions/runs/(\d+)/artifacts", list_artifacts),
    ("GET", r"actions/artifacts/(\d+)/zip", read_archive),
    ("GET", r"actions/workflows/([^/]+)/runs", list_runs),
    ("GET", r"issues/(\d+)/comments", list_comments),
    ("POST", r"issues/(\d+)/comments", add_comment),
    ("PATCH", r"issues/comments/(\d+)", edit_comment),
    ("GET", r"issues", list_issues),
    ("POST", r"issues", add_issue),
    ("PATCH", r"issues/(\d+)", edit_issue),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
