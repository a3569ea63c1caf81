"""A comment made from a file that anybody may have written: checked, then rendered anew, with nothing in it that acts.

A job on a pull request runs code of strangers, and uploads JSON; a job that may comment reads it. So the file is data and no
more: its size is checked before it is parsed, its depth, numbers and strings before it is a record, its layout against the
records, and its names against what names look like. No text in it is taken for Markdown: our own words stand around its
numbers, and what it says itself is quoted as code (`suite.reporting.hostile.inert_code`). Commands in it are not repeated:
whoever reads a comment may run them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from suite.errors import StoreError, UsageError
from suite.reporting.cutting import cut_markdown
from suite.reporting.hostile import cut, one_line

Kind = Literal["run", "diff"]
KINDS: Mapping[str, Kind] = {"run": "run", "baseline-diff": "diff"}
"""Key ``kind`` of the file → what the comment is about."""
MARKS: Mapping[Kind, str] = {kind: f"<!-- quantdrift: comment, {kind} -->" for kind in KINDS.values()}
"""The hidden first line of a comment, by which the next one finds it."""

MOST_BYTES = 32 * 2**20
"""Of the file. A run of the default matrix has 4 MB."""
LIMIT = 60_000
"""Characters. GitHub takes 65 536; what is left is for who posts it."""

_DEEPEST, _LONGEST, _LONGEST_KEY = 24, 50_000, 300
_LARGEST = 1e18
_MOST_TABLES, _MOST_VALUES = 100_000, 3_000_000
"""Objects and lists, and values in them: 9 000 and 150 000 in a run of the default matrix. Each may be a fault to be told."""
_TOLD = 3
_TABLES = ("variants", "against", "findings", "losses", "creep", "trials", "speed_samples", "forced")
_WHOLE = "All of it is in the artifact of the run."

Document = dict[str, Any]


class Refused(UsageError):
    """The file is not what it should be. The message is one line of a bounded length, in which nothing is a command."""

    def __init__(self, where: str, reasons: str | Iterable[str]) -> None:
        told = [reasons] if isinstance(reasons, str) else list(reasons)
        more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        text = "; ".join(cut(one_line(reason), 300) for reason in told[:_TOLD])
        # A runner takes "::error::" at the start of a line and "##[error]" anywhere for commands.
        safe = re.sub(r":(?=:)|#(?=#)", r"\g<0> ", f"{one_line(where)}: {text}{more}")
        super().__init__(f"{safe}; nothing was rendered")


def render_comment(data: bytes, *, kind: Kind | None = None, where: str, limit: int = LIMIT) -> str:
    """The Markdown of a comment about a ``run.json`` or the JSON of ``quantdrift diff``: at most `limit` characters.

    `kind` refuses the other one. The first line is a hidden mark (`MARKS`). Raises Refused, a UsageError, naming what is wrong.
    """
    document = read_document(data, where=where)
    found = _kind_of(document, where)
    if kind is not None and kind != found:
        raise Refused(where, f"holds a {found}, and a {kind} was asked for")
    lines = _run_lines(document, where) if found == "run" else _diff_lines(document, where)
    text = "\n".join([MARKS[found], *lines]) + "\n"
    return cut_markdown(text, limit, measure=len, whole=_WHOLE)


def _run_lines(document: Document, where: str) -> Iterator[str]:
    from suite.reporting.comment_run import comment_on_run, name_faults
    from suite.store import codec
    from suite.store.runs import RENEW, decode_run

    for table in _TABLES:
        if not isinstance(document.get(table, []), list):
            raise Refused(where, f"key '{table}' is no list")
    try:
        run = decode_run(codec.migrate(document, where=where, renew=RENEW), where=where)
    except StoreError as fault:
        raise _refusal(fault, where) from None
    faults = list(dict.fromkeys(name_faults(run)))
    if faults:
        raise Refused(where, faults)
    return comment_on_run(run)


def _diff_lines(document: Document, where: str) -> Iterator[str]:
    from suite.reporting.comment_diff import SCHEMA, DiffDocument, comment_on_diff, diff_faults
    from suite.schema import parse

    if document.get("schema") != SCHEMA or isinstance(document["schema"], bool):
        raise Refused(where, f"key 'schema' is {document.get('schema')!r}, and this quantdrift reads {SCHEMA}")
    try:
        diff = parse(DiffDocument, document, where=where, error=StoreError)
    except StoreError as fault:
        raise _refusal(fault, where) from None
    faults = list(dict.fromkeys(diff_faults(diff)))
    if faults:
        raise Refused(where, faults)
    return comment_on_diff(diff)


def _refusal(fault: StoreError, where: str) -> Refused:
    """A fault may have thousands of lines, each with what a stranger wrote."""
    return Refused(where, [line.removeprefix(f"{where}: ") for line in str(fault).splitlines()])


# ------------------------------------------------------------------------------------------------------ the document


def read_document(data: bytes, *, where: str) -> Document:
    """Parse JSON of a stranger within limits. Raises Refused for what is too large, too deep, not finite or no object."""
    if len(data) > MOST_BYTES:
        raise Refused(where, f"has more than {MOST_BYTES:,} bytes")
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise Refused(where, f"is nested deeper than {_DEEPEST}") from None
    except ValueError as error:  # no UTF-8, no JSON, a number of thousands of digits
        raise Refused(where, f"is not JSON that can be used: {error}") from None
    if not isinstance(document, dict):
        raise Refused(where, f"holds a JSON {type(document).__name__}, not an object")
    fault = next(_faults(document), None)
    if fault is not None:
        raise Refused(where, fault)
    return document


def _kind_of(document: Document, where: str) -> Kind:
    told = document.get("kind")
    found = KINDS.get(told) if isinstance(told, str) else None
    if found is None:
        raise Refused(where, f"key 'kind' is {told!r}, expected one of {', '.join(map(repr, KINDS))}")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> Document:
    """Two readers may take two different ones of equal keys."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has one key twice")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _faults(document: Document) -> Iterator[str]:
    """What no file of ours holds, whatever its layout. Walks without recursion."""
    waiting: list[tuple[Any, int]] = [(document, 1)]
    tables = values = 0
    while waiting:
        table, depth = waiting.pop()
        tables, values = tables + 1, values + len(table)
        if depth > _DEEPEST:
            yield f"is nested deeper than {_DEEPEST}"
        if tables > _MOST_TABLES or values > _MOST_VALUES:
            yield f"holds more than {_MOST_TABLES:,} objects and lists, or {_MOST_VALUES:,} values"
        if isinstance(table, dict) and any(len(key) > _LONGEST_KEY for key in table):
            yield f"has a key of more than {_LONGEST_KEY} characters"
        for value in table.values() if isinstance(table, dict) else table:
            if isinstance(value, dict | list):
                waiting.append((value, depth + 1))
            else:
                yield from _value_faults(value)


def _value_faults(value: str | float | None) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > _LONGEST:
            yield f"has a text of {len(value):,} characters, and at most {_LONGEST:,} are read"
    elif value is not None and not abs(value) <= _LARGEST:  # NaN compares with nothing
        yield f"has a number that is not finite, or larger than {_LARGEST:g}"
