"""What a worker makes of the logits of a forced answer: exact, in order, and never a number where there is none."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.engine.distributions import Rows, unpack
from suite.errors import UsageError
from suite.worker.forcing import LEAST, examine, likeliest, log_softmax
from suite.worker.messages import Examined, Failed, Force, Load, pack
from suite.worker.messages import unpack as unpack_message
from suite.worker.serve import Server

INF = math.inf
LOGITS = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40)


def rows_of(examined: Examined) -> Rows:
    rows = unpack(examined)
    assert rows is not None
    return rows


def told(logits: Sequence[Sequence[float]], answer: Sequence[int], *, top: int = 2, asked: Any = None) -> Rows:
    return rows_of(examine(iter(logits), answer, top=top, asked=asked))


def test_one_position_by_hand() -> None:
    """Logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8."""
    rows = told([[0.0, math.log(2), math.log(5)]], [1], top=2)
    assert rows.chosen == pytest.approx([math.log(2 / 8)])
    assert (rows.best.tolist(), rows.ids.tolist()) == ([2], [[2, 1]])
    assert rows.best_logprob == pytest.approx([math.log(5 / 8)])
    assert rows.logprobs[0] == pytest.approx([math.log(5 / 8), math.log(2 / 8)])
    assert rows.rest == pytest.approx([math.log(1 / 8)])
    assert rows.broken == ()


def test_asked_tokens_come_in_the_order_in_which_they_were_asked_and_without_ids() -> None:
    logits = [0.0, math.log(2), math.log(5)]
    rows = told([logits, logits], [0, 0], asked=[[0, 2], [1, 0]])
    assert rows.ids is None
    assert rows.logprobs.tolist() == [
        pytest.approx([math.log(1 / 8), math.log(5 / 8)]),
        pytest.approx([math.log(2 / 8), math.log(1 / 8)]),
    ]
    assert rows.rest == pytest.approx([math.log(2 / 8), math.log(5 / 8)])
    assert rows.best.tolist() == [2, 2]


@given(LOGITS)
def test_log_softmax_is_that_of_the_standard_library(logits: list[float]) -> None:
    total = math.fsum(math.exp(value - max(logits)) for value in logits)
    expected = [value - max(logits) - math.log(total) for value in logits]
    assert log_softmax(numpy.array(logits)) == pytest.approx(expected, abs=1e-13)


def test_a_likelihood_of_nearly_one_leaves_a_rest_that_is_exact_although_it_is_no_difference_from_one() -> None:
    rows = told([[100.0, 0.0, 0.0, 0.0]], [0], top=1)
    assert rows.chosen == pytest.approx([0.0])
    assert rows.rest == pytest.approx([math.log(3) - 100])


@given(LOGITS, st.integers(1, 45))
def test_the_likeliest_are_those_of_a_stable_sort_ties_included(logits: list[float], width: int) -> None:
    coarse = numpy.round(numpy.array(logits) / 10)  # many ties
    expected = sorted(range(len(logits)), key=lambda token: (-coarse[token], token))[:width]
    assert likeliest(coarse, width).tolist() == expected


def test_of_equals_at_the_edge_the_lower_ids_have_room() -> None:
    assert likeliest(numpy.array([0.0] * 50 + [1.0] + [0.0] * 50), 4).tolist() == [50, 0, 1, 2]
    assert likeliest(numpy.full(30, -INF), 3).tolist() == [0, 1, 2]


@given(LOGITS, st.integers(1, 45))
def test_told_and_rest_are_one_together(logits: list[float], top: int) -> None:
    rows = told([logits], [0], top=top)
    mass = numpy.exp(rows.logprobs.astype(float)).sum() + math.exp(rows.rest[0])
    assert mass == pytest.approx(1.0, abs=1e-5)


def test_a_vocabulary_smaller_than_the_top_is_told_whole_and_nothing_else_is() -> None:
    examined = examine(iter([[0.0, 1.0, 2.0]] * 2), [0, 1], top=64, asked=None)
    rows = rows_of(examined)
    assert examined.width == 3
    assert rows.ids.tolist() == [[2, 1, 0]] * 2
    assert rows.rest.tolist() == [LEAST] * 2


@pytest.mark.parametrize(
    "logits",
    [[math.nan, 0.0, 1.0], [math.nan] * 3, [INF, 0.0, 1.0], [INF, -INF, math.nan], [-INF] * 3],
    ids=["one NaN", "all NaN", "infinite", "mixed", "nothing possible"],
)
def test_logits_that_are_no_numbers_are_broken_and_leave_no_number(logits: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = told([[0.0, 1.0, 2.0], logits, [0.0, 1.0, 2.0]], [1, 1, 1])
    assert rows.broken == (1,)
    for values in (rows.chosen, rows.best_logprob, rows.logprobs, rows.rest):
        assert numpy.isfinite(values).all()
        assert not values[1].any()
    assert rows.chosen[0] == rows.chosen[2] != 0


def test_a_token_that_is_impossible_is_told_as_the_least_and_is_no_fault() -> None:
    rows = told([[0.0, -INF, -INF]], [1], top=2)
    assert rows.broken == ()
    assert rows.chosen.tolist() == [LEAST]
    assert rows.logprobs.tolist() == [[0.0, LEAST]]
    assert rows.rest.tolist() == [LEAST]
    assert math.exp(LEAST) == 0.0


@pytest.mark.parametrize("token", [3, 152_000, -1])
def test_a_token_beyond_the_vocabulary_is_refused_with_a_sentence(token: int) -> None:
    says = f"token {token} is asked for, and the vocabulary ends at 2: the trace is of another model"
    with pytest.raises(UsageError, match=says):
        told([[0.0, 1.0, 2.0]], [0], asked=[[0, token]])
    with pytest.raises(UsageError, match=says):
        told([[0.0, 1.0, 2.0]], [token])


@pytest.mark.parametrize(("given", "says"), [(1, "logits of 1 positions"), (3, "logits of more than 2 positions")])
def test_rows_that_do_not_fit_the_answer_are_a_fault_of_the_backend(given: int, says: str) -> None:
    with pytest.raises(RuntimeError, match=f"{says} for an answer of 2 tokens"):
        told([[0.0, 1.0]] * given, [0, 1])


def test_an_array_that_a_backend_uses_again_does_not_matter() -> None:
    buffer = numpy.zeros(4, numpy.float32)

    def stream() -> Any:
        for token in (1, 3):
            buffer[:] = 0
            buffer[token] = 5
            yield buffer

    assert rows_of(examine(stream(), [0, 0], top=1, asked=None)).best.tolist() == [1, 3]


# ------------------------------------------------------------------------------------------ through a worker


def serve(**options: Any) -> Server:
    server = Server()
    server.answer(Load(backend="fake", weights=None, options=options, prompt_format="chat"))
    return server


def force(server: Server, **more: Any) -> Any:
    return server.answer(Force(**{"prompt": [65] * 4, "answer": [1, 2, 3], "batched": True, "top": 64, **more}))


def test_it_comes_out_of_a_worker_as_a_message_that_is_read_back() -> None:
    answer = force(serve(reply="abc", logprob=-0.25))
    assert unpack_message(pack(answer)) == answer
    rows = rows_of(answer)
    assert (rows.chosen.shape, rows.logprobs.shape) == ((3,), (3, 64))
    assert rows.best_logprob == pytest.approx([-0.25] * 3)


def test_broken_logits_come_out_of_a_worker_as_positions() -> None:
    answer = force(serve(reply="abc", broken_at=1))
    assert rows_of(unpack_message(pack(answer))).broken == (1,)


def test_a_worker_refuses_a_token_that_is_not_in_the_vocabulary_and_lives_on() -> None:
    server = serve(reply="abc")
    refused = force(server, asked=[[1, 300]] * 3)
    assert isinstance(refused, Failed)
    assert (refused.kind, "the vocabulary ends at 255" in refused.message) == ("usage", True)
    assert isinstance(force(server), Examined)


def test_a_model_that_cannot_be_forced_says_so() -> None:
    server = Server()
    server._model = object()  # type: ignore[assignment]
    answer = force(server)
    assert isinstance(answer, Examined)
    assert unpack(answer) is None
