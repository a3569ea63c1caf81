"""Events out of bytes, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backends.server.sse import EventParser

STREAM = ': ping\r\n\r\ndata: {"a": "Öl"}\n\nevent: x\rid: 7\rdata:two\rdata: lines\r\rdata: [DONE]\n\n'.encode()
EVENTS = ['{"a": "Öl"}', "two\nlines", "[DONE]"]


@given(st.lists(st.integers(0, len(STREAM))))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = EventParser()
    found = [event for a, b in pairwise(places) for event in parser.feed(STREAM[a:b])]
    assert found == EVENTS
    assert parser.rest == ""


@given(st.binary(max_size=200))
def test_garbage_is_no_crash(data: bytes) -> None:
    parser = EventParser()
    for start in range(0, len(data), 7):
        assert all(isinstance(event, str) for event in parser.feed(data[start : start + 7]))
    assert isinstance(parser.rest, str)


def test_what_is_not_whole_is_told() -> None:
    parser = EventParser()
    assert list(parser.feed(b'data: {"a"')) == []
    assert parser.rest == 'data: {"a"'


def test_an_event_without_an_end_is_refused_in_linear_time() -> None:
    parser = EventParser()
    for _ in range(128):
        assert not list(parser.feed(b"x" * 2**16))
    with pytest.raises(ValueError, match="more than 8388608 bytes"):
        list(parser.feed(b"x"))
