"""Where the spread comes from: launches within a session, and sessions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Components:
    """Standard deviations of a one-way random effects model, with the degrees of freedom behind each."""

    launch_sd: float
    launch_df: int
    session_sd: float
    session_df: int


def components(values: Sequence[Sequence[float]]) -> Components | None:
    """Variance components of ``values[session][launch]`` by the method of moments; None without two launches in one session.

    Within: pooled variance of the launches. Between: (mean square of the sessions - that of the launches) / n0, with n0 the
    effective number of launches in a session; a negative estimate counts as 0. Source: S. R. Searle, G. Casella and
    C. E. McCulloch, Variance Components (1992), section 3.6.
    """
    sessions = [list(session) for session in values if len(session) > 0]
    total, groups = sum(map(len, sessions)), len(sessions)
    within_df = total - groups
    if within_df < 1:
        return None
    means = [statistics.fmean(session) for session in sessions]
    squares = math.fsum((v - m) ** 2 for session, m in zip(sessions, means, strict=True) for v in session)
    launch = squares / within_df
    if groups < 2:
        return Components(math.sqrt(launch), within_df, 0.0, 0)
    grand = math.fsum(value for session in sessions for value in session) / total
    between = math.fsum(len(s) * (m - grand) ** 2 for s, m in zip(sessions, means, strict=True)) / (groups - 1)
    size = (total - sum(len(session) ** 2 for session in sessions) / total) / (groups - 1)
    return Components(math.sqrt(launch), within_df, math.sqrt(max((between - launch) / size, 0.0)), groups - 1)
