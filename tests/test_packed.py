"""Arrays as text: there and back to the bit, and nothing else is read."""

from __future__ import annotations

import numpy
import pytest

from suite.packed import pack, unpack_floats, unpack_ints


def test_numbers_come_back_to_the_bit() -> None:
    floats = numpy.array([[0.1, -0.0], [-1000.0, 1e-38]], "<f4")
    ints = numpy.array([0, -1, 2**31 - 1], "<i4")
    assert unpack_floats(pack(floats)).tobytes() == floats.tobytes()
    assert unpack_ints(pack(ints)).tolist() == ints.tolist()
    assert unpack_floats("").size == 0


def test_the_layout_is_little_endian() -> None:
    assert pack(numpy.array([1, 256], "<i4")) == "AQAAAAABAAA="


@pytest.mark.parametrize("text", ["AQAAAA=!", "AQAA", "A"], ids=["no base64", "three bytes", "cut"])
def test_what_is_no_such_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack_ints(text)
