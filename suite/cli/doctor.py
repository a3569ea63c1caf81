"""``quantdrift doctor``: a stored run's check list."""

from __future__ import annotations

import argparse
import shutil

from suite.cli.explain import NARROWEST, check_names
from suite.cli.output import deliver
from suite.cli.report import find_run


def declare_doctor(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift doctor``."""
    parser.add_argument("run", nargs="?", help="a run.json, a directory with one, or a run's id (default: latest)")
    parser.add_argument("--variant", metavar="NAME", help="only this variant, and what concerns the whole run")
    parser.add_argument(
        "--all",
        action="store_true",
        help="what passed and what does not apply, too, with its evidence (json always holds it)",
    )
    parser.add_argument("--format", choices=("terminal", "json", "markdown"), default="terminal")
    parser.add_argument(
        "--output", metavar="FILE", help="write it there, whole or not at all (default: standard output)"
    )
    parser.add_argument("--width", type=int, help="terminal: columns (default: those of the terminal)")


def show_doctor(arguments: argparse.Namespace) -> int:
    """``quantdrift doctor [RUN]``: why it is slow, and whether it is what it says, as far as the run tells. Always status 0."""
    from suite.doctor import examine
    from suite.reporting.doctor import checklist_json, checklist_lines, checklist_markdown
    from suite.store.runs import read_run

    run = read_run(find_run(arguments.run))
    check_names(run, arguments.variant, None)
    items = examine(run, arguments.variant)
    width = max(arguments.width or shutil.get_terminal_size().columns, NARROWEST)
    match arguments.format:
        case "json":
            text = checklist_json(run, items)
        case "markdown":
            text = checklist_markdown(run, items, everything=arguments.all)
        case _:
            text = "\n".join([*checklist_lines(run, items, width=width, everything=arguments.all), ""])
    deliver(text, arguments.output)
    return 0
