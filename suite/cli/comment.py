"""``quantdrift comment``: a file of a stranger as a comment in which nothing acts. Nothing is loaded, measured or run."""

from __future__ import annotations

import argparse
from pathlib import Path

from suite.cli.output import deliver


def declare_comment(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift comment``."""
    parser.add_argument("file", metavar="FILE", help="a run.json, or what quantdrift diff --format json wrote")
    parser.add_argument("--kind", choices=("run", "diff"), help="refuse the other one (default: what the file says)")
    parser.add_argument(
        "--output", metavar="FILE", help="write it there, whole or not at all (default: standard output)"
    )


def show_comment(arguments: argparse.Namespace) -> int:
    """``quantdrift comment FILE``: Markdown for a comment of at most 60 000 characters. Raises UsageError for a refusal."""
    from suite.reporting.comment import MOST_BYTES, Refused, render_comment

    file = Path(arguments.file).expanduser()
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise Refused(file.name, f"cannot be read: {error.strerror or error}") from error
    deliver(render_comment(data, kind=arguments.kind, where=file.name), arguments.output)
    return 0
