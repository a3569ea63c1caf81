"""Turn plain data (parsed TOML or JSON) into records, whole, with errors that name the place and the nearest known key.

Validation itself is pydantic's; this module only words its errors for people.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from suite.errors import nearest

__all__ = ["dump", "nearest", "parse"]

T = TypeVar("T")

MOST_FAULTS = 10_000
"""More are counted and not worded: a file of a stranger may hold millions."""

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


@cache
def _adapter(record: Any) -> TypeAdapter[Any]:
    _forbid_extra(record, set())
    return TypeAdapter(record)


def _forbid_extra(record: Any, seen: set[Any]) -> None:
    """Make pydantic refuse unknown keys in every dataclass reachable from `record`."""
    if isinstance(record, type) and dataclasses.is_dataclass(record):
        if record in seen:
            return
        seen.add(record)
        setattr(record, "__pydantic_config__", STRICT)  # noqa: B010 - what pydantic.with_config does, for records that know no pydantic
        for hint in get_type_hints(record).values():
            _forbid_extra(hint, seen)
        return
    for argument in get_args(record):
        _forbid_extra(argument, seen)


def parse(record: type[T], data: object, *, where: str, error: type[Exception]) -> T:
    """Validate `data` as `record`.

    Raises `error` with one line for each thing that is wrong: ``where``, the key, what was wrong, and for an unknown key
    the nearest known one.
    """
    try:
        validated: T = _adapter(cast("Hashable", record)).validate_python(data)
        return validated
    except ValidationError as invalid:
        if invalid.error_count() > MOST_FAULTS:
            raise error(f"{where}: {invalid.error_count():,} things are wrong: this is no {record.__name__}") from None
        lines = [_explain(record, problem) for problem in invalid.errors(include_url=False)]
        raise error("\n".join(f"{where}: {line}" for line in lines)) from None


def dump(record: object) -> Any:
    """The record as plain JSON-able data: tuples become lists, enums their values."""
    return _adapter(cast("Hashable", type(record))).dump_python(record, mode="json")


def _explain(record: type[Any], problem: Any) -> str:
    path = [part for part in problem["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    key = ".".join(str(part) for part in path)
    match problem["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            known = _known_keys(record, path[:-1])
            return f"unknown key '{key}'; {nearest(str(path[-1]), known)}"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"key '{key}' is missing"
        case _:
            return f"key '{key}': {problem['msg'][:1].lower()}{problem['msg'][1:]} (got {problem['input']!r})"


def _known_keys(record: Any, path: list[Any]) -> set[str]:
    """Field names of the dataclass at `path` below `record`."""
    here: Any = record
    for part in path:
        here = _step(here, part)
    here = _unwrap(here)
    return {f.name for f in dataclasses.fields(here)} if dataclasses.is_dataclass(here) else set()


def _unwrap(hint: Any) -> Any:
    """``X | None`` → ``X``."""
    if get_origin(hint) in (Union, types.UnionType):
        return next((a for a in get_args(hint) if a is not type(None)), hint)
    return hint


def _step(hint: Any, part: Any) -> Any:
    hint = _unwrap(hint)
    if dataclasses.is_dataclass(hint):
        return get_type_hints(hint).get(str(part), Any)
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return get_args(hint)[1]
    return get_args(hint)[0] if get_args(hint) else Any
