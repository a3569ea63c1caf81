"""The seam between the suite and what runs a model: what every backend relies on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backends.base import MOST_ROWS, cut_answer


@given(st.integers(1, 400), st.integers(3, 70))
def test_an_answer_is_cut_into_batches_that_cover_it_and_none_of_a_single_token(length: int, most: int) -> None:
    pieces = list(cut_answer(length, most))
    assert [at for piece in pieces for at in range(piece.start, piece.stop)] == list(range(length - 1))
    sizes = [piece.stop - piece.start for piece in pieces]
    assert all(size <= most for size in sizes)
    assert 1 not in sizes or length == 2  # a batch of one would run the kernels of decoding


@pytest.mark.parametrize(("length", "sizes"), [(1, []), (2, [1]), (MOST_ROWS + 1, [64]), (MOST_ROWS + 2, [63, 2])])
def test_a_remainder_of_one_takes_one_from_the_batch_before_it(length: int, sizes: list[int]) -> None:
    assert [piece.stop - piece.start for piece in cut_answer(length)] == sizes
