from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.binomial import mcnemar_p
from suite.stats.signflip import least_p, sign_flip_p, sum_by_family

changes = st.integers(-20, 20).map(lambda step: step / 20)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(deadline=None)
def test_for_right_and_wrong_it_is_mcnemar(lost: int, gained: int, same: int) -> None:
    assert sign_flip_p([1.0] * lost + [-1.0] * gained + [0.0] * same) == pytest.approx(mcnemar_p(lost, gained))


@given(st.lists(changes, max_size=9))
@settings(deadline=None, max_examples=60)
def test_it_counts_every_choice_of_signs(losses: list[float]) -> None:
    sizes = [abs(loss) for loss in losses]
    sums = [sum(s * size for s, size in zip(signs, sizes, strict=True))
            for signs in itertools.product((-1, 1), repeat=len(sizes))]  # fmt: skip
    expected = sum(total >= sum(losses) - 1e-9 for total in sums) / len(sums)
    assert sign_flip_p(losses) == pytest.approx(expected)


def test_many_small_losses_are_evidence_and_one_large_one_is_not() -> None:
    assert sign_flip_p([0.1] * 24) < 1e-6
    assert sign_flip_p([1.0, *[0.0] * 23]) == 0.5
    assert sign_flip_p([]) == 1.0


def test_a_thousand_cases_are_counted_in_no_time() -> None:
    assert sign_flip_p([0.3, -0.3, 0.7, -0.7] * 300) == pytest.approx(0.5, abs=0.02)


@given(st.lists(changes, max_size=9))
@settings(deadline=None, max_examples=60)
def test_the_least_p_is_that_of_losses_only_and_no_choice_of_signs_is_below(losses: list[float]) -> None:
    assert least_p(losses) == pytest.approx(sign_flip_p([abs(loss) for loss in losses]))
    assert least_p(losses) <= sign_flip_p(losses)


def test_without_a_change_there_is_nothing_to_test() -> None:
    assert least_p([]) == least_p([0.0, 0.0, 1e-4]) == 1.0  # less than can be told
    assert least_p([1.0, -1.0, 0.0]) == 0.25


def test_variations_of_one_prompt_count_once() -> None:
    losses = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    apart = sum_by_family(losses, [None] * 6)
    together = sum_by_family(losses, ["add", "add", "add", "subtract", "subtract", None])
    assert apart == losses
    assert sorted(together) == [0.0, 2.0, 3.0]
    assert sign_flip_p(apart) == 1 / 32
    assert sign_flip_p(together) == 1 / 4


def test_losses_and_gains_within_a_family_cancel() -> None:
    assert sum_by_family([1.0, -1.0, 0.5], ["add", "add", "multiply"]) == [0.0, 0.5]
    assert least_p(sum_by_family([1.0, -1.0], ["add", "add"])) == 1.0


def test_every_loss_needs_its_family() -> None:
    with pytest.raises(ValueError, match="zip"):
        sum_by_family([1.0], [])
