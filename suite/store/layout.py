"""Where things lie: baselines by model, aspect, machine and variant; runs by identifier."""

from __future__ import annotations

import os
import re
from pathlib import Path

from suite.errors import StoreError

RUN_FILE = "run.json"
REPORT_FILE, PAGE_FILE = "report.md", "report.html"
"""What is told of a run, beside it."""
HISTORY_FILE = "history.jsonl"
LATEST = "latest"
FROZEN = ".frozen"
"""Between a variant's name and ``.json``: the first baseline that was accepted, beside the latest one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def quality_file(root: Path, model: str, variant: str) -> Path:
    """``<root>/<model>/quality/<variant>.json``."""
    return root / safe_name(model, "model") / "quality" / _variant_file(variant)


def speed_file(root: Path, model: str, machine: str, variant: str) -> Path:
    """``<root>/<model>/speed/<machine>/<variant>.json``."""
    return speed_directory(root, model) / safe_name(machine, "machine") / _variant_file(variant)


def speed_directory(root: Path, model: str) -> Path:
    """``<root>/<model>/speed``, which holds a directory for each machine."""
    return root / safe_name(model, "model") / "speed"


def frozen_file(file: Path) -> Path:
    """``<variant>.frozen.json`` beside ``<variant>.json``."""
    return file.with_name(f"{file.name.removesuffix('.json')}{FROZEN}.json")


def noise_file(root: Path, model: str, machine: str) -> Path:
    """``<root>/<model>/noise/<machine>.json``."""
    return root / safe_name(model, "model") / "noise" / f"{safe_name(machine, 'machine')}.json"


def trace_file(root: Path, model: str) -> Path:
    """``<root>/<model>/trace.npz``."""
    return root / safe_name(model, "model") / "trace.npz"


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


def _variant_file(variant: str) -> str:
    """The file's name of a variant, which must not look like that of another one's frozen baseline."""
    if variant.endswith(FROZEN):
        raise StoreError(f"variant name {variant!r} must not end in {FROZEN!r}: baselines that are kept are named so")
    return f"{safe_name(variant, 'variant')}.json"
