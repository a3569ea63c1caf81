"""Case files → `Case` records: ``cases/<domain>/*.toml``, read and validated whole before any model is loaded.

A file holds ``[[case]]`` tables, and ``[[dataset]]`` tables that map the rows of a data set to the same fields.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from suite.errors import CaseFileError, Unavailable
from suite.records import Case, ScorerSpec
from suite.rows import RowSource, read_rows
from suite.schema import nearest, parse

CheckCase = Callable[[Case], None]
"""Raises CaseFileError when a case does not fit its scorer; `suite.scorers.check_case` is the one to pass."""

_SCORER_EXAMPLE = '{ name = "fuzzy", threshold = 0.8 }'
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """A ``[[case]]`` table as it stands in the file."""

    id: str
    version: int
    prompt: str
    target: str
    scorer: str | dict[str, Any]
    max_new_tokens: int
    system: str | None = None
    tags: tuple[str, ...] = ()
    family: str | None = None
    language: str = "en"
    solution: str | None = None
    asserts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTable:
    """A ``[[dataset]]`` table as it stands in the file: which rows, and how columns become fields of a case."""

    source: str
    prefix: str
    version: int
    scorer: str | dict[str, Any]
    max_new_tokens: int
    fields: dict[str, str]
    """Field → template over the row's columns, e.g. ``prompt = "Q: {question}"``."""
    config: str | None = None
    split: str = "train"
    rows: tuple[int, int] | None = None
    """First row and the one after the last; all when left out."""
    tags: tuple[str, ...] = ()
    family: str | None = None
    language: str = "en"


@dataclass(slots=True)
class Findings:
    """What reading the files brings up, so that everything can be told at once."""

    cases: list[Case] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)


def load_cases(directory: Path, *, check: CheckCase) -> tuple[Case, ...]:
    """All cases below `directory`, sorted by id.

    `check` looks at each case with its scorer: pass `suite.scorers.check_case` (scorers lie above this module).
    Raises CaseFileError with one line for each fault of any file, else Unavailable naming file and source when a data
    set cannot be had here.
    """
    if not directory.is_dir():
        raise CaseFileError(f"{directory}: no such directory; put case files into {directory}/<domain>/<any>.toml")
    found = Findings()
    for file in sorted(directory.rglob("*.toml")):
        _collect(found, partial(_read_file, found, file, directory))
    for case in found.cases:
        _collect(found, partial(_check_case, case, check))
    found.faults += _duplicates(found.cases)
    if found.faults:
        raise CaseFileError("\n".join(found.faults))
    if found.unavailable:
        raise Unavailable("\n".join(found.unavailable))
    if not found.cases:
        raise CaseFileError(f"{directory}: holds no cases; put case files into {directory}/<domain>/<any>.toml")
    return tuple(sorted(found.cases, key=lambda case: case.id))


def _collect(found: Findings, step: Callable[[], None]) -> None:
    """Run one step of reading; a fault in it is noted and does not stop the others."""
    try:
        step()
    except CaseFileError as fault:
        found.faults += str(fault).splitlines()
    except Unavailable as reason:
        found.unavailable += str(reason).splitlines()


def _keep(found: Findings, cases: Iterator[Case]) -> None:
    """Take cases one by one, so that those before a faulty row are still checked."""
    for case in cases:
        found.cases.append(case)


def _read_file(found: Findings, file: Path, directory: Path) -> None:
    parts = file.relative_to(directory).parts
    if len(parts) != 2 or not _NAME.fullmatch(parts[0]):
        raise CaseFileError(f"{file}: a case file belongs into {directory}/<domain>/, domain in lower case")
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise CaseFileError(f"{file}: not valid TOML: {broken}") from None
    for key in sorted(data.keys() - _READERS.keys()):
        found.faults.append(f"{file}: unknown key '{key}'; {nearest(key, _READERS)}")
    for kind, reader in _READERS.items():
        for index, table in enumerate(_tables(data, kind, file)):
            _collect(found, partial(_keep, found, reader(table, file, parts[0], index)))


