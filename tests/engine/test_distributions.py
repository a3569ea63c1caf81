"""How far one distribution is from another, by what was told of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.engine.distributions import Rows, divergence, unpack
from suite.worker.forcing import LEAST, examine, examine_told, log_softmax
from suite.worker.messages import Examined

VOCABULARY = 12
ROW = st.lists(st.floats(-12, 12, width=32), min_size=VOCABULARY, max_size=VOCABULARY)
SINGLE = 2e-6
"""Nats that single precision may round away of log-probabilities of about ten nats."""


def told(logits: Sequence[Sequence[float]], *, top: int = 4, asked: Any = None) -> Rows:
    rows = unpack(examine(iter(logits), [0] * len(logits), top=top, asked=asked))
    assert rows is not None
    return rows


def between(base: Sequence[Sequence[float]], other: Sequence[Sequence[float]], top: int = 4) -> list[float]:
    """The divergence as the suite finds it: the base tells of its likeliest, the other of the same ones."""
    first = told(base, top=top)
    found: list[float] = divergence(first, told(other, asked=first.ids.tolist())).tolist()
    return found


def in_full(base: Sequence[float], other: Sequence[float]) -> float:
    """Over the whole vocabulary, by the standard library alone."""
    p, q = ([math.exp(value) / math.fsum(map(math.exp, row)) for value in row] for row in (base, other))
    return math.fsum(mine * math.log(mine / theirs) for mine, theirs in zip(p, q, strict=True))


def test_one_position_by_hand() -> None:
    """p = 1/2, 1/4, 1/4 and q = 1/4, 1/4, 1/2; the top two of p and one bucket: 1/2 ln 2 + 0 + 1/4 ln 1/2."""
    p, q = ([math.log(share) for share in shares] for shares in ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)))
    assert between([p], [q], top=2) == pytest.approx([0.25 * math.log(2)])


@given(st.lists(ROW, min_size=1, max_size=3))
def test_equal_rows_are_no_distance_apart_to_the_last_bit(logits: list[list[float]]) -> None:
    assert between(logits, logits) == [0.0] * len(logits)


@given(ROW, st.floats(-30, 30, width=32))
def test_a_constant_added_to_all_logits_changes_nothing(logits: list[float], constant: float) -> None:
    assert between([logits], [[value + constant for value in logits]]) == pytest.approx([0.0], abs=SINGLE)


@given(ROW, ROW)
def test_where_the_top_is_the_whole_vocabulary_it_is_the_full_divergence(base: list[float], other: list[float]) -> None:
    assert between([base], [other], VOCABULARY) == pytest.approx([in_full(base, other)], abs=SINGLE)


@given(ROW, ROW, st.integers(1, VOCABULARY - 1))
def test_it_is_a_lower_bound_that_grows_with_the_top(base: list[float], other: list[float], top: int) -> None:
    few, more = between([base], [other], top), between([base], [other], top + 1)
    assert 0 <= few[0] <= more[0] + SINGLE
    assert few[0] <= in_full(base, other) + SINGLE


@pytest.mark.parametrize("side", ["base", "other"])
def test_broken_rows_are_no_distance_and_do_not_touch_the_others(side: str) -> None:
    base, other = [[0.0, 1.0, 2.0, 3.0, 4.0]] * 3, [[4.0, 1.0, 2.0, 3.0, 0.0]] * 3
    whole = between(base, other)
    asked = told(base).ids.tolist()
    spoilt = [
        [math.nan] * 5 if position == 1 else row for position, row in enumerate(base if side == "base" else other)
    ]
    first = told(spoilt) if side == "base" else told(base)
    found = divergence(first, told(other if side == "base" else spoilt, asked=asked))
    assert found.tolist() == [whole[0], 0.0, whole[2]]


def test_what_the_other_finds_impossible_is_far_and_still_a_number() -> None:
    found = between([[0.0, 0.0]], [[0.0, -math.inf]], top=1)
    assert found[0] == pytest.approx(0.5 * (math.log(0.5) - LEAST) + 0.5 * math.log(0.5))
    assert between([[0.0, -math.inf]], [[0.0, 0.0]], top=1) == pytest.approx([math.log(2)])


def test_a_backend_that_cannot_be_forced_gives_no_rows() -> None:
    bare = Examined(width=0, chosen="", best="", best_logprob="", ids="", logprobs="", rest="", broken=[])
    assert unpack(bare) is None


def test_arrays_are_single_precision_and_of_one_row_a_position() -> None:
    rows = told([[0.0, 1.0, 2.0]] * 5, top=2)
    assert {values.dtype for values in (rows.chosen, rows.best_logprob, rows.logprobs, rows.rest)} == {
        numpy.dtype("<f4")
    }
    assert {values.dtype for values in (rows.best, rows.ids)} == {numpy.dtype("<i4")}
    assert (rows.chosen.shape, rows.ids.shape, rows.logprobs.shape) == ((5,), (5, 2), (5, 2))
    assert divergence(rows, rows).dtype == numpy.float64


def served(logits: Sequence[Sequence[float]], tell: int, asked: Any, kind: str = "<f8") -> Rows:
    """As a server tells: the likeliest at each position, and the answer's own token, which is 0."""
    rows = [log_softmax(numpy.array(row, kind)).tolist() for row in logits]
    known = [
        {token: row[token] for token in {0, *sorted(range(len(row)), key=lambda t: -row[t])[:tell]}} for row in rows
    ]
    found = unpack(examine_told(known, [0] * len(rows), top=4, asked=asked))
    assert found is not None
    return found


