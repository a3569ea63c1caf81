"""``quantdrift``: what people do without running a matrix.

A command is one function that takes parsed arguments and returns an exit status, and one that declares its arguments;
`COMMANDS` names them. Imports that cost are inside the commands, so that ``quantdrift --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from suite.errors import UsageError
from suite.store.layout import LATEST, RUN_FILE, run_directory

OK, USAGE = 0, 2
_RUNS = Path(".quantdrift")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One sub-command."""

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0, or 2 when the call or a file is wrong."""
    parsed = _parser().parse_args(arguments)
    try:
        return COMMANDS[parsed.command].execute(parsed)
    except UsageError as error:
        sys.stderr.write(f"quantdrift: {error}\n")
        return USAGE
    except BrokenPipeError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # the reader (head, less) left
        return OK


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
        _write([file.read_text(encoding="utf-8").rstrip("\n")])
        return OK
    report = build_report(run)
    if arguments.format == "markdown":
        from suite.reporting.markdown import render

        _write([render(report).rstrip("\n")])
        return OK
    from suite.reporting.terminal import lines

    width = arguments.width or shutil.get_terminal_size().columns
    _write(lines(report, width=width, color=_wants_color(arguments.color)))
    return OK


def find_run(given: str | None) -> Path:
    """The ``run.json`` that is meant. Raises UsageError, naming every place that was looked at, when there is none."""
    if given is None:
        candidates = [_RUNS / LATEST / RUN_FILE]
    else:
        path = Path(given).expanduser()
        candidates = [path, path / RUN_FILE]
        if path.name == given:
            candidates.append(run_directory(_RUNS, given) / RUN_FILE)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise UsageError(f"there is no run here (looked at {looked}); make one with: pytest --model-matrix")


COMMANDS = {
    "report": Command(summary="show a stored run again", declare=declare_report, execute=show_report),
}
"""Sub-command → what it does."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quantdrift",
        description="Work with what `pytest --model-matrix` has measured.",
        epilog="To measure: pytest --model-matrix (its options: pytest --help).",
    )
    parser.add_argument("--version", action="version", version=f"quantdrift {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.declare(commands.add_parser(name, help=command.summary, description=command.summary))
    return parser


def _version() -> str:
    try:
        return metadata.version("quantdrift")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _wants_color(choice: str) -> bool:
    """``auto``: a terminal, unless NO_COLOR is set (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _write(lines: Iterable[str]) -> None:
    """Write lines; what the terminal's encoding lacks is escaped, so that an old locale is no crash."""
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        sys.stdout.write(line.encode(encoding, errors="backslashreplace").decode(encoding) + "\n")


if __name__ == "__main__":
    sys.exit(main())
