"""What a test could have seen: power, the smallest detectable effect, and how much data a wanted one needs.

Speed by the non-central t distribution, answers by enumeration; nothing here is approximate except the t model itself.
"""

from __future__ import annotations

import math
from functools import cache

from suite.stats.beta import t_quantile


def power(effect: float, margin: float, sd: float, n: int, alpha: float, *, df: float | None = None) -> float:
    """Chance that a one-sided t test of "at most `margin`" at level `alpha` rejects when the truth is `effect`.

    All in logs; `n` launches of standard deviation `sd`; `df` is n - 1 unless given. 0 for fewer than two launches.
    Source: non-central t with non-centrality (effect - margin) sqrt(n) / sd.
    """
    if n < 2 or sd <= 0:
        return 0.0
    from scipy.stats import nct  # slow

    freedom = n - 1 if df is None else df
    shift = (effect - margin) * math.sqrt(n) / sd
    return float(nct.sf(t_quantile(1 - alpha, freedom), freedom, shift))


def detectable(margin: float, sd: float, n: int, alpha: float, wanted: float) -> float:
    """The smallest effect (log) that `n` launches find with chance `wanted`; infinite for fewer than two launches."""
    if n < 2 or sd <= 0:
        return math.inf
    low, high = margin, margin + sd
    while power(high, margin, sd, n, alpha) < wanted:
        low, high = high, margin + 2 * (high - margin)
        if high > 50:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, margin, sd, n, alpha) >= wanted else (middle, high)
    return high


def launches_for(
    effect: float, margin: float, sd: float, alpha: float, wanted: float = 0.95, *, most: int = 200
) -> int | None:
    """Fewest launches that find `effect` with chance `wanted`; None when `most` are not enough."""
    return next((n for n in range(2, most + 1) if power(effect, margin, sd, n, alpha) >= wanted), None)


@cache
def mcnemar_power(n: int, loss: float, gain: float, alpha: float) -> float:
    """Chance that the exact one-sided McNemar test calls a loss, summed over all outcomes.

    `n` cases, each lost with probability `loss`, gained with probability `gain`, independently: the number of flips is
    binomial, and so are the losses among them.
    """
    if not 0 <= loss <= 1 or not 0 <= gain <= 1 or loss + gain > 1:
        raise ValueError(f"rates must be shares that add up to at most 1: {loss}, {gain}")
    flipping = loss + gain
    if flipping == 0:
        return 0.0
    import numpy
    from scipy.stats import binom  # slow

    flips = numpy.arange(1, n + 1)
    fewest = numpy.array([_fewest_losses(int(m), alpha) for m in flips])
    return float((binom.pmf(flips, n, flipping) * binom.sf(fewest - 1, flips, loss / flipping)).sum())


def detectable_loss(n: int, alpha: float, wanted: float, gain: float = 0.0) -> float | None:
    """The smallest loss rate (share of the cases, in steps of 0.1 points) that is found with chance `wanted`; None: never."""
    low, high = 0, int(1000 * (1 - gain))
    if high <= 0 or mcnemar_power(n, high / 1000, gain, alpha) < wanted:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(n, middle / 1000, gain, alpha) >= wanted else (middle, high)
    return high / 1000


@cache
def _fewest_losses(flips: int, alpha: float) -> int:
    """The fewest losses among so many flips that McNemar's test calls a loss; one more than the flips when it never does."""
    from scipy.stats import binom  # slow

    return int(binom.isf(alpha, flips, 0.5)) + 1
