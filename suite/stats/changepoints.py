"""Where the level of a short, noisy series shifted: circular binary segmentation on normal scores, tested by permutation.

The method is that of A. B. Olshen, E. S. Venkatraman, R. Lucito and M. Wigler, Biostatistics 5 (2004): the series is bent
into a ring, the arc is sought whose mean differs most from the rest, and what was found is searched again while a permutation
test says that it is no luck. An arc that touches an end is one shift, any other is two: so a level that came back is found too,
which plain binary segmentation would miss. Three changes, each for nightly runs:

- Values are replaced by van der Waerden's normal scores (B. L. van der Waerden, Indagationes Mathematicae 14 (1952)), so
  that one wild night weighs little, while normal noise costs no power (H. Chernoff and I. R. Savage, Annals of Mathematical
  Statistics 29 (1958)).
- No stretch is shorter than `FEWEST_RUNS`: a night is not a level.
- Permutations stop as soon as it is clear that there is nothing (J. Besag and P. Clifford, Biometrika 78 (1991)), which gives a
  valid p too. Otherwise the observed order is counted among them (B. Phipson and G. K. Smyth, Statistical Applications in
  Genetics and Molecular Biology 9 (2010)).

The test takes runs as exchangeable when nothing shifted. A slow trend is no such thing, and is told as one or more shifts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any

FEWEST_RUNS = 4
"""The shortest stretch that is called a level."""
LEVEL = 0.01
_ENOUGH = 10
"""So many permutations that look as sharp end the test."""
_ORDERS_PER_LEVEL = 5
"""Permutations, in units of 1 / level: the smallest p must lie well below the level."""
_FIRST_BATCH = 50
_MOST_CELLS = 400_000
"""Numbers in one batch of permutations: what stays in a processor's cache is fast."""
_EPSILON = 1e-9

_Statistic = Callable[[Any], Any]
"""Orders of scores (m × n) → for each how sharp its sharpest difference is (m); any increasing function of it will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A new level."""

    index: int
    """Of the first value of the new level."""
    before: float
    """Median of the values since the shift before it, in the series' own unit."""
    after: float
    """Median of the values up to the shift after it."""
    p_value: float
    """Of the permutation test: how often values in random order show one as sharp, wherever it is sought."""


