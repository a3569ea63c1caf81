"""The few distribution functions of our own, held to SciPy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from suite.stats.beta import beta_quantile, beta_share, t_quantile, t_share

SIZES = st.floats(0.05, 1e4)
FREEDOMS = st.one_of(st.floats(0.5, 1e6), st.integers(1, 200).map(float))


@given(SIZES, SIZES, st.floats(0, 1))
def test_the_incomplete_beta_function_is_that_of_scipy(a: float, b: float, x: float) -> None:
    assert beta_share(a, b, x) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-8, abs=1e-14)


@given(st.integers(1, 2000), st.integers(1, 2000), st.floats(1e-9, 1 - 1e-9))
@example(1, 5, 0.9999999989999999)
def test_its_inverse_is_that_of_scipy(a: int, b: int, probability: float) -> None:
    found = beta_quantile(a, b, probability)
    assert found == pytest.approx(float(special.betaincinv(a, b, probability)), rel=1e-9)


@given(FREEDOMS, st.floats(-60, 60))
def test_student_s_t_is_that_of_scipy_in_its_tails_too(df: float, t: float) -> None:
    assert t_share(df, t) == pytest.approx(float(special.stdtr(df, t)), rel=1e-8, abs=1e-300)


@given(FREEDOMS, st.floats(1e-7, 1 - 1e-7))
def test_its_quantile_is_that_of_scipy(df: float, probability: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(float(special.stdtrit(df, probability)), rel=1e-7, abs=1e-9)


@given(FREEDOMS, st.floats(1e-12, 0.499))
def test_a_quantile_is_passed_as_often_as_it_says(df: float, tail: float) -> None:
    assert t_share(df, t_quantile(tail, df)) == pytest.approx(tail, rel=1e-9)


def test_tables_of_student_s_t() -> None:
    """Two-sided 95 % quantiles, as printed in any table."""
    assert [round(t_quantile(0.975, df), 3) for df in (1, 2, 4, 9, 30, math.inf)] == [
        12.706, 4.303, 2.776, 2.262, 2.042, 1.960,
    ]  # fmt: skip


def test_the_ends() -> None:
    assert (beta_share(2, 3, 0), beta_share(2, 3, 1)) == (0, 1)
    assert (beta_quantile(2, 3, 0), beta_quantile(2, 3, 1)) == (0, 1)
    assert (t_share(3, -math.inf), t_share(3, 0), t_share(3, math.inf)) == (0, 0.5, 1)


@pytest.mark.parametrize(("a", "b", "x"), [(0, 1, 0.5), (1, -1, 0.5), (1, 1, 1.5), (1, 1, math.nan)])
def test_what_has_no_value_is_refused(a: float, b: float, x: float) -> None:
    with pytest.raises(ValueError, match="needs a, b > 0"):
        beta_share(a, b, x)


def test_a_t_without_freedom_is_refused() -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_share(0, 1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(1.0, 3)
