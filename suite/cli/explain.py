"""``quantdrift explain``: a stored run's losses, down to the token."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING

from suite.cli.output import write_lines
from suite.cli.report import find_run
from suite.errors import UsageError, nearest

if TYPE_CHECKING:
    from suite.records import Run

NARROWEST = 40


def declare_explain(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift explain``."""
    parser.add_argument("run", nargs="?", help="a run.json, a directory with one, or a run's id (default: latest)")
    parser.add_argument("--variant", metavar="NAME", help="only this variant, with all of its flips")
    parser.add_argument("--case", metavar="DOMAIN/NAME", help="only this case, flipped or not")
    parser.add_argument("--width", type=int, help="columns (default: those of the terminal)")


def show_explanation(arguments: argparse.Namespace) -> int:
    """``quantdrift explain [RUN]``: what flipped, where the answers part, how close it was, what may be to blame."""
    from suite.reporting.explain import Asked, explain_lines
    from suite.store.runs import read_run

    file = find_run(arguments.run)
    run = read_run(file)
    check_names(run, arguments.variant, arguments.case)
    width = max(arguments.width or shutil.get_terminal_size().columns, NARROWEST)
    write_lines(explain_lines(run, Asked(variant=arguments.variant, case=arguments.case, width=width)))
    return 0


def check_names(run: Run, variant: str | None, case: str | None) -> None:
    """Raise UsageError for a variant or a case that the run does not hold, naming the nearest one."""
    variants = [result.variant.name for result in run.variants]
    if variant is not None and variant not in variants:
        raise UsageError(f"--variant: run {run.id} holds no '{variant}'; {nearest(variant, variants)}")
    cases = {trial.case for trial in run.trials} | {one.case for one in run.forced}
    if case is not None and case not in cases:
        raise UsageError(f"--case: run {run.id} holds no '{case}'; {_nearest_case(case, cases)}")


def _nearest_case(case: str, cases: set[str]) -> str:
    """A case whose name was given without its domain is the nearest one; else the most alike, or where to look."""
    if named := sorted(known for known in cases if known.rpartition("/")[2] == case):
        return f"did you mean '{named[0]}'?"
    hint = nearest(case, cases)
    return hint if hint.startswith("did") or len(cases) <= 12 else f"its {len(cases)} cases are named in its run.json"
