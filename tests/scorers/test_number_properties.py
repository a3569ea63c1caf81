"""A number is read back whatever it is written in."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from suite.scorers.number import Number

WHOLE = st.integers(min_value=-(10**9), max_value=10**9)
DECIMAL = st.decimals(min_value=-(10**6), max_value=10**6, places=2, allow_nan=False, allow_infinity=False)


def read(text: str, *, truncated: bool = False) -> Fraction | None:
    found = Number().extract(text, truncated=truncated)
    return found[1].value if found else None


@given(WHOLE)
def test_whole_numbers_with_and_without_separators(number: int) -> None:
    assert read(str(number)) == number
    assert read(f"{number:,}") == number
    assert read(f"The answer is {number:,} apples.") == number
    assert read(f"\\boxed{{{number}}}") == number


@given(DECIMAL)
def test_decimals(number: object) -> None:
    assert read(f"It is {number}.") == Fraction(str(number))


@given(WHOLE, st.integers(min_value=1, max_value=10**4))
def test_fractions(above: int, below: int) -> None:
    assert read(f"{above}/{below}") == Fraction(above, below)


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=0, max_value=10**6))
def test_an_anchored_number_is_never_shadowed_by_a_later_one(right: int, later: int) -> None:
    assert read(f"The answer is {right}. I could give {later} more.") == right
    assert read(f"#### {right}\nI could give {later} more") == right


@given(st.integers(min_value=10, max_value=10**9), st.data())
def test_a_number_that_the_budget_cut_is_never_read(number: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(min_value=1, max_value=len(f"{number:,}")))
    assert read(f"The answer is {number:,}"[: len("The answer is ") + cut], truncated=True) is None


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_crash(text: str) -> None:
    read(text)
    read(text, truncated=True)
