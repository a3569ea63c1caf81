"""Exact test of paired changes of any size; for changes that are all of one size it is McNemar's."""

from __future__ import annotations

from collections.abc import Sequence

_STEPS = 200
"""Changes are rounded to this many steps in 1.0 before they are summed exactly."""


def sign_flip_p(losses: Sequence[float]) -> float:
    """One-sided p that paired `losses` (was - now) sum to as much as they do if nothing got worse.

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


def least_p(losses: Sequence[float]) -> float:
    """The smallest p that `sign_flip_p` could give with changes of these sizes: all of them losses; 1.0 for none."""
    return float(2.0 ** -sum(round(loss * _STEPS) != 0 for loss in losses))


def sum_by_family(losses: Sequence[float], families: Sequence[str | None]) -> list[float]:
    """One change for each template family (cases without one stand alone): variations of one prompt stand or fall together,
    so they count as one draw.
    """
    alone = [loss for loss, family in zip(losses, families, strict=True) if family is None]
    together: dict[str, float] = {}
    for loss, family in zip(losses, families, strict=True):
        if family is not None:
            together[family] = together.get(family, 0.0) + loss
    return [*alone, *together.values()]
