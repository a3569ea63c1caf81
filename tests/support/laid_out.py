"""A project on disk whose last run is a made-up one."""

from __future__ import annotations

from pathlib import Path

from suite.metrics.catalog import SPECS
from suite.records import Run
from suite.store.runs import write_run


def lay_out(root: Path, run: Run) -> None:
    """Write `run` where a finished run lies below `root`, as the latest one."""
    directory = root / ".quantdrift" / "runs" / run.id
    directory.mkdir(parents=True)
    write_run(run, directory, specs=SPECS)
    (root / ".quantdrift" / "latest").symlink_to(directory, target_is_directory=True)
