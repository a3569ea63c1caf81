"""Arrays of numbers as text: base64 of four little-endian bytes each. Numpy is imported where it is used."""

from __future__ import annotations

import base64
from typing import Any


def pack(values: Any) -> str:
    """The text of an array of type ``<f4`` or ``<i4``, in row-major order; shapes are told elsewhere."""
    return base64.b64encode(values.tobytes()).decode()


def unpack_floats(text: str) -> Any:
    """A flat array of single precision. Raises ValueError for what is no such text."""
    return _unpack(text, "<f4")


def unpack_ints(text: str) -> Any:
    """A flat array of 32 bits. Raises ValueError for what is no such text."""
    return _unpack(text, "<i4")


def _unpack(text: str, kind: str) -> Any:
    import numpy

    return numpy.frombuffer(base64.b64decode(text, validate=True), kind)
