"""``quantdrift report``: a stored run, rendered again."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from suite.cli.output import write_lines
from suite.errors import UsageError
from suite.store.layout import LATEST, RUN_FILE, run_directory

RUNS = Path(".quantdrift")


def declare_report(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift report``."""
    parser.add_argument("run", nargs="?", help="a run.json, a directory with one, or a run's id (default: latest)")
    parser.add_argument("--format", choices=("terminal", "markdown", "json"), default="terminal")
    parser.add_argument("--width", type=int, help="columns (default: those of the terminal)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def show_report(arguments: argparse.Namespace) -> int:
    """``quantdrift report [RUN]``: render a stored run again, without measuring anything."""
    from suite.reporting.model import build_report
    from suite.store.runs import read_run

    file = find_run(arguments.run)
    run = read_run(file)
    if arguments.format == "json":
        write_lines([file.read_text(encoding="utf-8").rstrip("\n")])
        return 0
    report = build_report(run)
    if arguments.format == "markdown":
        from suite.reporting.markdown import render

        write_lines([render(report).rstrip("\n")])
        return 0
    from suite.reporting.terminal import lines

    width = arguments.width or shutil.get_terminal_size().columns
    write_lines(lines(report, width=width, color=_wants_color(arguments.color)))
    return 0


def find_run(given: str | None) -> Path:
    """The ``run.json`` that is meant. Raises UsageError, naming every place that was looked at, when there is none."""
    if given is None:
        candidates = [RUNS / LATEST / RUN_FILE]
    else:
        path = Path(given).expanduser()
        candidates = [path, path / RUN_FILE]
        if path.name == given:
            candidates.append(run_directory(RUNS, given) / RUN_FILE)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise UsageError(f"there is no run here (looked at {looked}); make one with: pytest --model-matrix")


def _wants_color(choice: str) -> bool:
    """``auto``: a terminal, unless NO_COLOR is set (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