def find_shifts(values: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> tuple[Shift, ...]:
    """The shifts of level in `values` (oldest first), in order; none in a series that is too short to show any.

    `level` is the chance that a series without a shift shows one; whoever looks at many series divides it among them. The same
    values, level and seed give the same shifts. Raises ValueError for values that are not finite and for a level outside 0..1.
    """
    import numpy

    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a value that is not finite belongs to no level")
    generator = numpy.random.default_rng(seed)
    bounds: dict[int, float] = {}
    _split(values, (0, len(values)), level, generator, bounds)
    sharp = _keep_sharp(values, bounds, level, generator)
    placed = _place(values, sharp)
    edges = [0, *placed, len(values)]
    return tuple(
        Shift(
            index=here,
            before=float(median(values[was:here])),
            after=float(median(values[here:then])),
            p_value=bounds[placed[here]],
        )
        for was, here, then in zip(edges, edges[1:], edges[2:], strict=False)
    )


def fewest_to_see(level: float) -> int:
    """The shortest series in which even a perfect shift in its middle reaches `level`.

    Of the C(n, n/2) random orders of two halves, two are as sharp for each place where an arc of that length may lie.
    """
    n = 2 * FEWEST_RUNS
    while 2 * _places(n, n // 2) / math.comb(n, n // 2) > level:
        n += 1
    return n


def normal_scores(values: Sequence[float]) -> tuple[float, ...]:
    """Normal quantile of (rank / (n + 1)) of each value; equal values share the mean of their scores. They sum to 0."""
    order = sorted(range(len(values)), key=values.__getitem__)
    quantiles = [NormalDist().inv_cdf((place + 1) / (len(values) + 1)) for place in range(len(values))]
    scores = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            shared = math.fsum(quantiles[start:end]) / (end - start)
            for place in order[start:end]:
                scores[place] = shared
            start = end
    return tuple(scores)


def _split(
    values: Sequence[float], span: tuple[int, int], level: float, generator: Any, bounds: dict[int, float]
) -> None:
    """Add to `bounds` what is found in `values[start:end]`, with its p, and go on within the pieces."""
    start, end = span
    piece = values[start:end]
    if len(piece) < 2 * FEWEST_RUNS or min(piece) == max(piece):
        return
    scores = normal_scores(piece)
    first, last, sharpness = _find_arc(scores)
    p = _p_value(scores, sharpness, _sharpest_arc, level, generator)
    if p > level:
        return
    found = [start + place for place in (first, last) if 0 < place < len(piece)]
    bounds.update(dict.fromkeys(found, p))
    edges = [start, *found, end]
    for inner in itertools.pairwise(edges):
        _split(values, inner, level, generator, bounds)


def _keep_sharp(values: Sequence[float], bounds: dict[int, float], level: float, generator: Any) -> list[int]:
    """The bounds whose two sides differ when taken by themselves: an arc may end a little before the end of the series.

    A bound is held against the sharpest split that random orders of its two sides have anywhere, since it was sought too. The
    weakest is dropped first, which joins the stretches beside it, and the others are tried anew.
    """
    kept = sorted(bounds)
    while kept:
        edges = [0, *kept, len(values)]
        p_values = []
        for was, here, then in zip(edges, edges[1:], edges[2:], strict=False):
            scores, place, n = normal_scores(values[was:then]), here - was, then - was
            observed = math.fsum(scores[:place]) ** 2 / (place * (n - place))
            p_values.append(_p_value(scores, observed, _sharpest_split, level, generator))
        weakest = max(range(len(kept)), key=p_values.__getitem__)
        if p_values[weakest] <= level:
            break
        del kept[weakest]
    return kept


def _place(values: Sequence[float], bounds: Sequence[int]) -> dict[int, int]:
    """Each bound moved to where two levels fit best between its neighbours, by place, with the bound that it was.

    Scores tell that there is a shift, values where: least absolute deviations from the medians of both sides. What turns out to
    be shorter than a level is none yet, and is left out.
    """
    placed, left = {bound: bound for bound in bounds}, True
    while left:
        left = False
        for here in list(placed):
            edges = [0, *placed, len(values)]
            place = edges.index(here)
            was, then = edges[place - 1], edges[place + 1]
            moved = min(range(was + 1, then), key=lambda cut: (_misfit(values, was, cut, then), abs(cut - here)))
            if min(moved - was, then - moved) < FEWEST_RUNS:
                del placed[here]
                left = True
                break
            placed = {moved if known == here else known: bound for known, bound in placed.items()}
    return placed


def _misfit(values: Sequence[float], was: int, cut: int, then: int) -> float:
    """Sum of absolute deviations from the medians of ``values[was:cut]`` and ``values[cut:then]``."""
    return math.fsum(
        abs(value - level) for side in (values[was:cut], values[cut:then]) for level in [median(side)] for value in side
    )


# --------------------------------------------------------------------------------------------------- the test


def _p_value(scores: Sequence[float], observed: float, statistic: _Statistic, level: float, generator: Any) -> float:
    """Share of random orders whose statistic is at least the observed one."""
    import numpy

    most = math.ceil(_ORDERS_PER_LEVEL / level)
    drawn = sharp = 0
    while drawn < most:
        batch = min(max(drawn, _FIRST_BATCH), _MOST_CELLS // len(scores), most - drawn)
        orders = generator.permuted(numpy.tile(scores, (batch, 1)), axis=1)
        as_sharp = numpy.flatnonzero(statistic(orders) >= observed * (1 - _EPSILON))
        if sharp + len(as_sharp) >= _ENOUGH:
            return _ENOUGH / (drawn + int(as_sharp[_ENOUGH - sharp - 1]) + 1)
        sharp += len(as_sharp)
        drawn += len(orders)
    return (sharp + 1) / (drawn + 1)


def _sharpest_arc(orders: Any) -> Any:
    """The largest squared sum of an arc over (its length × that of the rest), of each order. Sums are 0 in all."""
    import numpy

    sums, n = _running_sums(orders), orders.shape[1]
    sharpest = numpy.zeros(len(orders))
    for length in _lengths(n):
        arcs = _arc_sums(sums, length).max(axis=1)
        numpy.maximum(sharpest, arcs * arcs / (length * (n - length)), out=sharpest)
    return sharpest


def _find_arc(scores: Sequence[float]) -> tuple[int, int, float]:
    """Start, end and sharpness of the sharpest arc; of equal ones one that ends at the end, so that a shift is one bound."""
    import numpy

    n = len(scores)
    sums = _running_sums(numpy.array([scores]))
    best, found = -1.0, (0, n)
    for length in _lengths(n):
        arcs = _arc_sums(sums, length)[0] ** 2 / (length * (n - length))
        place = len(arcs) - 1 - int(arcs[::-1].argmax())
        if arcs[place] > best * (1 + _EPSILON):
            start = n - length if place == len(arcs) - 1 else FEWEST_RUNS + place
            best, found = float(arcs[place]), (start, start + length)
    return *found, best


def _sharpest_split(orders: Any) -> Any:
    """The same of the best place to cut each order in two."""
    import numpy

    n = orders.shape[1]
    lengths = numpy.array(_lengths(n))
    sums = orders.cumsum(axis=1)[:, lengths - 1]
    return (sums * sums / (lengths * (n - lengths))).max(axis=1)


def _running_sums(orders: Any) -> Any:
    import numpy

    return numpy.pad(orders.cumsum(axis=1), ((0, 0), (1, 0)))


def _lengths(n: int) -> range:
    return range(FEWEST_RUNS, n - FEWEST_RUNS + 1)


def _places(n: int, length: int) -> int:
    """How many arcs of a length there are: at least `FEWEST_RUNS` away from both ends, and one that ends at the end.

    The one that begins at the beginning is the rest of another one.
    """
    return max(n - length - 2 * FEWEST_RUNS + 1, 0) + 1


def _arc_sums(sums: Any, length: int) -> Any:
    """The absolute sums of all arcs of a length (m × places), that at the end last."""
    import numpy

    n = sums.shape[1] - 1
    start, end = FEWEST_RUNS, FEWEST_RUNS + _places(n, length) - 1
    inner = sums[:, start + length : end + length] - sums[:, start:end]
    last = sums[:, n] - sums[:, n - length]
    return numpy.abs(numpy.column_stack([inner, last]))
