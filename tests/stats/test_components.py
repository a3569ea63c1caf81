"""Where the spread comes from."""

from __future__ import annotations

import math

import numpy
import pytest

from suite.stats.components import Components, components


def test_a_small_case_by_hand() -> None:
    """Means 1 and 4 about a grand mean of 2.5; within: 0.02 with 2 df, between: 2 × 2 × 2.25 = 9 with 1 df, n0 = 2."""
    found = components([[0.9, 1.1], [3.9, 4.1]])
    assert found is not None
    assert found.launch_sd == pytest.approx(math.sqrt(0.04 / 2))
    assert found.session_sd == pytest.approx(math.sqrt((9 - 0.02) / 2))
    assert (found.launch_df, found.session_df) == (2, 1)


def test_unequal_sessions_count_by_their_launches() -> None:
    """n0 = (4 - 10 / 4) / 1 = 1.5; the grand mean of 0, 2, 4, 5 is 2.75."""
    found = components([[5.0], [0.0, 2.0, 4.0]])
    assert found is not None
    between = (5 - 2.75) ** 2 + 3 * (2 - 2.75) ** 2
    assert found.launch_sd == pytest.approx(2.0)
    assert found.session_sd == pytest.approx(math.sqrt((between - 4) / 1.5))


def test_known_spreads_are_found_again() -> None:
    generator = numpy.random.default_rng(6)
    sessions = generator.normal(0, 0.03, (400, 1)) + generator.normal(0, 0.01, (400, 5))
    found = components(sessions.tolist())
    assert found is not None
    assert found.launch_sd == pytest.approx(0.01, rel=0.05)
    assert found.session_sd == pytest.approx(0.03, rel=0.1)
    assert (found.launch_df, found.session_df) == (1600, 399)


def test_sessions_that_differ_less_than_their_launches_have_no_spread_of_their_own() -> None:
    found = components([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    assert found is not None
    assert found.session_sd == 0.0
    assert found.launch_sd > 0


def test_one_session_says_nothing_about_sessions() -> None:
    assert components([[0.0, 2.0], []]) == Components(pytest.approx(math.sqrt(2)), 1, 0.0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[], [[]], [[1.0], [2.0]]])
def test_without_two_launches_in_one_session_there_is_no_answer(values: list[list[float]]) -> None:
    assert components(values) is None
