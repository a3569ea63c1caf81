"""Records ↔ text: JSON without NaN, versioned, and for baselines laid out so that a diff reads as a table."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from suite.errors import StoreError
from suite.records import SCHEMA_VERSION

Document = dict[str, Any]

SIGNIFICANT_DIGITS = 4
_WHOLE_FROM = 1e4
"""Floats from here on have no digit behind the point after rounding, and are written without one."""

MIGRATIONS: Mapping[int, Callable[[Document], Document]] = {}
"""Schema version → what lifts a document of that version to the next. Empty while there is only one version."""


def to_json(document: Document, *, where: str) -> str:
    """Compact-enough JSON for machines: two spaces, order kept, every character as it is.

    Raises StoreError naming the key of a number that is not finite.
    """
    _refuse_non_finite(document, where)
    return _encodable(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n", where)


def to_line(document: Document, *, where: str) -> str:
    """One line of JSON, without a newline. Raises StoreError naming the key of a number that is not finite."""
    _refuse_non_finite(document, where)
    return _encodable(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")), where)


def from_json(text: str, *, where: str) -> Document:
    """Parse an object. Raises StoreError with line and column for anything else, NaN and Infinity included."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise StoreError(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise StoreError(f"{where}: nested too deeply to be one of our files") from None
    if not isinstance(document, dict):
        raise StoreError(f"{where}: holds a JSON {type(document).__name__}, not an object")
    return document


def read_document(file: Path, *, kind: str, renew: str) -> Document:
    """Read, check the version of, and lift to the present version a document of `kind`.

    `renew` is the command that makes a new one, for the message. Raises StoreError naming the file and what to do.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    return open_document(text, kind=kind, where=str(file), renew=renew)


def open_document(text: str, *, kind: str, where: str, renew: str) -> Document:
    """The same of the text of a file."""
    document = from_json(text, where=where)
    if document.get("kind") != kind:
        raise StoreError(f"{where}: key 'kind' is {document.get('kind')!r}, expected {kind!r}; is it the right file?")
    return migrate(document, where=where, renew=renew)


def migrate(document: Document, *, where: str, renew: str) -> Document:
    """Lift a document to `SCHEMA_VERSION`. Too old and too new are different faults with different remedies."""
    version = document.get("schema")
    if not isinstance(version, int) or isinstance(version, bool):
        raise StoreError(f"{where}: key 'schema' is {version!r}, expected a whole number up to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{where}: written by a newer quantdrift (schema {version}; this one reads up to {SCHEMA_VERSION}); "
            "upgrade with: pip install --upgrade quantdrift"
        )
    while version < SCHEMA_VERSION:
        if version not in MIGRATIONS:
            raise StoreError(
                f"{where}: too old (schema {version}; this quantdrift writes {SCHEMA_VERSION} and cannot lift it); "
                f"make it anew with: {renew}"
            )
        document = MIGRATIONS[version](document)
        version += 1
    return document


def to_review_text(document: Document, *, where: str) -> str:
    """JSON for people who review it: keys sorted, floats of four significant digits, a digest of the content.

    Each entry of a top-level object (a metric, a case, an identity field) takes one line, so that a changed entry is
    one changed line. Raises StoreError naming the key of a number that is not finite.
    """
    _refuse_non_finite(document, where)
    rounded = round_floats({key: value for key, value in document.items() if key != "digest"})
    return _encodable(_layout({**rounded, "digest": digest(rounded)}), where)


def digest(document: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits over the content (without ``digest`` itself): tells an edit, not a forgery."""
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def round_significant(value: float) -> float:
    """`value` rounded to four significant digits; idempotent."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def round_floats(data: Any) -> Any:
    """Round every float within; whole numbers, booleans and strings (hashes) stay exactly as they are."""
    match data:
        case float():
            rounded = round_significant(data)
            return int(rounded) if abs(rounded) >= _WHOLE_FROM else rounded
        case dict():
            return {key: round_floats(value) for key, value in data.items()}
        case list():
            return [round_floats(value) for value in data]
        case _:
            return data


def _layout(document: Document) -> str:
    entries = [f"  {json.dumps(key)}: {_layout_value(document[key])}" for key in sorted(document)]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _layout_value(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return _inline(value)
    lines = [f"    {_inline(key)}: {_inline(value[key])}" for key in sorted(value)]
    return "{\n" + ",\n".join(lines) + "\n  }"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _encodable(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        near = text[max(error.start - 30, 0) : error.start]
        fault = f"a lone surrogate after {near!r} cannot be stored; decode with errors='replace'"
        raise StoreError(f"{where}: {fault}") from None
    return text


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_non_finite(document: Document, where: str) -> None:
    key = _find_non_finite(document)
    if key is not None:
        raise StoreError(f"{where}: key '{key}' is not a finite number; a quantity without a value must be null")


def _find_non_finite(data: Any, path: str = "") -> str | None:
    if isinstance(data, float):
        return None if math.isfinite(data) else path
    if isinstance(data, dict):
        children = ((f"{path}.{key}" if path else str(key), value) for key, value in data.items())
    elif isinstance(data, list):
        children = ((f"{path}.{index}", value) for index, value in enumerate(data))
    else:
        return None
    return next((found for key, value in children if (found := _find_non_finite(value, key)) is not None), None)
