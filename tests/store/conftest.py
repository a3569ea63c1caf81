"""Strategies that make any record, from its own type hints."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import strategies as st

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-(2**53), 2**53),
    float: NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
    Any: PLAIN,
}


def any_record(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that occurs in `suite.records`."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    if dataclasses.is_dataclass(hint):
        return st.builds(hint, **{name: _later(inner) for name, inner in get_type_hints(hint).items()})  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    return _any_of(get_origin(hint), get_args(hint))


def _any_of(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Any value of ``origin[arguments]``."""
    if origin in (Union, types.UnionType):
        return st.one_of(*(any_record(argument) for argument in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is not ...:
        return st.tuples(*(any_record(argument) for argument in arguments))
    if origin is tuple:
        return st.lists(any_record(arguments[0]), max_size=2).map(tuple)
    if issubclass(origin, Mapping):
        return st.dictionaries(any_record(arguments[0]), any_record(arguments[1]), max_size=2)
    raise TypeError(f"no strategy for {origin}")


def _later(hint: Any) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: any_record(hint))


@pytest.fixture(scope="session")
def records_of() -> Callable[[Any], st.SearchStrategy[Any]]:
    """`any_record`, for use with ``data.draw``."""
    return any_record
