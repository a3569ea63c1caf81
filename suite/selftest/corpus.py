"""Launches that were recorded once and are replayed often: what is in such a file, and how it is read and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suite.atomic import write_text
from suite.errors import StoreError
from suite.schema import dump, parse

SCHEMA = 1
DIGITS = 5
"""Significant digits of a time: a rounding of 0.005 % is far below the noise that the file is about."""
DIRECTORY = Path(__file__).parent / "corpora"

Regime = Literal["quiet", "contended", "unpinned", "coarse", "sessions"]
DUETS: tuple[Regime, ...] = ("quiet", "contended", "unpinned", "coarse")
"""Regimes in which two equal arms were measured side by side; ``sessions`` holds one arm, for stored baselines."""

ABOUT: dict[Regime, str] = {
    "quiet": "both arms on one CPU, nothing else running",
    "contended": "both arms on one CPU, two bursty neighbours (on and off for 3 s on average)",
    "unpinned": "the arms on different CPUs, or wherever the system puts them",
    "coarse": "slices of 2 s instead of 0.2 s",
    "sessions": "one arm alone, in sessions of some launches that lie apart",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The slices of one arm in one launch, in order. Times in milliseconds a token."""

    median_ms: tuple[float, ...]
    """Median gap of each slice, first gaps left out, as in `suite.metrics.speed`."""
    mean_ms: tuple[float, ...]
    """All gaps of each slice / their number."""
    pressure: tuple[float | None, ...]
    """What the witness of each slice said."""
    cold_ms: float
    """Mean gap of the very first slice after the load, which is part of no launch value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuetLaunch:
    """One pair of fresh processes with the same work; slice i of one lies next to slice i of the other."""

    a: Arm
    b: Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class SoloLaunch:
    """One fresh process, with the yardstick's readings beside it in MB/s."""

    arm: Arm
    hash_mb_s: float
    copy_mb_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Launches that were taken in a row."""

    at_s: float
    """Seconds since the first session began."""
    launches: tuple[SoloLaunch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One file."""

    schema: int
    regime: Regime
    about: str
    machine: str
    recorded: str
    """ISO 8601, UTC."""
    command: str
    tokens: int
    """Tokens of a slice."""
    launches: tuple[DuetLaunch, ...] = ()
    sessions: tuple[Session, ...] = ()


def corpus_file(regime: Regime, directory: Path = DIRECTORY) -> Path:
    """Where a regime's corpus lies."""
    return directory / f"{regime}.json"


def read_corpus(file: Path) -> Corpus:
    """Raises StoreError naming the file and what is wrong with it."""
    again = "record it again: benchmarks/record_corpora.py"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise StoreError(f"{file}: no corpus can be read: {fault}; {again}") from fault
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise StoreError(f"{file}: schema {found}, and this version reads {SCHEMA}; {again}")
    return parse(Corpus, data, where=str(file), error=StoreError)


def read_corpora(regimes: Sequence[Regime], directory: Path = DIRECTORY) -> dict[Regime, Corpus]:
    """The corpora that are there, by regime. Raises StoreError for one that cannot be read."""
    files = {regime: corpus_file(regime, directory) for regime in regimes}
    return {regime: read_corpus(file) for regime, file in files.items() if file.is_file()}


def write_corpus(corpus: Corpus, directory: Path = DIRECTORY) -> Path:
    """Write it whole, one launch or session a line, so that a diff reads as a list."""
    data = dump(corpus)
    rows = {name: data.pop(name) for name in ("launches", "sessions")}
    head = json.dumps(data, indent=1)[:-2]
    tail = [f' "{name}": [\n' + ",\n".join(map(_line, held)) + "\n ]" for name, held in rows.items() if held]
    file = corpus_file(corpus.regime, directory)
    write_text(file, ",\n".join([head, *tail]) + "\n}\n")
    return file


def round_time(value: float) -> float:
    """As stored."""
    return float(f"{value:.{DIGITS}g}")


def _line(row: object) -> str:
    return "  " + json.dumps(row, separators=(",", ":"))
