"""The rules of others on the same launches: a stored run against a later one, fixed thresholds, tests on slices.

A comparison takes one arm of five launches in a row as what was stored, and of five later or earlier ones as the new run:
the same work on the same machine, as it is compared where nothing is measured side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suite.selftest.corpus import Corpus

LAUNCHES = 5


def _fixed_on_mean(then: Any, now: Any) -> Any:
    return now["mean"].mean(axis=1) > 1.10 * then["mean"].mean(axis=1)


def _fixed_on_median(then: Any, now: Any) -> Any:
    import numpy

    return numpy.median(now["median"], axis=1) > 1.05 * numpy.median(then["median"], axis=1)


def _rank_test_on_slices(then: Any, now: Any) -> Any:
    from scipy.stats import mannwhitneyu

    tested = mannwhitneyu(now["median"], then["median"], axis=1, alternative="greater", method="asymptotic")
    return tested.pvalue < 0.05


NAIVE: Mapping[str, Callable[[Any, Any], Any]] = {
    "fixed 10 % on the mean": _fixed_on_mean,
    "fixed 5 % on the median": _fixed_on_median,
    "Mann-Whitney on slices, p < .05": _rank_test_on_slices,
}
"""Rule → which of many comparisons it fails. Each side: arrays (comparisons, slices) by ``mean`` and ``median``."""


def naive_alarms(stored: Corpus, later: Corpus, comparisons: int, random: Any) -> dict[str, int]:
    """How many of `comparisons` of unchanged work each rule fails. The two corpora may be the same one."""
    import numpy

    random_starts = numpy.stack(
        [random.integers(0, len(corpus.launches) - LAUNCHES + 1, size=4 * comparisons) for corpus in (stored, later)]
    )
    apart = numpy.abs(random_starts[0] - random_starts[1]) >= LAUNCHES
    starts = random_starts[:, apart] if stored is later else random_starts
    then, now = (_blocks(corpus, starts[side, :comparisons]) for side, corpus in enumerate((stored, later)))
    return {name: int(rule(then, now).sum()) for name, rule in NAIVE.items()}


def _blocks(corpus: Corpus, starts: Any) -> dict[str, Any]:
    """Arrays (comparisons, slices) by ``mean`` and ``median``: all slices of the launches from each start on."""
    import numpy

    window = numpy.asarray(starts)[:, None] + numpy.arange(LAUNCHES)
    sides = {
        name: numpy.array([getattr(launch.a, f"{name}_ms") for launch in corpus.launches])
        for name in ("mean", "median")
    }
    return {name: values[window].reshape(len(starts), -1) for name, values in sides.items()}
