"""From a corpus to numbers that can be drawn at random: one log ratio a launch, by the formulas of `suite.metrics.speed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suite.records import Protocol
from suite.selftest.corpus import Arm, Corpus, DuetLaunch

MAX_PRESSURE = Protocol().max_pressure
MIN_LAUNCHES = 10
"""A corpus with fewer launches says nothing about how launches vary."""


def launch_logs(corpus: Corpus, metric: str = "itl_s", *, clean: bool = True) -> Any:
    """Array with one log ratio b / a for each launch of a duet corpus, positive is slower.

    ``itl_s``: the median over adjacent slices of the log ratio of their median gaps; ``decode_tok_s``: the log ratio of all
    gaps together. Equal to `suite.metrics.speed.pair_logs` of the same slices. With `clean` only pairs count of which no
    witness saw a neighbour, as in a run; a launch without any is left out.
    """
    import numpy

    pairs = [
        (launch, clean_pairs(launch) if clean else list(range(len(launch.a.mean_ms)))) for launch in corpus.launches
    ]
    return numpy.array([log_ratio(launch, metric, kept) for launch, kept in pairs if kept])


def log_ratio(launch: DuetLaunch, metric: str, pairs: Sequence[int]) -> float:
    """One launch's log ratio b / a over some of its pairs."""
    import numpy

    kept = numpy.array(pairs)
    if metric == "decode_tok_s":
        return float(numpy.log(numpy.mean(_at(launch.b.mean_ms, kept)) / numpy.mean(_at(launch.a.mean_ms, kept))))
    return float(numpy.median(numpy.log(_at(launch.b.median_ms, kept) / _at(launch.a.median_ms, kept))))


def clean_pairs(launch: DuetLaunch) -> list[int]:
    """Numbers of the pairs of which neither slice met a neighbour."""
    pressures = zip(launch.a.pressure, launch.b.pressure, strict=True)
    return [at for at, (a, b) in enumerate(pressures) if is_clean(a) and is_clean(b)]


def is_clean(pressure: float | None) -> bool:
    """By the limit of the default protocol; nothing is known where the system does not tell."""
    return pressure is None or pressure <= MAX_PRESSURE


def clean_slices(arm: Arm) -> list[float]:
    """Median gaps of the slices whose witness saw nothing."""
    return [value for value, pressure in zip(arm.median_ms, arm.pressure, strict=True) if is_clean(pressure)]


def draw_matrix(logs: Any, checks: int, launches: int, random: Any) -> Any:
    """Array (checks, launches) of launches drawn with replacement.

    Both arms of a corpus do the same work, so each launch is turned around with chance 1/2: the truth is exactly 0.
    """
    drawn = random.choice(logs, size=(checks, launches))
    return drawn * random.choice((-1.0, 1.0), size=(checks, launches))


def draw_blocks(logs: Any, checks: int, launches: int, random: Any) -> Any:
    """Array (checks, launches) of launches that followed one another, with the sign that they had.

    What drawing at random takes away stays in it: which arm was started first, and what lasts from one launch to the next.
    """
    import numpy

    most = max(len(logs) - launches, 0)
    starts = random.integers(0, most + 1, size=checks)
    return numpy.stack([numpy.resize(logs[start : start + launches], launches) for start in starts])


def _at(values: Sequence[float], kept: Any) -> Any:
    import numpy

    return numpy.asarray(values)[kept]
