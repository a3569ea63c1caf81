"""Exact test of paired changes of any size; for changes that are all of one size it is McNemar's."""

from __future__ import annotations

from collections.abc import Sequence

_STEPS = 200
"""Changes are rounded to this many steps in 1.0 before they are summed exactly."""


def sign_flip_p(losses: Sequence[float]) -> float:
    """One-sided p that paired `losses` (was - now, within -1..1) sum to as much as they do if nothing got worse.

    If nothing got worse, each change was as likely to go the other way: p is the share of all 2^m choices of signs
    whose sum is at least the observed one, counted exactly. With changes of 0 and ±1 this is the exact one-sided
    McNemar test. 1.0 when nothing changed. Source: R. A. Fisher, The Design of Experiments (1935), section 21.
    """
    import numpy

    steps = [round(loss * _STEPS) for loss in losses]
    sizes = [abs(step) for step in steps if step]
    total, observed = sum(sizes), sum(steps)
    chances = numpy.zeros(2 * total + 1)
    chances[total] = 1.0
    reach = 0
    for size in sizes:
        low, high = total - reach, total + reach + 1
        spread = chances[low:high] / 2
        chances[low:high] = 0.0
        chances[low - size : high - size] += spread
        chances[low + size : high + size] += spread
        reach += size
    return min(float(chances[total + observed :].sum()), 1.0)
