"""Which files in a run's directory are this program's own: a directory that a person named may hold theirs, too."""

from __future__ import annotations

import json
from pathlib import Path

from suite.errors import StoreError, UsageError
from suite.store import layout

TOLD = (layout.REPORT_FILE, layout.PAGE_FILE)
"""What is rendered of a finished run; it belongs to the run that lies beside it."""


def own_journals(directory: Path) -> tuple[Path, ...]:
    """The journals of runs; files that are only named like one are a person's, and are left alone.

    Raises StoreError for a file that cannot be read.
    """
    return tuple(file for file in layout.journal_files(directory) if not _is_foreign_journal(file))


def own_run_file(directory: Path) -> Path | None:
    """``run.json``, when it is there and holds a run."""
    file = directory / layout.RUN_FILE
    return file if file.is_file() and _kind_in(file.read_bytes()) == "run" else None


def check_directory(directory: Path) -> None:
    """Raise UsageError when a run that is written into `directory` would write over a person's own files."""
    if own_run_file(directory) or own_journals(directory):
        return
    taken = [name for name in (layout.RUN_FILE, *TOLD, "journal.jsonl") if _has_content(directory / name)]
    if taken:
        raise UsageError(
            f"--matrix-report={directory}: {', '.join(taken)} is there and was not written by a run, which would write "
            "over it; name another directory, or move the file away"
        )


def remove_run(directory: Path) -> None:
    """Remove the journals of the run that lies in `directory`, and its run file with what tells of it; nothing else."""
    for file in own_journals(directory):
        file.unlink()
    found = own_run_file(directory)
    if found is not None:
        for file in (*(directory / name for name in TOLD), found):
            file.unlink(missing_ok=True)


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _is_foreign_journal(file: Path) -> bool:
    """Whether a first line is there, and is not a journal's header. A torn or empty one is what a kill leaves."""
    try:
        with file.open("rb") as opened:
            first = opened.readline()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error
    return first.endswith(b"\n") and _kind_in(first) != "journal"


def _kind_in(data: bytes) -> str | None:
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document.get("kind") if isinstance(document, dict) else None
