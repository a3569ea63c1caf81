"""Where things lie: baselines by model, aspect, machine and variant; runs by identifier."""

from __future__ import annotations

import os
import re
from pathlib import Path

from suite.errors import StoreError

RUN_FILE = "run.json"
LATEST = "latest"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def quality_file(root: Path, model: str, variant: str) -> Path:
    """``<root>/<model>/quality/<variant>.json``."""
    return root / safe_name(model, "model") / "quality" / f"{safe_name(variant, 'variant')}.json"


def speed_file(root: Path, model: str, machine: str, variant: str) -> Path:
    """``<root>/<model>/speed/<machine>/<variant>.json``."""
    return speed_directory(root, model) / safe_name(machine, "machine") / f"{safe_name(variant, 'variant')}.json"


def speed_directory(root: Path, model: str) -> Path:
    """``<root>/<model>/speed``, which holds a directory for each machine."""
    return root / safe_name(model, "model") / "speed"


def run_directory(root: Path, run: str) -> Path:
    """``<root>/runs/<run>``, where `root` is the project's ``.quantdrift``."""
    return root / "runs" / safe_name(run, "run")


def journal_file(directory: Path, worker: str | None = None) -> Path:
    """``journal.jsonl``, or ``journal-<worker>.jsonl`` for one of several processes that write at once."""
    return directory / ("journal.jsonl" if worker is None else f"journal-{safe_name(worker, 'worker')}.jsonl")


def journal_files(directory: Path) -> tuple[Path, ...]:
    """Every journal in a run's directory, the unnamed one first, then by name."""
    return tuple(sorted(directory.glob("journal*.jsonl"), key=lambda file: (file.name != "journal.jsonl", file.name)))


def link_latest(root: Path, directory: Path) -> None:
    """Point ``<root>/latest`` at a finished run, in one step. Raises StoreError where links cannot be made."""
    temporary = root / f".{LATEST}.{os.getpid()}.tmp"
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(os.path.relpath(directory, root), target_is_directory=True)
        temporary.replace(root / LATEST)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{root / LATEST}: could not link to {directory}: {error.strerror or error}") from error


def safe_name(name: str, what: str) -> str:
    """`name`, if it can be a file's name everywhere and leads nowhere else. Raises StoreError otherwise."""
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"{what} name {name!r} cannot name a file: use letters, digits and . _ + - and start with a letter or digit"
        )
    return name
