"""Operating characteristics of the change-point method: how often it cries wolf, what it sees, and where it says it was.

    .venv/bin/python benchmarks/changepoints.py --series 400

Simulated series, seeded; the same number of series gives the same table. ``--nights`` adds what a nightly reader would see:
the same growing series looked at every night.
"""

from __future__ import annotations

import argparse
import statistics
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from suite.stats.changepoints import Shift, fewest_to_see, find_shifts

NEAR = 3
"""A shift that is told this many runs beside its place counts as found."""

Make = Callable[[Any, int], Any]
"""Generator and length → one series, in standard deviations of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What happened to the series, and where."""

    name: str
    make: Make
    places: Callable[[int], tuple[int, ...]] = lambda _: ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was told of many series of one situation."""

    told: float
    """Share of series in which any shift was told."""
    found: float | None
    """Share in which every true shift was told within `NEAR` runs; None where there is none."""
    extra: float
    """Shifts a series that are near no true one."""
    error: float | None
    """Mean distance in runs, of those that were found."""


def steady(generator: Any, n: int) -> Any:
    """Normal noise."""
    return generator.normal(size=n)


def stepped(size: float, share: float = 0.5, back: float | None = None) -> Make:
    """A level that is `size` higher from a share of the series on; with `back`, until that share."""

    def make(generator: Any, n: int) -> Any:
        series = generator.normal(size=n)
        series[round(share * n) : n if back is None else round(back * n)] += size
        return series

    return make


def late(size: float, runs: int) -> Make:
    """A level that is higher since so many runs."""

    def make(generator: Any, n: int) -> Any:
        series = generator.normal(size=n)
        series[n - runs :] += size
        return series

    return make


def wild(generator: Any, n: int) -> Any:
    """One night in twenty is far off, by ten standard deviations."""
    return generator.normal(size=n) + 10 * (generator.random(n) < 0.05)


def heavy(generator: Any, n: int) -> Any:
    """Student's t with two degrees of freedom."""
    return generator.standard_t(2, size=n)


def coarse(generator: Any, n: int) -> Any:
    """A score of few cases: many equal values."""
    return generator.binomial(24, 0.5, size=n) / 24


def sticky(generator: Any, n: int) -> Any:
    """Each night resembles the last one (autocorrelation 0.3): the assumption of the test does not hold."""
    series = generator.normal(size=n)
    for night in range(1, n):
        series[night] = 0.3 * series[night - 1] + (1 - 0.3**2) ** 0.5 * series[night]
    return series


def creeping(generator: Any, n: int) -> Any:
    """A slope of two standard deviations over the whole series."""
    return generator.normal(size=n) + [2 * night / n for night in range(n)]


SITUATIONS = (
    Situation(name="nothing, normal noise", make=steady),
    Situation(name="nothing, heavy tails (t, 2 df)", make=heavy),
    Situation(name="nothing, a wild night in 20", make=wild),
    Situation(name="nothing, a score of 24 cases", make=coarse),
    Situation(name="nothing, nights alike (AR 0.3)", make=sticky),
    Situation(name="1 SD in the middle", make=stepped(1), places=lambda n: (round(n / 2),)),
    Situation(name="2 SD in the middle", make=stepped(2), places=lambda n: (round(n / 2),)),
    Situation(name="3 SD in the middle", make=stepped(3), places=lambda n: (round(n / 2),)),
    Situation(name="3 SD since 5 runs", make=late(3, 5), places=lambda n: (n - 5,)),
    Situation(name="3 SD since 8 runs", make=late(3, 8), places=lambda n: (n - 8,)),
    Situation(
        name="3 SD from 40 % to 65 %", make=stepped(3, 0.4, 0.65), places=lambda n: (round(0.4 * n), round(0.65 * n))
    ),
    Situation(name="a slope of 2 SD", make=creeping),
)


def simulate(situation: Situation, n: int, level: float, count: int) -> Outcome:
    """Find shifts in `count` series of length `n`."""
    import numpy

    generator = numpy.random.default_rng([n, zlib.crc32(situation.name.encode())])
    places = situation.places(n)
    told = found = extra = 0
    errors: list[int] = []
    for number in range(count):
        shifts = find_shifts(situation.make(generator, n).tolist(), level=level, seed=number)
        told += bool(shifts)
        near = [distance for place in places if (distance := _distance(place, shifts)) is not None]
        found += bool(places) and len(near) == len(places)
        extra += sum(all(abs(shift.index - place) > NEAR for place in places) for shift in shifts)
        errors += near
    return Outcome(
        told=told / count,
        found=found / count if places else None,
        extra=extra / count,
        error=statistics.fmean(errors) if errors else None,
    )


def simulate_nights(first: int, last: int, level: float, count: int) -> float:
    """Share of steady series of which any reading tells a shift, when each is read every night from `first` to `last` runs."""
    import numpy

    generator = numpy.random.default_rng([first, last])
    alarmed = 0
    for number in range(count):
        series = generator.normal(size=last).tolist()
        alarmed += any(find_shifts(series[:n], level=level, seed=number) for n in range(first, last + 1))
    return alarmed / count


def table(lengths: list[int], level: float, count: int) -> Iterator[str]:
    """The table, line by line."""
    yield f"level {level:g}: {fewest_to_see(level)} runs are needed to see anything; {count} series in each row"
    yield f"{'situation':<32}{'runs':>5}{'told':>8}{'found':>8}{'extra':>8}{'error':>8}"
    for situation in SITUATIONS:
        for n in lengths:
            outcome = simulate(situation, n, level, count)
            cells = [
                _percent(outcome.told),
                _percent(outcome.found),
                f"{outcome.extra:.3f}",
                "" if outcome.error is None else f"{outcome.error:.2f}",
            ]
            yield f"{situation.name:<32}{n:>5}" + "".join(f"{cell:>8}" for cell in cells)


def main() -> None:
    """Print the tables."""
    options = _parse()
    for level in options.level:
        for line in table(options.runs, level, options.series):
            print(line, flush=True)
        if options.nights:
            share = simulate_nights(fewest_to_see(level), options.nights, level, options.series)
            print(f"read every night up to {options.nights} runs, a steady series is told to have shifted: {share:.1%}")
        print()


def _distance(place: int, shifts: tuple[Shift, ...]) -> int | None:
    """Of the nearest shift, when it is near."""
    distances = [abs(shift.index - place) for shift in shifts]
    return min(distances) if distances and min(distances) <= NEAR else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=400, help="simulated series for each row")
    parser.add_argument("--runs", type=int, nargs="+", default=[20, 30, 60, 120], help="lengths of the series")
    parser.add_argument(
        "--level", type=float, nargs="+", default=[0.01, 0.0002], help="of one series; of one among fifty"
    )
    parser.add_argument(
        "--nights", type=int, default=0, help="also read a growing series every night, up to so many runs"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