def _tables(data: Mapping[str, Any], kind: str, file: Path) -> list[Any]:
    tables = data.get(kind, [])
    if not isinstance(tables, list):
        raise CaseFileError(f"{file}: '{kind}' is an array of tables; write [[{kind}]], not [{kind}]")
    return tables


def _read_case(table: Any, file: Path, domain: str, index: int) -> Iterator[Case]:
    name = table.get("id") if isinstance(table, dict) else None
    where = f"{file}: case {name!r}" if name else f"{file}: case number {index + 1}"
    parsed = parse(CaseTable, table, where=where, error=CaseFileError)
    yield _make_case(parsed, domain, where)


def _make_case(table: CaseTable, domain: str, where: str) -> Case:
    faults = list(_plain_faults(table))
    if faults:
        raise CaseFileError("\n".join(f"{where}: {fault}" for fault in faults))
    return Case(
        id=f"{domain}/{table.id}",
        domain=domain,
        version=table.version,
        prompt=table.prompt,
        target=table.target,
        scorer=_scorer_spec(table.scorer, where),
        max_new_tokens=table.max_new_tokens,
        system=table.system,
        tags=table.tags,
        family=table.family,
        language=table.language,
        solution=table.solution,
        asserts=table.asserts,
        source=where,
    )


def _plain_faults(table: CaseTable) -> Iterator[str]:
    if not _NAME.fullmatch(table.id):
        yield f"key 'id': use lower-case letters, digits, '-' and '_' (got {table.id!r})"
    for key in ("prompt", "target"):
        if not getattr(table, key).strip():
            yield f"key '{key}' is empty"
    for key in ("version", "max_new_tokens"):
        if getattr(table, key) < 1:
            yield f"key '{key}' must be at least 1 (got {getattr(table, key)})"


def _scorer_spec(scorer: str | Mapping[str, Any], where: str) -> ScorerSpec:
    if isinstance(scorer, str):
        return ScorerSpec(name=scorer)
    options = dict(scorer)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise CaseFileError(f"{where}: key 'scorer': a table needs 'name', e.g. {_SCORER_EXAMPLE}")
    return ScorerSpec(name=name, options=options)


def _read_dataset(table: Any, file: Path, domain: str, index: int) -> Iterator[Case]:
    name = table.get("source") if isinstance(table, dict) else None
    where = f"{file}: dataset {name!r}" if name else f"{file}: dataset number {index + 1}"
    parsed = parse(DatasetTable, table, where=where, error=CaseFileError)
    source = RowSource(
        source=parsed.source,
        config=parsed.config,
        split=parsed.split,
        rows=parsed.rows,
        fields=parsed.fields,
        where=where,
        base=file.parent,
    )
    own = {key: getattr(parsed, key) for key in ("version", "scorer", "max_new_tokens", "tags", "family", "language")}
    for row, fields in read_rows(source):
        row_where = f"{where}, row {row}"
        data = {"id": f"{parsed.prefix}-{row:04d}", **own, **fields}
        yield _make_case(parse(CaseTable, data, where=row_where, error=CaseFileError), domain, row_where)


_READERS = {"case": _read_case, "dataset": _read_dataset}


def _check_case(case: Case, check: CheckCase) -> None:
    for text in case.asserts:
        _check_python(text, f"{case.source}: key 'asserts'")
    if case.solution is not None:
        _check_python(case.solution, f"{case.source}: key 'solution'")
    check(case)


def _check_python(text: str, where: str) -> None:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as broken:
        raise CaseFileError(f"{where}: not Python: {broken} ({text!r})") from None


def _duplicates(cases: list[Case]) -> Iterator[str]:
    counts = Counter(case.id for case in cases)
    for case in cases:
        if counts[case.id] > 1:
            yield f"{case.source}: id '{case.id}' is used {counts[case.id]} times; ids are unique within a domain"
