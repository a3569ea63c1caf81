"""What launches can find: the t tests of `suite.gate`, asked beforehand with the noise of the machine.

A duet tests the mean log ratio of its launches; a stored baseline the difference of two sessions of launches, of which
the sessions' own spread stays however many launches there are. Source: non-central t, as in `suite.stats.power`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from suite.gate.decide import PASS_ALPHA
from suite.gate.sessions import doubt, session_spread
from suite.metrics.catalog import SPECS
from suite.records import Direction, NoiseFloor, Tier
from suite.stats.beta import t_quantile
from suite.stats.intervals import PAIRED_SD_FLOOR, SESSION_SD, STORED_SD_FLOOR, Estimate, spend, spend_late
from suite.stats.power import power

ASSUMED_PAIR_SD = 0.01
"""Of a duet on a machine that was never calibrated: contended, pinned launches of one kernel varied by 0.8 to 0.95 %."""
MOST = 50
"""No more launches than this are proposed."""
FOUND, SURELY_FOUND = 0.80, 0.95
"""The usual power, and the one that we promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How much one metric varies in one tier."""

    tier: Tier
    launch_sd: float
    session_sd: float = 0.0
    session_df: float = math.inf
    measured: bool = False
    assumed: bool = False
    """Whether the spread between sessions was never measured, so that a verdict doubts what it accuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """One t test that is planned: so many launches, against so many that are stored, at this look and level."""

    spread: Spread
    launches: int
    stored: int
    look: int
    alpha: float
    """Of REGRESSED at the first look, before it is spent among looks."""

    @property
    def error(self) -> float:
        """Standard error of the estimate, on logs."""
        if self.spread.tier is Tier.DUET:
            return self.spread.launch_sd / math.sqrt(self.launches)
        within, between = self._variances
        return math.sqrt(within + between)

    @property
    def freedom(self) -> float:
        """Its degrees of freedom: launches less one; for two sessions by Satterthwaite's rule."""
        if self.spread.tier is Tier.DUET:
            return self.launches - 1
        within, between = self._variances
        sessions = between**2 / self.spread.session_df if self.spread.session_df < math.inf else 0.0
        return (within + between) ** 2 / (within**2 / (self.launches + self.stored - 2) + sessions)

    @property
    def _variances(self) -> tuple[float, float]:
        within = self.spread.launch_sd**2 * (1 / self.launches + 1 / self.stored)
        return within, 2 * self.spread.session_sd**2

    def finds(self, effect: float, margin: float) -> float:
        """The chance that a drift of `effect` is called REGRESSED; both in logs."""
        level = spend_late(self.alpha, self.look)
        return self._rejects(effect - margin - self._doubt(level), level)

    def _doubt(self, level: float) -> float:
        """By how much more a drift must be beyond the tolerance where sessions were never measured."""
        if not self.spread.assumed:
            return 0.0
        doubted = doubt(Estimate(0.0, self.error, self.freedom))
        return t_quantile(1 - level, self.freedom) * (doubted.se - self.error)

    def passes(self, margin: float) -> float:
        """The chance that an unchanged variant is called PASS."""
        return self._rejects(margin, spend(PASS_ALPHA, self.look))

    def detectable(self, margin: float, wanted: float) -> float | None:
        """The smallest drift (log) that is found with chance `wanted`; None beyond a factor of e^5."""
        low, high = margin, margin + self.error
        while self.finds(high, margin) < wanted:
            low, high = high, margin + 2 * (high - margin)
            if high > 5:
                return None
        while high - low > 1e-5:
            middle = (low + high) / 2
            low, high = (low, middle) if self.finds(middle, margin) >= wanted else (middle, high)
        return high

    def _rejects(self, distance: float, alpha: float) -> float:
        if self.launches < 2:
            return 0.0
        sd = self.error * math.sqrt(self.launches)
        return power(distance, 0.0, sd, self.launches, alpha, df=self.freedom)


def spread_of(floor: NoiseFloor | None, tier: Tier) -> Spread:
    """The spread that a verdict would reckon with, floors included; assumed where nothing was measured.

    Where two variants were never measured side by side, a duet is taken to vary as two independent launches do.
    """
    if tier is Tier.DUET:
        if floor is None:
            return Spread(tier=tier, launch_sd=ASSUMED_PAIR_SD)
        pair = floor.launch_sd * math.sqrt(2) if floor.pair_sd is None else floor.pair_sd
        return Spread(tier=tier, launch_sd=max(pair, PAIRED_SD_FLOOR), measured=True)
    if floor is None:
        return Spread(tier=tier, launch_sd=STORED_SD_FLOOR, session_sd=SESSION_SD, assumed=True)
    launch_sd = max(floor.launch_sd, PAIRED_SD_FLOOR)
    session_sd, session_df = session_spread(floor, normalised=floor.normaliser != "none")
    return Spread(
        tier=tier,
        launch_sd=launch_sd,
        session_sd=session_sd,
        session_df=session_df,
        measured=True,
        assumed=floor.session_df < 1,
    )


def to_log(metric: str, share: float) -> float:
    """From a share of the old value that was lost to a log ratio, positive is worse; infinite when all is lost."""
    if SPECS[metric].direction is Direction.LOWER:
        return math.log1p(share)
    return -math.log1p(-share) if share < 1 else math.inf


def to_share(metric: str, log: float) -> float:
    """The reverse of `to_log`."""
    return math.expm1(log) if SPECS[metric].direction is Direction.LOWER else -math.expm1(-log)


def launches_needed(spread: Spread, metric: str, tolerance: float, alpha: float) -> int | None:
    """The fewest launches with which an unchanged variant passes and twice the tolerance is found, each with 95 % power.

    The stored side has as many. None when `MOST` are not enough.
    """
    margin, effect = to_log(metric, tolerance), to_log(metric, 2 * tolerance)
    for launches in range(2, MOST + 1):
        test = PlannedTest(spread=spread, launches=launches, stored=launches, look=1, alpha=alpha)
        if test.passes(margin) >= SURELY_FOUND and test.finds(effect, margin) >= SURELY_FOUND:
            return launches
    return None


def smallest_tolerance(
    test: PlannedTest, metric: str, *, grid: tuple[float, ...], excess: float | None = None
) -> float | None:
    """The smallest tolerance of `grid` at which an unchanged variant passes with 95 % power.

    With `excess`, also one at which a drift of (1 + `excess`) times the tolerance is found so. None when none is.
    """
    for tolerance in grid:
        margin = to_log(metric, tolerance)
        if not math.isfinite(margin) or test.passes(margin) < SURELY_FOUND:
            continue
        if excess is None or test.finds(to_log(metric, tolerance * (1 + excess)), margin) >= SURELY_FOUND:
            return tolerance
    return None
