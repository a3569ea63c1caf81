"""``quantdrift report``: a stored run, rendered again, for people and for what reads reports."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.output import deliver, tell, wants_color
from suite.errors import StoreError, UsageError
from suite.store.layout import HISTORY_FILE, LATEST, RUN_FILE, quality_file, run_directory, speed_file

if TYPE_CHECKING:
    from suite.records import Aspect, Run
    from suite.store.snapshots import Place

RUNS = Path(".quantdrift")
HISTORY = RUNS / HISTORY_FILE

BENCHMARK = "action-benchmark"


def declare_report(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift report``."""
    parser.add_argument("run", nargs="?", help="a run.json, a directory with one, or a run's id (default: latest)")
    parser.add_argument("--format", choices=tuple(FORMATS), default="terminal", help="see .github/OUTPUTS.md")
    parser.add_argument(
        "--output", metavar="FILE", help="write it there, whole or not at all (default: standard output)"
    )
    parser.add_argument("--width", type=int, help="terminal: columns (default: those of the terminal)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="terminal")
    parser.add_argument(
        "--direction", choices=("bigger", "smaller"), help=f"{BENCHMARK}: which is better; one file holds one direction"
    )
    parser.add_argument(
        "--history", metavar="FILE", help="html: earlier runs (default: .quantdrift/history.jsonl, if any)"
    )
    parser.add_argument("--matrix-file", metavar="FILE", help="annotations: the matrix file (default: matrix.toml)")
    parser.add_argument("--matrix-baselines", metavar="DIR", help="annotations: the directory of baselines")


def show_report(arguments: argparse.Namespace) -> int:
    """``quantdrift report [RUN]``: render a stored run again, without measuring anything."""
    from suite.store.runs import read_run

    if (arguments.format == BENCHMARK) is not (arguments.direction is not None):
        raise UsageError(
            f"--format {BENCHMARK} needs --direction bigger or --direction smaller, and nothing else takes it"
        )
    run = read_run(find_run(arguments.run))
    deliver(FORMATS[arguments.format](run, arguments), arguments.output)
    return 0


def places_of_run(given: str) -> list[Path]:
    """Where a run may lie that is named by its file, its directory, its id, or as the latest."""
    path = Path(given).expanduser()
    candidates = [path, path / RUN_FILE]
    if path.name == given:
        with contextlib.suppress(UsageError, StoreError):  # what cannot name a run is none
            candidates.append((RUNS / LATEST if given == LATEST else run_directory(RUNS, given)) / RUN_FILE)
    return candidates


def find_run(given: str | None) -> Path:
    """The ``run.json`` that is meant, the latest for None. Raises UsageError, naming every place that was looked at, when there
    is none.
    """
    candidates = places_of_run(LATEST if given is None else given)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise UsageError(f"there is no run here (looked at {looked}); make one with: pytest --model-matrix")


# ------------------------------------------------------------------------------------------------------ the formats


def _terminal(run: Run, arguments: argparse.Namespace) -> str:
    from suite.reporting.model import build_report
    from suite.reporting.terminal import lines

    width = arguments.width or shutil.get_terminal_size().columns
    color = wants_color(arguments.color, to_file=arguments.output is not None)
    return "\n".join([*lines(build_report(run), width=width, color=color), ""])


def _limits(run: Run, arguments: argparse.Namespace) -> str:
    from suite.reporting.limits import limits_lines, measured_limits

    width = arguments.width or shutil.get_terminal_size().columns
    return "\n".join([*limits_lines(measured_limits(run), width), ""])


def _markdown(run: Run, _: argparse.Namespace) -> str:
    from suite.reporting.markdown import render
    from suite.reporting.model import build_report

    return render(build_report(run)).rstrip("\n") + "\n"


def _json(_: Run, arguments: argparse.Namespace) -> str:
    """The file as it is stored, which was read to see that it is a run."""
    return find_run(arguments.run).read_text(encoding="utf-8")


def _html(run: Run, arguments: argparse.Namespace) -> str:
    from suite.reporting.page.stored import render_stored

    file = Path(arguments.history).expanduser() if arguments.history else HISTORY if HISTORY.is_file() else None
    page, faults = render_stored(run, file)
    for fault in faults:
        tell(f"NOT READ: {fault}")
    return page


def _summary(run: Run, _: argparse.Namespace) -> str:
    from suite.reporting.model import build_report
    from suite.reporting.summary import render_summary

    return render_summary(build_report(run))


def _annotations(run: Run, arguments: argparse.Namespace) -> str:
    from suite.cli.diff import find_place
    from suite.reporting.annotations import annotate

    place = find_place(arguments)
    return "".join(f"{line}\n" for line in annotate(run, lambda variant, aspect: locate(run, variant, aspect, place)))


def _benchmark(run: Run, arguments: argparse.Namespace) -> str:
    from suite.reporting.action_benchmark import render_benchmark

    return render_benchmark(run, arguments.direction)


def _csv(run: Run, _: argparse.Namespace) -> str:
    from suite.reporting.csv_rows import render_csv

    return render_csv(run)


FORMATS: Mapping[str, Callable[[Run, argparse.Namespace], str]] = {
    "terminal": _terminal,
    "limits": _limits,
    "markdown": _markdown,
    "json": _json,
    "html": _html,
    "summary": _summary,
    "annotations": _annotations,
    BENCHMARK: _benchmark,
    "csv": _csv,
}
"""Format → what renders it."""


def locate(run: Run, variant: str, aspect: Aspect, place: Place) -> str | None:
    """The file that an annotation of a variant belongs to, below the root of the repository that the project is in.

    It is the baseline of that aspect, else the other one, else the matrix file; None outside of a repository.
    """
    from suite.records import Aspect

    files: list[Path] = []
    with contextlib.suppress(StoreError):  # a name that can name no file has none
        files += [quality_file(place.baselines, run.model, variant)]
        files += [speed_file(place.baselines, run.model, run.environment.machine, variant)]
    if aspect is not Aspect.QUALITY:
        files.reverse()
    found = next((file.absolute() for file in (*files, place.matrix) if file.is_file()), None)
    root = next((parent for parent in found.parents if (parent / ".git").exists()), None) if found else None
    return found.relative_to(root).as_posix() if found and root else None
