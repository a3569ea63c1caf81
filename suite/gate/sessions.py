"""How much whole sessions of one machine differ: what calibration found, moderated by what is usual."""

from __future__ import annotations

import math

from suite.records import NoiseFloor
from suite.stats.intervals import SESSION_SD, Estimate

PRIOR_DF = 8
"""Degrees of freedom that the usual spread counts for beside what a few sessions showed."""


WORST_SESSION_SD = 0.15
"""Standard deviation of log(value) between sessions of a shared virtual machine in its worst hours (measured: 0.14)."""


def doubt(estimate: Estimate) -> Estimate:
    """The estimate as far as it may accuse where the spread between sessions was never measured.

    Sessions may then differ by as much as on the worst machine that was seen; a PASS reckons with the usual spread.
    """
    return Estimate(estimate.mean, math.hypot(estimate.se, math.sqrt(2) * WORST_SESSION_SD), estimate.df)


def session_spread(floor: NoiseFloor | None, *, normalised: bool = False) -> tuple[float, float]:
    """Standard deviation between sessions (of logs) and its degrees of freedom; not calibrated: the usual one, taken as known.

    Three sessions that happened to agree do not show that all will, and three that did not are no reason to give up:
    both variances are averaged, weighted by their degrees of freedom. Source: the moderated variance of G. K. Smyth,
    Statistical Applications in Genetics and Molecular Biology 3 (2004), with prior SD `SESSION_SD`.
    """
    if floor is None or floor.session_df < 1:
        return SESSION_SD, math.inf
    found = (floor.normalised_session_sd if normalised else floor.session_sd) or 0.0
    df = floor.session_df + PRIOR_DF
    return math.sqrt((floor.session_df * found**2 + PRIOR_DF * SESSION_SD**2) / df), float(df)
