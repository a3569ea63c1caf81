"""Student-t intervals on logarithms, so that a ratio and its inverse are treated alike.

The sampling unit is the launch (one fresh load), never the token: tokens of one launch share its luck with memory pages
and are autocorrelated, and bootstrapping them covers about 65 % where 95 % is claimed. A t interval on launch medians
covers what it says.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from suite.stats.beta import t_quantile, t_share

STORED_SD_FLOOR = 0.015
"""Standard deviation of log(value) from session to session, below which the spread of a few launches is not believed
when a stored number is compared: launches within one session share that session's state of the machine."""

PAIRED_SD_FLOOR = 0.003
"""The same floor for ratios measured side by side in one session, where the session cancels."""

SESSION_SD = 0.03
"""Standard deviation of log(value) between sessions on a machine that was never calibrated: medians of five-second windows of
one kernel, minutes apart on a quiet machine, varied by 3 to 4 %."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean on the scale of the logarithm, with its standard error and degrees of freedom."""

    mean: float
    se: float
    df: float


def paired_mean(logs: Sequence[float], *, sd_floor: float = PAIRED_SD_FLOOR) -> Estimate | None:
    """The mean of log ratios, one a launch, whose sample SD counts as at least `sd_floor`; None for fewer than two."""
    if len(logs) < 2:
        return None
    sd = max(statistics.stdev(logs), sd_floor)
    return Estimate(statistics.fmean(logs), sd / math.sqrt(len(logs)), len(logs) - 1)


def session_mean(
    logs: Sequence[float],
    *,
    sd_floor: float = STORED_SD_FLOOR,
    session_sd: float = SESSION_SD,
    session_df: float = math.inf,
) -> Estimate | None:
    """The mean of a machine's sessions, from the launches of one of them (logs); None for fewer than two launches.

    What a session adds is not in its launches, so its variance is put to theirs; degrees of freedom as in `stored_difference`.
    """
    if len(logs) < 2:
        return None
    launch = max(statistics.stdev(logs), sd_floor) ** 2 / len(logs)
    session = session_sd**2
    total = launch + session
    freedom = total**2 / (launch**2 / (len(logs) - 1) + (session**2 / session_df if session_df < math.inf else 0.0))
    return Estimate(statistics.fmean(logs), math.sqrt(total), freedom)


def stored_difference(
    now: Sequence[float],
    then: Sequence[float],
    *,
    sd_floor: float = STORED_SD_FLOOR,
    session_sd: float = SESSION_SD,
    session_df: float = math.inf,
) -> Estimate | None:
    """mean(now) - mean(then) of two sessions of launches, logs; None when neither side has two.

    Launches of one session share its luck, so the variance has two parts: that of the launches, pooled over both sides
    and floored, and twice that between sessions, which no number of launches makes smaller. Degrees of freedom by
    Satterthwaite's rule. Source: F. E. Satterthwaite, Biometrics Bulletin 2 (1946).
    """
    if not now or not then or len(now) + len(then) < 3:
        return None
    df = len(now) + len(then) - 2
    squares = sum((value - statistics.fmean(side)) ** 2 for side in (now, then) for value in side)
    launch = max(squares / df, sd_floor**2) * (1 / len(now) + 1 / len(then))
    session = 2 * session_sd**2
    total = launch + session
    freedom = total**2 / (launch**2 / df + (session**2 / session_df if session_df < math.inf else 0.0))
    return Estimate(statistics.fmean(now) - statistics.fmean(then), math.sqrt(total), freedom)


def interval_of(estimate: Estimate, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided t interval, on the scale of the estimate."""
    half = t_quantile(0.5 + confidence / 2, estimate.df) * estimate.se
    return estimate.mean - half, estimate.mean + half


def p_above(estimate: Estimate, margin: float) -> float:
    """One-sided p of "the true mean is at most `margin`": small when it is above."""
    return t_share(estimate.df, (margin - estimate.mean) / estimate.se)


def p_below(estimate: Estimate, margin: float) -> float:
    """One-sided p of "the true mean is at least `margin`": small when it is below."""
    return t_share(estimate.df, (estimate.mean - margin) / estimate.se)


def spend(alpha: float, look: int) -> float:
    """The part of `alpha` that look number `look` (1, 2, …) may spend: half of what is left, so that however often data are
    extended and judged again, all looks together spend less than `alpha`.
    """
    if look < 1:
        raise ValueError(f"looks are counted from 1: {look}")
    return float(alpha / 2**look)


def spend_late(alpha: float, look: int) -> float:
    """The part of `alpha` that look number `look` may spend where a second look is to decide: 1/4, 1/2, 1/8, 1/16 …

    Most is kept for the look that has all the launches, after O'Brien and Fleming ("A multiple testing procedure for
    clinical trials", Biometrics 35, 1979): what is changed is found more often there, and all looks together spend less than
    `alpha` still.
    """
    return float(alpha / 2) if look == 2 else spend(alpha / 2 if look == 1 else alpha, look)
