"""The incomplete beta function and its inverse, and Student's t through them: what intervals of shares and of means need.

SciPy has all of this, and the tests hold these to it. Importing it takes longer than all the rest of what a reviewer waits for
in ``quantdrift diff``, so that the few functions are here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

TINY = 1e-300
"""Stands for 0 where the continued fraction would divide by it."""
PRECISION = 1e-15
SMALL_STEP = 1e-9
"""Relative step of Newton's method after which the error, its square, is beyond double precision."""
NORMAL_FROM = 1e10
"""Degrees of freedom from which Student's t is the normal distribution in double precision."""


def beta_share(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.

    By the continued fraction of DLMF 8.17.22 (https://dlmf.nist.gov/8.17#v), on the side where it converges fast; the other
    side is 1 - I_{1-x}(b, a). Raises ValueError outside of its domain.
    """
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"I_x(a, b) needs a, b > 0 and x from 0 to 1: a = {a}, b = {b}, x = {x}")
    if x in (0.0, 1.0):
        return float(x)
    if x > (a + 1) / (a + b + 2):
        return 1 - _share(b, a, 1 - x, math.log1p(-x), math.log(x))
    return _share(a, b, x, math.log(x), math.log1p(-x))


@lru_cache(maxsize=65536)
def beta_quantile(a: float, b: float, probability: float) -> float:
    """The x for which I_x(a, b) is `probability`. Raises ValueError outside of 0 to 1."""
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability lies between 0 and 1: {probability}")
    if probability in (0, 1):
        return float(probability)
    if probability > 0.5:
        return 1 - beta_quantile(b, a, 1 - probability)  # near 1 a small rest would be lost
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def density(x: float) -> float:
        return math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta)

    return _solve(lambda x: beta_share(a, b, x) - probability, density, a / (a + b), (0.0, 1.0))


def t_share(df: float, t: float) -> float:
    """P(T <= t) of Student's t with `df` degrees of freedom, which need not be whole and may be infinite.

    Half of I_x(df / 2, 1 / 2) at x = df / (df + t^2) is either tail. Raises ValueError for df <= 0.
    """
    if not df > 0:
        raise ValueError(f"degrees of freedom must be more than 0: {df}")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    if df >= NORMAL_FROM:
        return math.erfc(-t / math.sqrt(2)) / 2
    square = t * t
    # 1 - x is kept apart: near t = 0 it would be lost in x
    tail = _split(df / 2, 0.5, df / (df + square), square / (df + square)) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=65536)
def t_quantile(probability: float, df: float) -> float:
    """The t that is not passed with `probability` by Student's t with `df` degrees of freedom (need not be whole).

    Begins at the expansion about the normal quantile (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.7.5).
    Raises ValueError for a probability that is not between 0 and 1.
    """
    if not 0 < probability < 1:
        raise ValueError(f"a quantile needs a probability between 0 and 1: {probability}")
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    normal = NormalDist().inv_cdf(probability)
    if df >= NORMAL_FROM:
        return normal
    tail, high = 1 - probability, 1.0
    while t_share(df, -high) > tail:
        high *= 4
    cube, fifth = normal**3, normal**5
    start = normal + (cube + normal) / (4 * df) + (5 * fifth + 16 * cube + 3 * normal) / (96 * df * df)
    return _solve(lambda t: tail - t_share(df, -t), lambda t: _density(df, t), start, (0.0, high))


def _solve(
    value: Callable[[float], float], slope: Callable[[float], float], start: float, within: tuple[float, float]
) -> float:
    """Where a rising function is 0: Newton's method, and halving where a step would leave what is known to hold it."""
    low, high = within
    x = start if low < start < high else (low + high) / 2
    while True:
        surplus = value(x)
        low, high = (low, x) if surplus > 0 else (x, high)
        rise = slope(x)
        step = x - surplus / rise if rise > 0 else low
        nearer = step if low < step < high else (low + high) / 2
        if abs(nearer - x) <= SMALL_STEP * abs(x) or nearer in (low, high):
            return nearer
        x = nearer


def _density(df: float, t: float) -> float:
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(log - (df + 1) / 2 * math.log1p(t * t / df))


def _split(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b) where 1 - x is known better than by subtraction."""
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _share(b, a, rest, math.log(rest), math.log(x))
    return _share(a, b, x, math.log(x), math.log(rest))


def _share(a: float, b: float, x: float, log_x: float, log_rest: float) -> float:
    """x^a (1 - x)^b / (a B(a, b)) times the continued fraction, evaluated as Lentz did (Applied Optics 15, 1976)."""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * log_x + b * log_rest - log_beta) / a
    upper, lower = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    fraction = lower
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1 / _nonzero(1 + numerator * lower)
            upper = _nonzero(1 + numerator / upper)
            fraction *= lower * upper
        if abs(lower * upper - 1) < PRECISION:
            break
    return front * fraction


def _nonzero(value: float) -> float:
    return value if abs(value) > TINY else TINY
