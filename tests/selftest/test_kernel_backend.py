"""The kernel backend keeps the contract of a backend, and its extra work is real."""

from __future__ import annotations

from typing import Any

import pytest

from suite import backends, clock
from suite.backends.base import Prefilled
from suite.backends.kernel import BACKEND, COLUMNS, STALL, VOCABULARY, KernelModel, KernelOptions, _row_products
from suite.errors import LoadError, UsageError
from suite.worker.messages import Generate, Generated, Load, Loaded
from suite.worker.process import Worker
from suite.worker.serve import Server


def load(**options: Any) -> KernelModel:
    return BACKEND.load(None, KernelOptions(**{"megabytes": 4, **options}), "raw")


def count_rows(model: KernelModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each product from now on."""
    counted: list[int] = []
    multiply = model._multiply

    def counting(rows: Any, vector: Any) -> Any:
        counted.append(rows.shape[0])
        return multiply(rows, vector)

    monkeypatch.setattr(model, "_multiply", counting)
    return counted


def test_it_is_built_in_and_needs_no_weights() -> None:
    backend = backends.resolve("kernel")
    backends.require("kernel")
    assert backend is BACKEND
    assert (backend.weights_format, backend.makes, backend.requires) == ("none", (), ("numpy",))
    assert backends.options_of("kernel")() == KernelOptions()


def test_it_streams_prefilled_then_as_many_tokens_as_asked() -> None:
    items = list(load().stream([5, 6, 7], 4))
    assert items[0] == Prefilled(3)
    assert len(items) == 5
    assert all(isinstance(token, int) and 1 <= token <= VOCABULARY for token in items[1:])


def test_tokens_are_the_same_in_every_launch_and_with_more_work() -> None:
    answers = {tuple(load(**more).stream([5, 6, 7], 12))[1:] for more in ({}, {"work": 1.5}, {"stall_every": 3})}
    assert len(answers) == 1
    assert tuple(load(seed=1).stream([5, 6, 7], 12))[1:] not in answers
    assert len(set(next(iter(answers)))) > 1  # no one-token answer that would be equal by itself


def test_more_work_is_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 4 * 2**20 // (4 * COLUMNS)
    plain, slower = load(), load(work=2.0)
    for model, expected in ((plain, rows), (slower, 2 * rows)):
        counted = count_rows(model, monkeypatch)
        list(model.stream([1] * 16, 2))
        assert counted[-2:] == [expected] * 2


def test_a_stalled_token_does_many_times_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(stall_every=3, prefill_passes=0)
    counted = count_rows(model, monkeypatch)
    list(model.stream([1], 6))
    assert len(counted) == 4 + 2 * STALL


def test_prefill_grows_with_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load()
    counted = count_rows(model, monkeypatch)
    list(model.stream([1] * 16, 0))
    short = len(counted)
    list(model.stream([1] * 64, 0))
    assert len(counted) - short == 4 * short > 0


def test_rows_are_multiplied_alike_with_an_older_numpy() -> None:
    import numpy

    class Old:
        einsum = staticmethod(numpy.einsum)

    random = numpy.random.default_rng(0)
    for shapes in (((6, 8), (8,)), ((6, 1, 8), (1, 3, 8))):
        rows, other = (random.standard_normal(shape) for shape in shapes)
        assert numpy.allclose(_row_products(Old)(rows, other), _row_products(numpy)(rows, other))


def test_prompt_and_answer_must_fit_the_context() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        list(load(n_ctx=8).stream([1] * 7, 2))


@pytest.mark.parametrize(
    "wrong", [{"megabytes": 0}, {"work": 0.0}, {"prefill_work": -1.0}, {"stall_every": -1}, {"n_threads": 2}]
)
def test_amounts_that_are_none_are_load_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(LoadError, match="kernel"):
        load(**wrong)


def test_it_makes_nothing() -> None:
    with pytest.raises(UsageError, match="cannot make"):
        BACKEND.make("Q4_0", None, None)  # type: ignore[arg-type]


def test_text_goes_in_as_bytes_and_answers_never_end() -> None:
    model = load()
    assert model.encode("aé") == [97, 195, 169]
    assert model.render([{"role": "user", "content": "a"}]) == model.encode("<user>a<assistant>")
    assert model.decode([3, 5]) == "3 5"
    assert [model.is_end(token) for token in (0, 1)] == [True, False]
    assert model.clock is clock.monotonic


def test_the_server_times_it_on_the_real_clock() -> None:
    server = Server()
    loaded = server.answer(Load(backend="kernel", weights=None, options={"megabytes": 4}, prompt_format="raw"))
    assert isinstance(loaded, Loaded)
    assert not loaded.simulated
    answer = server.answer(Generate(prompt=[1, 2], max_new_tokens=3, stop_at_end=False))
    assert isinstance(answer, Generated)
    assert answer.evaluated_tokens == 2
    assert 0 < answer.prefill_s <= answer.token_times_s[0] < answer.token_times_s[-1]


def test_it_works_in_a_real_worker() -> None:
    with Worker("kernel") as worker:
        loaded: Loaded = worker.ask(
            Load(backend="kernel", weights=None, options={"megabytes": 4}, prompt_format="raw"), 60.0
        )
        assert loaded.threads == 1
        answer: Generated = worker.ask(Generate(prompt=[1], max_new_tokens=5, stop_at_end=False), 60.0)
        assert answer.token_ids == list(load().stream([1], 5))[1:]
