"""``quantdrift``: what people do without running a matrix.

A command is one file with one function that declares its arguments and one that takes them, parsed, and returns an exit
status; `COMMANDS` names them. Imports that cost are inside the functions, so that ``quantdrift --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from suite.cli.calibrate import declare_calibrate, run_calibrate
from suite.cli.comment import declare_comment, show_comment
from suite.cli.diff import declare_diff, show_diff
from suite.cli.doctor import declare_doctor, show_doctor
from suite.cli.explain import declare_explain, show_explanation
from suite.cli.history import declare_history, show_history
from suite.cli.load import declare_load, run_load
from suite.cli.plan import declare_plan, show_plan
from suite.cli.recommend import declare_recommend, show_recommendation
from suite.cli.report import declare_report, find_run, show_report
from suite.cli.selftest import declare_selftest, run_selftest
from suite.errors import UsageError

__all__ = ["COMMANDS", "find_run", "main"]

OK, USAGE = 0, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One sub-command."""

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0, 2 when the call or a file is wrong, or what a command says."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parsed = _parser(given).parse_args(given)
    try:
        return COMMANDS[parsed.command].execute(parsed)
    except UsageError as error:
        sys.stderr.write(f"quantdrift: {error}\n")
        return USAGE
    except BrokenPipeError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # the reader (head, less) left
        return OK


COMMANDS = {
    "report": Command(summary="show a stored run again", declare=declare_report, execute=show_report),
    "explain": Command(
        summary="what a variant answers otherwise than the reference, down to the token, and why",
        declare=declare_explain,
        execute=show_explanation,
    ),
    "recommend": Command(
        summary="which variant of a stored run keeps within the loss, speed and memory that you can live with",
        declare=declare_recommend,
        execute=show_recommendation,
    ),
    "doctor": Command(
        summary="why is it slow: the check list over a stored run, with evidence and remedies",
        declare=declare_doctor,
        execute=show_doctor,
    ),
    "diff": Command(
        summary="what changed between two states of the baselines, and what to ask before approving it",
        declare=declare_diff,
        execute=show_diff,
    ),
    "comment": Command(
        summary="a run or a diff of a stranger as a comment in which nothing acts",
        declare=declare_comment,
        execute=show_comment,
    ),
    "history": Command(
        summary="what moved from run to run, and the run at which a level shifted",
        declare=declare_history,
        execute=show_history,
    ),
    "plan": Command(
        summary="what the cases, launches and noise at hand can find, and what more would cost",
        declare=declare_plan,
        execute=show_plan,
    ),
    "calibrate": Command(
        summary="measure how much this machine varies when nothing changes",
        declare=declare_calibrate,
        execute=run_calibrate,
    ),
    "load": Command(
        summary="what a server delivers to one client and to many, and where more clients gain little",
        declare=declare_load,
        execute=run_load,
    ),
    "selftest": Command(
        summary="prove on this machine that verdicts neither cry wolf nor sleep",
        declare=declare_selftest,
        execute=run_selftest,
    ),
}
"""Sub-command → what it does."""


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for what is `given`: a command that is not named there need not declare its arguments."""
    parser = argparse.ArgumentParser(
        prog="quantdrift",
        description="Work with what `pytest --model-matrix` has measured.",
        epilog="To measure: pytest --model-matrix (its options: pytest --help).",
    )
    parser.add_argument("--version", action="version", version=f"quantdrift {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.summary, description=command.summary)
        if name in given:
            command.declare(own)
    return parser


def _version() -> str:
    try:
        return metadata.version("quantdrift")
    except metadata.PackageNotFoundError:
        return "(not installed)"
