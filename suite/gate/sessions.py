"""How much whole sessions of one machine differ: what calibration found, moderated by what is usual."""

from __future__ import annotations

import math

from suite.records import NoiseFloor
from suite.stats.intervals import SESSION_SD

PRIOR_DF = 8
"""Degrees of freedom that the usual spread counts for beside what a few sessions showed."""


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
