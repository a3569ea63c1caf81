"""What would turn "cannot tell" into an answer: how many cases or launches, if they go on to vary as they do."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from suite.gate.advice.asked import Limit
from suite.gate.advice.estimates import POINTS, Estimate
from suite.gate.loss import ALPHA
from suite.stats.beta import t_quantile
from suite.stats.binomial import net_loss_bounds
from suite.stats.intervals import PAIRED_SD_FLOOR, STORED_SD_FLOOR, spend

MOST_CASES = 5000
MOST_LAUNCHES = 60
"""No more are proposed."""
USUAL_LAUNCHES = 5
ONLY_SPEED = "--matrix-only=speed --matrix-resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next."""

    sentence: str
    command: str = ""
    """Empty where there is nothing to run."""
    cases: int | None = None
    """Independent cases that would be needed, those that there are included."""
    launches: int | None = None
    """Launches of each of the variants, likewise."""


def settle_limit(estimate: Estimate, limit: Limit, *, names: tuple[str, ...], command: str) -> Step:
    """What would settle an open limit; `names` are the variants that have to be measured together for it, none for all."""
    again = f"{command} --matrix-variants {shlex.quote(','.join(names))}" if names else command
    if estimate.value is None:
        return Step(sentence="measure that", command=again)
    if estimate.quantity in ("loss", "kld"):
        return _settle_cases(estimate, limit, again)
    if estimate.doubt:
        return Step(sentence="measure it again when nothing else runs", command=f"{again} {ONLY_SPEED}")
    return _settle_launches(estimate, limit, f"{again} {ONLY_SPEED}")


# ------------------------------------------------------------------------------------------------------- cases


def _settle_cases(estimate: Estimate, limit: Limit, again: str) -> Step:
    found = _cases_of_loss(estimate, limit) if estimate.draws else _cases_by_width(estimate, limit)
    if found is None:
        return Step(
            sentence=f"not even {MOST_CASES} cases like these would settle it: the limit is too close to the estimate"
        )
    needed = _rounded(found)
    return Step(
        sentence=f"about {needed} independent cases like these would settle it ({estimate.n} now): write more, and measure "
        "again",
        command=again,
        cases=needed,
    )


def _rounded(cases: int) -> int:
    """Up to two digits: how answers will differ is not known any better."""
    unit = int("1" + "0" * max(len(str(cases)) - 2, 0))
    return math.ceil(cases / unit) * unit


def _cases_of_loss(estimate: Estimate, limit: Limit) -> int | None:
    """By the same exact bounds, if credit went on to be lost and gained as often."""
    n = len(estimate.draws)
    lost = math.fsum(max(points, 0.0) for points in estimate.draws) / POINTS / n
    gained = math.fsum(max(-points, 0.0) for points in estimate.draws) / POINTS / n

    def settles(cases: int) -> bool:
        low, high = net_loss_bounds(math.floor(lost * cases), math.floor(gained * cases), cases, confidence=1 - ALPHA)
        return POINTS * high <= limit.value or POINTS * low > limit.value

    return _fewest(settles, n + 1, MOST_CASES)


def _cases_by_width(estimate: Estimate, limit: Limit) -> int | None:
    """If the interval shrinks with the square root of the cases, as that of a mean over independent ones does."""
    gap = abs((estimate.value or 0.0) - limit.value)
    if estimate.interval is None or not gap:
        return 2 * max(estimate.n, 1) if estimate.interval is None else None
    wide = max(abs(end - (estimate.value or 0.0)) for end in estimate.interval)
    if wide / gap > math.sqrt(
        MOST_CASES / max(estimate.n, 1)
    ):  # before it is squared: a limit may be as small as a number can be
        return None
    return max(math.ceil(estimate.n * (wide / gap) ** 2), estimate.n + 1)


# ------------------------------------------------------------------------------------------------------- launches


def _settle_launches(estimate: Estimate, limit: Limit, again: str) -> Step:
    if estimate.interval is None or len(estimate.draws) < 2:
        return _set_launches(USUAL_LAUNCHES, estimate, again)
    gap = abs(math.log(estimate.value or 1.0) - math.log(limit.value))
    if gap <= statistics.NormalDist().inv_cdf(1 - ALPHA / 2) * estimate.session_sd:
        percent = f"{100 * estimate.session_sd:.0f} %"
        return Step(
            sentence=f"no number of launches settles it: whole sessions of a machine are taken to differ by {percent}, "
            "which is more than what lies between the estimate and the limit"
        )
    needed = _launches(estimate, gap)
    if needed is None:
        return Step(
            sentence=f"not even {MOST_LAUNCHES} launches would settle it: the limit is too close to the estimate"
        )
    return _set_launches(needed, estimate, again)


def _launches(estimate: Estimate, gap: float) -> int | None:
    """By the t interval of the next look at them, if they go on to vary as they do."""
    floor = STORED_SD_FLOOR if estimate.session_sd else PAIRED_SD_FLOOR
    sd = max(statistics.stdev(estimate.draws), floor)
    tail = ALPHA / 2 if estimate.session_sd else spend(ALPHA, estimate.looks + 1)

    def settles(launches: int) -> bool:
        launch, session = sd**2 / launches, estimate.session_sd**2
        freedom = (launch + session) ** 2 / (launch**2 / (launches - 1))
        return t_quantile(1 - tail, freedom) * math.sqrt(launch + session) <= gap

    return _fewest(settles, max(estimate.n + 1, 2), MOST_LAUNCHES)


def _set_launches(needed: int, estimate: Estimate, again: str) -> Step:
    return Step(
        sentence=f"about {needed} launches would settle it ({estimate.n} now): set launches = {needed} under [protocol] of the "
        "matrix file, and go on with the run",
        command=again,
        launches=needed,
    )


def _fewest(settles: Callable[[int], bool], fewest: int, most: int) -> int | None:
    """The fewest that settle it and, since whole cases make it jump, whose double does too; None for more than `most`."""
    step = max(fewest // 20, 1)
    for count in range(fewest, most + 1, step):
        if settles(count) and settles(2 * count):
            return count
    return None
