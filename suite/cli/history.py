"""``quantdrift history``: many stored runs as trends. Only ``--append`` writes, and only a line at the end."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.output import deliver, tell, wants_color
from suite.cli.report import HISTORY, find_run
from suite.errors import UsageError

if TYPE_CHECKING:
    from suite.records import Run
    from suite.reporting.history_series import Trend

LAST = 100
"""As `suite.reporting.history_series.LAST`, which is not imported to declare an option."""


def declare_history(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift history``."""
    parser.add_argument(
        "file", nargs="?", type=Path, default=HISTORY, metavar="FILE", help=f"the history (default: {HISTORY})"
    )
    parser.add_argument(
        "--append", metavar="RUN", help="append this run: a run.json, a directory with one, an id, or latest"
    )
    parser.add_argument("--commit", metavar="SHA", help="with --append: the commit that the run measured")
    parser.add_argument("--variant", metavar="NAME", help="only this variant")
    parser.add_argument("--metric", metavar="NAME", help="only this metric, in every scope, e.g. itl_s")
    parser.add_argument("--machine", metavar="NAME", help="only this machine")
    parser.add_argument(
        "--last", type=int, metavar="N", default=LAST, help=f"so many runs of each machine (default: {LAST})"
    )
    parser.add_argument("--format", choices=("terminal", "json", "html"), default="terminal")
    parser.add_argument(
        "--output", metavar="FILE", help="write it there, whole or not at all (default: standard output)"
    )
    parser.add_argument("--width", type=int, help="columns (default: those of the terminal)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--matrix-file", metavar="FILE", help="the matrix file (default: matrix.toml)")
    parser.add_argument("--matrix-baselines", metavar="DIR", help="the directory of baselines (default: beside it)")


def show_history(arguments: argparse.Namespace) -> int:
    """``quantdrift history [FILE]``: what moved from run to run, and the run at which a level shifted."""
    if arguments.append is not None:
        return append_run(arguments)
    from suite.reporting.history_series import Selection, build_trends
    from suite.store.history import scan_history

    if arguments.last < 1:
        raise UsageError(f"--last: must be 1 or more (got {arguments.last})")
    if arguments.commit is not None:
        raise UsageError("--commit: belongs to a run that is appended; give it together with --append RUN")
    file: Path = arguments.file
    lines = scan_history(file) if file.is_file() else None
    if lines is None or not (lines.entries or lines.faults):
        raise UsageError(f"{file}: there is no history yet; begin one with: quantdrift history --append latest")
    trends = build_trends(
        lines.entries,
        Selection(variant=arguments.variant, metric=arguments.metric, machine=arguments.machine, last=arguments.last),
    )
    deliver(_render(trends, lines.faults, arguments), arguments.output)
    return 0


def _render(trends: Sequence[Trend], faults: Sequence[str], arguments: argparse.Namespace) -> str:
    scopes = arguments.metric is not None
    if arguments.format == "json":
        from suite.reporting.history_json import history_json

        return history_json(trends, faults)
    if arguments.format == "html":
        from suite.reporting.page.history import render_history

        return render_history(trends, faults, scopes=scopes)
    from suite.reporting.history_text import Screen, history_lines

    screen = Screen(
        width=arguments.width or shutil.get_terminal_size().columns,
        color=wants_color(arguments.color, to_file=arguments.output is not None),
        ascii=arguments.output is None and not _shows_blocks(),
    )
    return "\n".join([*history_lines(trends, faults, screen, scopes=scopes), ""])


def append_run(arguments: argparse.Namespace) -> int:
    """``quantdrift history --append RUN``: the run's line at the end of the file, unless it is in it already."""
    from suite.reporting.history_entry import enter_run
    from suite.store.history import append_history, scan_history
    from suite.store.runs import read_run

    run = read_run(find_run(arguments.append))
    file: Path = arguments.file
    if append_history(file, enter_run(run, accepted=was_accepted(run, arguments), commit=arguments.commit)):
        tell(f"{file}: run {run.id} was appended")
    else:
        tell(f"{file}: holds run {run.id} already; nothing was written")
    for fault in scan_history(file).faults:
        tell(f"NOT READ: {fault}")
    return 0


def was_accepted(run: Run, arguments: argparse.Namespace) -> bool:
    """Whether any of the stored baselines is from this run, which must have been asked to accept some."""
    if run.settings.get("update") is None:
        return False
    from suite.cli.diff import find_place
    from suite.store.baselines import BaselineStore

    root = find_place(arguments).baselines
    for result in run.variants:
        stored = BaselineStore(root).read(run.model, result.variant.name, run.environment.machine)
        found = [one for one in (stored.quality, stored.speed, stored.frozen_quality, stored.frozen_speed) if one]
        if any(one.provenance.run == run.id for one in found):
            return True
    tell(
        f"run {run.id} was to update baselines, but none of those in {root} is from it: it is entered as one that did not"
    )
    return False


def _shows_blocks() -> bool:
    """Whether standard output can show the signs of a sparkline."""
    from suite.reporting.history_signs import BLOCKS

    try:
        BLOCKS.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
