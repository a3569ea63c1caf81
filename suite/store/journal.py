"""Every finished piece of a run, appended at once, so that a killed run can be resumed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from suite.atomic import sync_directory
from suite.errors import JournalUnwritable, StoreError
from suite.records import (
    SCHEMA_VERSION,
    Environment,
    Finding,
    Forced,
    Launch,
    Note,
    RenderedPrompts,
    ResolvedArtifact,
    SpeedSample,
    Traced,
    Trial,
    VariantFailure,
)
from suite.schema import dump, nearest, parse
from suite.store import codec, layout

KINDS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "environment": Environment,
        "artifact": ResolvedArtifact,
        "prompts": RenderedPrompts,
        "trial": Trial,
        "launch": Launch,
        "speed_sample": SpeedSample,
        "failure": VariantFailure,
        "finding": Finding,
        "forced": Forced,
        "traced": Traced,
        "note": Note,
    }
)
"""Kind of an entry → the record that it holds."""

_HEADER = "journal"
_KIND_OF = {record: kind for kind, record in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal."""

    kind: str
    record: Any
    """An instance of ``KINDS[kind]``."""


class Journal:
    """An append-only file of JSON lines, each forced to the disk. One process writes one journal.

    Opening a journal whose last line was torn by a kill drops that line, so that the next record does not melt into it.
    Raises JournalUnwritable when the file cannot be opened, StoreError when it is damaged elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                _mend(path)
            self._file = path.open("ab", buffering=0)  # nothing is left in a buffer when a write fails
            self._begin()
        except OSError as error:
            raise JournalUnwritable(f"{path}: cannot be opened: {error.strerror or error}") from error

    def _begin(self) -> None:
        """Write the header of a new journal; a disk that does not take it leaves no open file behind."""
        if self._file.tell():
            return
        try:
            self._write({"kind": _HEADER, "schema": SCHEMA_VERSION})
            sync_directory(self.path.parent)
        except OSError:
            self._file.close()
            raise

    def append(self, record: object) -> None:
        """Append one record and wait until it is on the disk.

        Raises TypeError for a record that has no kind, JournalUnwritable when the disk does not take it: what was appended
        before is safe, and the torn rest is dropped.
        """
        kind = _KIND_OF.get(type(record))
        if kind is None:
            raise TypeError(f"a {type(record).__name__} cannot be journalled; {nearest(type(record).__name__, KINDS)}")
        try:
            self._write({"kind": kind, "record": dump(record)})
        except OSError as error:
            raise JournalUnwritable(f"{self.path}: could not be appended to: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file; appending is over."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, document: codec.Document) -> None:
        rest = memoryview((codec.to_line(document, where=str(self.path)) + "\n").encode("utf-8"))
        start = self._file.seek(0, os.SEEK_END)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(start)  # a full disk still lets go of what it took
            raise


def read_journal(path: Path) -> tuple[Entry, ...]:
    """The entries of one journal, in order. A torn last line (cut off before its newline) is left out.

    Raises StoreError naming the line for damage anywhere else, for an unknown kind, and for another schema version.
    """
    return tuple(_entries(path, _lines(path)))


def read_journals(directory: Path) -> tuple[Entry, ...]:
    """The entries of every journal in a run's directory, journal after journal."""
    return tuple(entry for file in layout.journal_files(directory) for entry in read_journal(file))


def _lines(path: Path) -> list[bytes]:
    """The whole lines, and the last one without a newline if it is whole nevertheless."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    return [*lines, rest] if rest and _is_whole(rest) else lines


def _is_whole(line: bytes) -> bool:
    try:
        codec.from_json(line.decode("utf-8"), where="")
    except (StoreError, UnicodeDecodeError):
        return False
    return True


def _entries(path: Path, lines: list[bytes]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        document = _document(line, where)
        if number == 1:
            _check_header(document, where)
            continue
        kind = str(document.get("kind"))
        if kind not in KINDS:
            raise StoreError(f"{where}: unknown kind {kind!r}; {nearest(kind, KINDS)}")
        yield Entry(kind, parse(KINDS[kind], document.get("record"), where=where, error=StoreError))


def _document(line: bytes, where: str) -> codec.Document:
    try:
        return codec.from_json(line.decode("utf-8"), where=where)
    except UnicodeDecodeError as error:
        raise StoreError(f"{where}: not UTF-8: {error.reason} at byte {error.start}") from None


def _check_header(document: codec.Document, where: str) -> None:
    if document.get("kind") != _HEADER:
        raise StoreError(f"{where}: key 'kind' is {document.get('kind')!r}, expected {_HEADER!r}; is it a journal?")
    codec.migrate(document, where=where, renew="pytest --model-matrix")


def _mend(path: Path) -> None:
    """Drop a torn last line, or end a whole one; refuse a journal that is damaged elsewhere before adding to it."""
    for _ in _entries(path, _lines(path)):
        pass
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data):
        return
    with path.open("r+b") as file:
        if _is_whole(data[end:]):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        else:
            file.truncate(end)
        file.flush()
        os.fsync(file.fileno())
