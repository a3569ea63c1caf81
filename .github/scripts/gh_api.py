"""GitHub through its own command line, ``gh``: what these scripts ask of it, and how they speak to the log.

``gh`` holds the token (``GH_TOKEN``) and makes the connection; nothing here does. These scripts need Python alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PATIENCE_S = 120
BOT = "github-actions[bot]"
"""Who writes with the token of a workflow."""


class Refused(Exception):
    """Something that must not be used, or cannot be had. The message says what and why; it may quote hostile text."""


def ask(path: str, **query: str) -> Any:
    """What GitHub answers to a GET of `path`, decoded. Raises Refused when it does not answer."""
    return json.loads(_gh("-X", "GET", path, *_fields(query)))


def ask_all(path: str, **query: str) -> list[Any]:
    """Every page of a listing. Raises Refused when it is none, or GitHub does not answer."""
    pages = [*_documents(_gh("-X", "GET", "--paginate", path, *_fields({"per_page": "100", **query})).decode())]
    if not all(isinstance(page, list) for page in pages):
        raise Refused(f"{path}: GitHub answered with something else than a list")
    return [entry for page in pages for entry in page]


def send(method: str, path: str, body: Mapping[str, Any]) -> Any:
    """Send `body` as JSON. It goes through standard input, where nothing in it is an option or the name of a file."""
    return json.loads(_gh("-X", method, path, "--input", "-", stdin=json.dumps(body).encode()))


def download(path: str, *, limit: int) -> bytes:
    """The bytes behind `path`. Raises Refused when there are more than `limit`."""
    with subprocess.Popen(["gh", "api", path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        got = process.stdout.read(limit + 1)
        if len(got) > limit:
            process.kill()
            raise Refused(f"{path}: more than {limit:,} bytes")
        if process.wait(PATIENCE_S) != 0:
            raise Refused(f"{path}: gh ended with {process.returncode}")
    return got


def read_event() -> dict[str, Any]:
    """The event that started the workflow: written by GitHub, but its names of branches and repositories by anybody."""
    event: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    return event


def say(text: str) -> None:
    """One line to the log, in which the runner finds no command (``::error::``, ``##[group]``) and a terminal no control."""
    line = "".join(character for character in " ".join(text.split()) if character.isprintable())
    sys.stdout.write(re.sub(r":(?=:)|#(?=#)", r"\g<0> ", line) + "\n")


def put_output(name: str, value: int | str) -> None:
    """Set an output of this step, for later ones. Raises Refused for a value that would set another one too."""
    text = str(value)
    if text != text.strip() or len(text.splitlines()) != 1:
        raise Refused(f"output {name}: {text!r} is not one line")
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}={text}\n")


def run(script: Callable[[], None]) -> int:
    """The exit status of `script`: 0, or 1 where it refused, with the reason in the log."""
    try:
        script()
    except Refused as refusal:
        say(f"refused: {refusal}")
        return 1
    return 0


def _gh(*arguments: str, stdin: bytes | None = None) -> bytes:
    try:
        asked = subprocess.run(
            ["gh", "api", *arguments], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise Refused(f"gh api {' '.join(arguments)}: no answer within {PATIENCE_S} s") from late
    if asked.returncode != 0:
        told = asked.stderr.decode(errors="replace").strip()
        raise Refused(f"gh api {' '.join(arguments)}: {told or f'status {asked.returncode}'}")
    return asked.stdout


def _fields(query: Mapping[str, str]) -> list[str]:
    """As ``-f``, which encodes them: the name of a branch may hold ``&`` and ``=``."""
    return [part for name, value in query.items() for part in ("-f", f"{name}={value}")]


def _documents(text: str) -> Iterator[Any]:
    """Each JSON document in `text`: ``--paginate`` may write one a page, with nothing between them."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = decoder.raw_decode(text, at)
        yield document
