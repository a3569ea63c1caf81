"""Numbers as programs get them."""

from __future__ import annotations

_DIGITS = 6


def rounded(number: float | None) -> float | None:
    """Six significant digits, and whole bytes whole: more are noise, and differ from one library to the next."""
    if number is None or number == round(number):
        return number
    return float(f"{number:.{_DIGITS}g}")
