"""What cases can find: exact enumeration of McNemar's one-sided test, with the tolerance that a loss must pass as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from suite.planning.records import CasesNeeded, QualityOutlook
from suite.records import Case
from suite.stats.binomial import net_loss_bounds, smallest_significant_loss

GAIN = 0.02
"""Cases that become right by themselves, as a share: what a harmless change does."""
MOST_CASES = 5000
_NEGLIGIBLE = 1e-12


def count_independent(cases: Iterable[Case]) -> int:
    """Cases made from one template rise and fall together, so that a family counts once."""
    return len({case.family or case.id for case in cases})


def look_out(scope: str, cases: int, tolerance: float, *, alpha: float, crowd: int) -> QualityOutlook:
    """What `cases` independent cases find at level `alpha`, which up to `crowd` tests share when everything changed."""
    test = _Losses(cases, alpha, tolerance)
    return QualityOutlook(
        scope=scope,
        cases=cases,
        tolerance=tolerance,
        called=test.smallest(),
        called_crowded=_Losses(cases, alpha / crowd, tolerance).smallest(),
        loss_80=test.detectable(0.80, 0.0),
        loss_95=test.detectable(0.95, 0.0),
        loss_80_gain=test.detectable(0.80, GAIN),
        loss_95_gain=test.detectable(0.95, GAIN),
        certified=certified(cases),
    )


def certified(cases: int) -> float:
    """The one-sided 95 % bound of the net loss when none of `cases` flipped."""
    return net_loss_bounds(0, 0, cases, confidence=0.9)[1] if cases else 1.0


def cases_needed(tolerance: float, alpha: float) -> CasesNeeded:
    """How many cases a tolerance of the score (in credit) needs; `find` is None beyond `MOST_CASES`."""
    double = min(2 * tolerance, 1.0)
    return CasesNeeded(
        tolerance=tolerance,
        certify=_fewest(lambda cases: certified(cases) <= tolerance) or MOST_CASES,
        find=_fewest(lambda cases: loss_power(cases, double, 0.0, alpha, tolerance) >= 0.95),
    )


def loss_power(cases: int, loss: float, gain: float, alpha: float, tolerance: float) -> float:
    """The chance that a true loss is called: net loss beyond `tolerance`, and McNemar's p at most `alpha`.

    Each case is lost with chance `loss`, else gained with chance `gain`, independently. Summed over the gains, whose
    number is binomial; given it, the losses are binomial among the other cases.
    """
    return _Losses(cases, alpha, tolerance).power(loss, gain)


class _Losses:
    """The test of one number of cases; which losses it calls is worked out once."""

    def __init__(self, cases: int, alpha: float, tolerance: float) -> None:
        self._cases = cases
        self._alpha = alpha
        self._least = math.floor(tolerance * cases + 1e-9) + 1
        self._fewest: dict[int, int] = {}

    def smallest(self) -> int | None:
        """The smallest net loss that is called when nothing is gained; None when not even losing all is."""
        fewest = self._called_from(0)
        return fewest if fewest <= self._cases else None

    def power(self, loss: float, gain: float) -> float:
        from scipy.special import bdtrc  # type: ignore[import-untyped, unused-ignore]  # slow

        total = 0.0
        for gained in range(self._cases + 1 if gain else 1):
            weight = _binomial(self._cases, gained, gain)
            if weight < _NEGLIGIBLE and gained > self._cases * gain:
                break
            left, fewest = self._cases - gained, self._called_from(gained)
            if fewest <= left:
                total += weight * float(bdtrc(fewest - 1, left, min(loss / (1 - gain), 1.0)))
        return total

    def detectable(self, wanted: float, gain: float) -> float | None:
        """The smallest loss rate, in steps of 0.1 points, that is called with chance `wanted`."""
        low, high = 0, math.floor(1000 * (1 - gain))
        if self.power(high / 1000, gain) < wanted:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle / 1000, gain) >= wanted else (middle, high)
        return high / 1000

    def _called_from(self, gained: int) -> int:
        """The fewest losses that are called beside so many gains; more than all cases when none are."""
        if gained not in self._fewest:
            net = smallest_significant_loss(self._cases, gained=gained, alpha=self._alpha)
            self._fewest[gained] = self._cases + 1 if net is None else gained + max(net, self._least)
        return self._fewest[gained]


def _binomial(trials: int, successes: int, chance: float) -> float:
    if chance in (0.0, 1.0):
        return float(successes == trials * chance)
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    return math.exp(ways + successes * math.log(chance) + (trials - successes) * math.log1p(-chance))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The fewest cases that are enough: doubled until they are, then halved in; enough is nearly monotone in them."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
