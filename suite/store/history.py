"""The history: one line of JSON for each run, appended by whoever keeps it. The line is drawn in ``.github/HISTORY.md``.

A line that cannot be read is never dropped: it stays where it is and is named with its number, by whatever reads the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.atomic import sync_directory
from suite.errors import StoreError
from suite.records import SCHEMA_VERSION, HistoryEntry
from suite.schema import dump, parse
from suite.store import codec

KIND = "history"
SIGNIFICANT_DIGITS = 6
_AGAIN = "quantdrift history --append RUN"
_FIELDS = tuple(field.name for field in dataclasses.fields(HistoryEntry))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLines:
    """What a history file holds, as far as it can be read."""

    entries: tuple[HistoryEntry, ...]
    """In the order of the file."""
    faults: tuple[str, ...] = ()
    """A sentence for each line that cannot be read, with its number and what to do."""


def read_history(file: Path) -> tuple[HistoryEntry, ...]:
    """The runs of a history file, in its order. Raises StoreError that names each line that cannot be read."""
    lines = scan_history(file)
    if lines.faults:
        raise StoreError("\n".join(lines.faults))
    return lines.entries


def scan_history(file: Path) -> HistoryLines:
    """The runs of a history file beside what is wrong with the others.

    Raises StoreError for a file that cannot be read, and for a line of a newer quantdrift: what it means is not known here.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}") from error
    entries: list[HistoryEntry] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    for number, line in _numbered(data):
        where = f"{file}, line {number}"
        document = _parse_line(line, where)
        if isinstance(document, str):
            faults.append(document)
            continue
        _refuse_newer(document, where)
        try:
            entry = _decode(document, where)
        except StoreError as error:
            faults.append(f"{error}; the line is kept: mend it, or delete it and append its run anew with: {_AGAIN}")
            continue
        if seen.setdefault(entry.run, number) == number:
            entries.append(entry)
        else:
            faults.append(f"{where}: run {entry.run} is on line {seen[entry.run]} already; delete one of them")
    return HistoryLines(entries=tuple(entries), faults=tuple(faults))


def append_history(file: Path, entry: HistoryEntry) -> bool:
    """Append a run, and wait until it is on the disk. False, and nothing is written, when the file holds that run already.

    Two processes wait for one another. A line that a kill cut off keeps a line of its own, so that the new one does not melt
    into it. Raises StoreError when the file cannot be written, or was written by a newer quantdrift; it is as before then.
    """
    line = codec.to_line(_encode(entry), where=f"{file}, run {entry.run}").encode("utf-8") + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a+b", buffering=0) as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)  # let go of when the file is closed, also by a kill
            data = _read_all(opened)
            if entry.run in _runs_in(data, file):
                return False
            _append(opened, line if not data or data.endswith(b"\n") else b"\n" + line)
        sync_directory(file.parent)
    except OSError as error:
        raise StoreError(f"{file}: could not be appended to: {error.strerror or error}") from error
    return True


def _read_all(opened: io.FileIO) -> bytes:
    opened.seek(0)
    return opened.readall()


def _append(opened: io.FileIO, data: bytes) -> None:
    """Whole, or not at all: a full disk still lets go of what it took."""
    start = opened.seek(0, os.SEEK_END)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[opened.write(rest) :]
        os.fsync(opened.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            opened.truncate(start)
        raise


def _runs_in(data: bytes, file: Path) -> set[str]:
    """The runs that the lines are of, those that cannot be read apart."""
    found = set()
    for number, line in _numbered(data):
        where = f"{file}, line {number}"
        document = _parse_line(line, where)
        if not isinstance(document, str):
            _refuse_newer(document, where)
            found.add(str(document.get("run")))
    return found


def _numbered(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that hold anything, each with its number from 1."""
    lines = enumerate(data.split(b"\n"), start=1)
    return ((number, line) for number, line in lines if line.strip())


def _parse_line(line: bytes, where: str) -> codec.Document | str:
    """The object on a line, or what is wrong with it."""
    try:
        return codec.from_json(line.decode("utf-8"), where=where)
    except (StoreError, UnicodeDecodeError) as error:
        reason = f"{where}: not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        return f"{reason}; the line is kept: delete it, and append its run anew with: {_AGAIN}"


def _refuse_newer(document: codec.Document, where: str) -> None:
    """What a newer version wrote is not damaged: it asks for an upgrade."""
    version = document.get("schema")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        codec.migrate(document, where=where, renew=_AGAIN)


def _encode(entry: HistoryEntry) -> codec.Document:
    plain: dict[str, Any] = dump(entry)
    if not entry.cases:
        del plain["cases"]  # of a whole run the line is what it always was
    return {"schema": SCHEMA_VERSION, "kind": KIND, **plain, "values": _nest(entry.values)}


def _nest(values: Mapping[str, float]) -> codec.Document:
    """``variant/metric/scope`` → value, as objects within objects: half as long."""
    nested: codec.Document = {}
    for key, value in values.items():
        variant, metric, scope = key.split("/", 2)
        nested.setdefault(variant, {}).setdefault(metric, {})[scope] = _short(value)
    return nested


def _short(value: float) -> float:
    """Six significant digits, and no point behind which there is nothing. What is not finite is refused elsewhere."""
    text = f"{value:.{SIGNIFICANT_DIGITS}g}"
    short = float(text)
    return int(short) if short.is_integer() else short


def _decode(document: codec.Document, where: str) -> HistoryEntry:
    if document.get("kind") != KIND:
        raise StoreError(f"{where}: key 'kind' is {document.get('kind')!r}, expected {KIND!r}; is it a history?")
    document = codec.migrate(document, where=where, renew=_AGAIN)
    plain = {key: document[key] for key in _FIELDS if key in document}
    try:
        plain["values"] = {
            f"{variant}/{metric}/{scope}": value
            for variant, metrics in document.get("values", {}).items()
            for metric, scopes in metrics.items()
            for scope, value in scopes.items()
        }
    except AttributeError as error:
        raise StoreError(f"{where}: key 'values' is not laid out as variant, metric, scope: {error}") from error
    return parse(HistoryEntry, plain, where=where, error=StoreError)