@given(ROW, ROW)
def test_a_server_that_tells_everything_is_as_far_as_its_logits_say(base: list[float], other: list[float]) -> None:
    first = told([base])
    by_logits = divergence(first, told([other], asked=first.ids.tolist()))
    by_telling = divergence(first, served([other], VOCABULARY, first.ids.tolist()))
    assert by_telling.tolist() == pytest.approx(by_logits.tolist(), abs=1e-5)


@given(ROW, ROW, st.integers(1, VOCABULARY))
def test_a_server_that_tells_less_is_never_further(base: list[float], other: list[float], tell: int) -> None:
    """Where it is the likeliest tokens of a smooth distribution that are told: merging more never adds to a divergence."""
    first = told([base])
    (everything,) = divergence(first, told([other], asked=first.ids.tolist()))
    (less,) = divergence(first, served([other], tell, first.ids.tolist()))
    assert 0 <= less <= everything + 1e-5


def test_an_untold_token_goes_into_the_bucket_on_both_sides() -> None:
    """p = 1/2, 1/4, 1/8, 1/8 and q = 1/4, 1/4, 1/4, 1/4 of which one is told: 1/2 ln 2 + 1/2 ln (1/2 / (3/4))."""
    p, q = ([math.log(share) for share in shares] for shares in ((0.5, 0.25, 0.125, 0.125), (0.25, 0.25, 0.25, 0.25)))
    first = told([p], top=3)
    other = unpack(examine_told([{0: q[0]}], [0], top=3, asked=first.ids.tolist()))
    assert other is not None
    assert numpy.isnan(other.logprobs).tolist() == [[False, True, True]]
    assert divergence(first, other).tolist() == pytest.approx([0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)])
    assert divergence(other, first).tolist() == pytest.approx([0.25 * math.log(0.5) + 0.75 * math.log(0.75 / 0.5)])


def test_positions_that_are_missing_are_a_failure() -> None:
    with pytest.raises(RuntimeError, match="of 1 positions for an answer of 2"):
        examine_told([{0: -1.0}], [0, 0], top=3, asked=None)


@given(st.integers(0, 10_000))
def test_what_a_server_rounds_is_no_divergence(seed: int) -> None:
    """A server computes in single precision, in which all that it tells may sum to more than 1 while others are left."""
    random = numpy.random.default_rng(seed)
    row = random.normal(0, 3, 2_000)
    row[0] += random.uniform(10, 25)
    first = told([row.tolist()], top=64)
    for tell in (20, 64):
        assert divergence(first, served([row.tolist()], tell, first.ids.tolist(), "<f4")) == pytest.approx(0, abs=1e-6)


def test_what_is_more_than_a_distribution_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match=r"sum to 1\.8 at position 0"):
        examine_told([{0: math.log(0.9), 1: math.log(0.9)}], [0], top=3, asked=None)
