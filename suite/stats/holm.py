"""Many tests at once, without crying wolf: Holm's step-down procedure, and Tarone's remark on discrete tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tested:
    """One test of a family."""

    p: float
    p_least: float = 0.0
    """The smallest p that it could have given: 0 for a continuous one, 2^-m for McNemar's test with m flips."""


def holm_levels(tests: Sequence[Tested], alpha: float) -> list[float]:
    """For each test the level at which it is rejected (p <= level) so that all together are wrong with chance <= `alpha`.

    Tests that could not be rejected at alpha / K whatever happened are left out of the count, their level is 0; K is the
    smallest number for which at most K others remain. What is rejected at alpha / K is set aside, and the rest is judged
    anew: a smaller number, a higher level. Sources: S. Holm, Scandinavian Journal of Statistics 6 (1979); R. E. Tarone,
    Biometrics 46 (1990); G. Hommel and F. Krummenauer, Biometrical Journal 40 (1998), for the two together.
    """
    levels = [0.0] * len(tests)
    remaining = list(range(len(tests)))
    while remaining:
        count = family_size([tests[index] for index in remaining], alpha)
        level = alpha / count if count else 0.0
        able = [index for index in remaining if count and tests[index].p_least <= level]
        for index in remaining:
            levels[index] = level if index in able else 0.0
        rejected = {index for index in able if tests[index].p <= level}
        if not rejected:
            break
        remaining = [index for index in remaining if index not in rejected]
    return levels


def family_size(tests: Sequence[Tested], alpha: float) -> int:
    """Tarone's K: the smallest number such that at most K tests can reach alpha / K. 0 when none can reach alpha."""
    for count in range(1, len(tests) + 1):
        able = sum(test.p_least <= alpha / count for test in tests)
        if able <= count:
            return count if able else 0
    return len(tests)
