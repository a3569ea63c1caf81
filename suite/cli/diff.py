"""``quantdrift diff``: two states of the baselines. Nothing is loaded or measured, and nothing is written."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from suite.cli.ini import read_ini
from suite.cli.output import wants_color, write_lines
from suite.cli.report import places_of_run
from suite.errors import UsageError

if TYPE_CHECKING:
    from suite.records import Snapshot
    from suite.store.snapshots import Place

HEAD = "HEAD"
WORKING_TREE = "the working tree"


def declare_diff(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``quantdrift diff``."""
    what = "a git revision, a directory of baselines (or one that holds them), a run.json, or a run's id"
    parser.add_argument("base", nargs="?", metavar="BASE", help=f"{what} (default: HEAD of git)")
    parser.add_argument("head", nargs="?", metavar="HEAD", help="the same (default: what lies in the working tree)")
    parser.add_argument("--format", choices=("terminal", "markdown", "json"), default="terminal")
    parser.add_argument("--all", action="store_true", help="expand what is folded (terminal)")
    parser.add_argument("--width", type=int, help="columns (default: those of the terminal)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--matrix-file", metavar="FILE", help="the matrix file (default: matrix.toml)")
    parser.add_argument("--matrix-baselines", metavar="DIR", help="the directory of baselines (default: beside it)")


def show_diff(arguments: argparse.Namespace) -> int:
    """``quantdrift diff [BASE] [HEAD]``: what changed between them, and what to ask before it is approved."""
    from suite.gate.diffing import diff_snapshots

    place = find_place(arguments)
    base = read_side(arguments.base or HEAD, place)
    head = read_side(arguments.head, place)
    if base.is_empty and head.is_empty:
        raise UsageError(
            f"neither {base.label} nor {head.label} has baselines in {_shown(place.baselines)}; accept some with: "
            'pytest --model-matrix --matrix-update=new --matrix-reason "..."; or name their directory with --matrix-baselines'
        )
    diff = diff_snapshots(base, head)
    if arguments.format == "json":
        from suite.reporting.diff.json import diff_json

        write_lines([diff_json(diff).rstrip("\n")])
    elif arguments.format == "markdown":
        from suite.reporting.diff.markdown import diff_markdown

        write_lines([diff_markdown(diff).rstrip("\n")])
    else:
        from suite.reporting.diff.terminal import diff_lines

        width = arguments.width or shutil.get_terminal_size().columns
        write_lines(diff_lines(diff, width, wants_color(arguments.color), everything=arguments.all))
    return 0


def find_place(arguments: argparse.Namespace) -> Place:
    """Where the project below the current directory keeps its files: options, then what its pytest configuration sets."""
    from suite.store.snapshots import Place

    here = Path.cwd()
    configured = read_ini(here)
    matrix = here / Path(arguments.matrix_file or configured.get("matrix_file") or "matrix.toml").expanduser()
    given = arguments.matrix_baselines or configured.get("matrix_baselines")
    return Place(matrix=matrix, baselines=here / Path(given).expanduser() if given else matrix.parent / "baselines")


def read_side(given: str | None, place: Place) -> Snapshot:
    """The state that is meant: None is the working tree; else a file or a directory, a run's id, or a git revision.

    Raises UsageError for what is none of them, and for what is two at once.
    """
    from suite.store.snapshots import read_directory, read_revision, read_run_snapshot

    if given is None:
        return read_directory(place, label=WORKING_TREE)
    path = Path(given).expanduser()
    run = _run_file(given)
    if run is None and not path.is_dir():
        return read_revision(given, place)
    if path.name == given and _is_revision(given, place):
        raise UsageError(
            f"{given!r} is both a git revision and a file or run here; write ./{given} or refs/heads/{given}"
        )
    return read_run_snapshot(run) if run is not None else read_directory(_place_in(path, place), label=given)


def _run_file(given: str) -> Path | None:
    """The run that is meant, None when it is no run: a file, a directory with one, or the id of one."""
    return next((candidate for candidate in places_of_run(given) if candidate.is_file()), None)


def _is_revision(given: str, place: Place) -> bool:
    """Whether git, if there is any, knows a revision of this name."""
    from suite.store.snapshots import find_repository

    try:
        return find_repository(place).resolve(given) is not None
    except UsageError:
        return False


def _place_in(directory: Path, place: Place) -> Place:
    """Baselines and matrix file in a directory: that of a project, or that of its baselines. Raises UsageError for neither."""
    from suite.store.snapshots import Place

    absolute = directory.absolute()
    inside = absolute / place.baselines.name
    baselines = inside if inside.is_dir() else absolute
    if not any(file.suffix == ".json" for file in baselines.glob("*/*/**/*")):
        raise UsageError(
            f"{directory}: holds no baselines, neither as MODEL/quality/VARIANT.json nor below {place.baselines.name}/; "
            "name a directory of baselines, or one that holds it"
        )
    return Place(baselines=baselines, matrix=baselines.parent / place.matrix.name)


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
