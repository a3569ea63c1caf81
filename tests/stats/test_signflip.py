from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.stats.binomial import mcnemar_p
from suite.stats.signflip import sign_flip_p

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
