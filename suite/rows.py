"""Rows of a data set → the fields of a case, through templates over the row's columns.

Reading is left to the `datasets` package, which is imported only when a case file names a data set.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from suite.errors import CaseFileError, Unavailable
from suite.schema import nearest

FIELDS = ("asserts", "id", "prompt", "solution", "system", "target")
"""What a template may fill; everything else is the same for all rows."""

_FORMATS = {".jsonl": "json", ".parquet": "parquet"}
_HUB = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")
_COLUMN = re.compile(r"\w+(\[[^\]]*\])*$")
_BRANCHES = ("main", "master", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """Which rows of which data set, and how they are mapped."""

    source: str
    """``org/name@revision`` on the hub, or a .jsonl or .parquet file relative to `base`."""
    config: str | None
    split: str
    rows: tuple[int, int] | None
    """First row and the one after the last; None for all."""
    fields: Mapping[str, str]
    where: str
    """File and source, for error messages."""
    base: Path


def read_rows(source: RowSource) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row number, fields of a case) for each row asked for.

    Raises CaseFileError for a source without a pinned revision, a missing file, unknown fields and columns, and rows
    that are not there; Unavailable when the hub or the `datasets` package cannot be had here.
    """
    _check_fields(source)
    table = _load(source)
    _check_columns(source, table.column_names)
    first, end = source.rows or (0, len(table))
    if not 0 <= first < end <= len(table):
        raise CaseFileError(f"{source.where}: key 'rows': [{first}, {end}] does not lie within its {len(table)} rows")
    for index in range(first, end):
        row = table[index]
        where = f"{source.where}, row {index}"
        yield index, {name: _fill(template, row, where) for name, template in source.fields.items()}


def _check_fields(source: RowSource) -> None:
    unknown = source.fields.keys() - set(FIELDS)
    faults = [f"unknown field '{name}' in 'fields'; {nearest(name, FIELDS)}" for name in unknown]
    faults += [
        f"'fields' does not say how to make '{name}'" for name in ("prompt", "target") if name not in source.fields
    ]
    for name, template in source.fields.items():
        try:
            columns = _columns(template)
        except ValueError as broken:
            faults.append(f"field '{name}': template {template!r} is broken: {broken}")
            continue
        # an attribute would let a case file reach into objects; keys of nested columns are enough
        faults += [f"field '{name}': '{{{column}}}' names no column" for column in columns if not _COLUMN.match(column)]
    if faults:
        raise CaseFileError("\n".join(f"{source.where}: {fault}" for fault in sorted(faults)))


def _check_columns(source: RowSource, known: Sequence[str]) -> None:
    used = [(name, column.partition("[")[0]) for name, text in source.fields.items() for column in _columns(text)]
    faults = [f"field '{name}': unknown column '{c}'; {nearest(c, known)}" for name, c in used if c not in known]
    if faults:
        raise CaseFileError("\n".join(f"{source.where}: {fault}" for fault in faults))


def _columns(template: str) -> list[str]:
    """What stands between the braces of `template`."""
    return [column for _, column, _, _ in Formatter().parse(template) if column is not None]


def _fill(template: str, row: Mapping[str, Any], where: str) -> Any:
    """The template over `row`; a template that is one column and nothing else keeps a list a list (for asserts)."""
    empty = [column for column in _columns(template) if row[column.partition("[")[0]] is None]
    if empty:
        raise CaseFileError(f"{where}: column '{empty[0]}' is empty")
    alone = re.fullmatch(r"\{(\w+)\}", template)
    if alone and isinstance(row[alone[1]], list):
        return row[alone[1]]
    try:
        return template.format_map(row)
    except (LookupError, TypeError, ValueError) as unfit:
        raise CaseFileError(f"{where}: template {template!r} does not fit: {type(unfit).__name__}: {unfit}") from None


def _load(source: RowSource) -> Any:
    file = source.base / Path(source.source).expanduser()
    if file.suffix in _FORMATS:
        if not file.is_file():
            raise CaseFileError(f"{source.where}: no such file: {file}")
        return _load_with_datasets(source, _FORMATS[file.suffix], data_files={source.split: str(file)})
    hub = _HUB.fullmatch(source.source)
    if hub is None:
        raise CaseFileError(
            f"{source.where}: key 'source' is 'org/name@revision' or a .jsonl or .parquet file (got {source.source!r})"
        )
    if hub["revision"] is None or hub["revision"] in _BRANCHES:
        raise CaseFileError(
            f"{source.where}: a hub data set needs a pinned revision, or the questions can change under the baselines; "
            f"write '{hub['name']}@<commit>'"
        )
    return _load_with_datasets(source, hub["name"], revision=hub["revision"])


def _load_with_datasets(source: RowSource, path: str, **arguments: Any) -> Any:
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as missing:
        raise Unavailable(
            f"{source.where}: needs the package 'datasets', which is not installed: pip install datasets"
        ) from missing
    try:
        return datasets.load_dataset(path, source.config, split=source.split, **arguments)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as failed:
        sentence = next(iter(str(failed).splitlines()), "no reason given")
        reason = f"{source.where}: {type(failed).__name__}: {sentence}"
        if "data_files" in arguments:
            raise CaseFileError(f"{reason}; the file cannot be read as {path}") from failed
        raise Unavailable(f"{reason}; check the network, or run once online so that it is cached") from failed
