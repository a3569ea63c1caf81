"""Traps: unchanged work under conditions that make naive comparisons fail. None may end in REGRESSED.

The traps of duets take all slices, clean or not: harder than what a run would judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suite.gate.family import decide_all
from suite.records import Verdict
from suite.selftest.corpus import Arm, Corpus, Regime
from suite.selftest.replay import FIRST, MOST, Rule, judge_matrix
from suite.selftest.resampling import clean_slices, launch_logs
from suite.selftest.stored import STORED, Values, calibrate, compare_sessions, read_sessions

Corpora = Mapping[Regime, Corpus]


def spring_duets(draw: Callable[[Any], Any], runs: int, random: Any, rule: Rule = decide_all) -> int:
    """How many of `runs` with the launches that `draw` gives end in REGRESSED. Each run is a single check: nobody shares
    its 5 %.
    """
    import numpy

    alarms = 0
    for _ in range(runs):
        verdicts, _ = judge_matrix(numpy.array([draw(random)]), rule)
        alarms += Verdict.REGRESSED in verdicts
    return alarms


def draw_aabb(corpora: Corpora) -> Callable[[Any], Any]:
    """All slices of one arm, then all of the other: both halves of recorded launches, of a busy machine too."""
    import numpy

    launches = [launch for regime in ("quiet", "contended") for launch in corpora[regime].launches]
    logs = numpy.array([_half_against_half(launch.a, launch.b) for launch in launches])
    return lambda random: random.choice(logs, size=MOST)


def draw_other_cores(corpora: Corpora) -> Callable[[Any], Any]:
    """The arms on different CPUs or anywhere, each launch as it was recorded."""
    logs = launch_logs(corpora["unpinned"], clean=False)
    return lambda random: random.choice(logs, size=MOST)


def draw_busy_half(corpora: Corpora) -> Callable[[Any], Any]:
    """A bursty neighbour in the second half of every launch."""
    import numpy

    quiet, busy = (_slice_logs(corpora[regime]) for regime in ("quiet", "contended"))

    def draw(random: Any) -> Any:
        halves = [
            numpy.concatenate([first[: len(first) // 2], second[len(second) // 2 :]])
            for first, second in zip(
                quiet[random.integers(0, len(quiet), MOST)], busy[random.integers(0, len(busy), MOST)], strict=True
            )
        ]
        return numpy.array([float(numpy.median(half)) for half in halves])

    return draw


def draw_cold_first(corpora: Corpora) -> Callable[[Any], Any]:
    """The first launch of the new side was not warmed up: its very first slice against the other side's later ones."""
    import numpy

    launches = corpora["quiet"].launches
    logs = launch_logs(corpora["quiet"], clean=False)
    cold = numpy.array([math.log(launch.b.cold_ms / float(numpy.median(launch.a.mean_ms))) for launch in launches])

    def draw(random: Any) -> Any:
        drawn = random.choice(logs, size=MOST)
        drawn[0] = random.choice(cold)
        return drawn

    return draw


DUET_TRAPS: Mapping[str, tuple[tuple[Regime, ...], Callable[[Corpora], Callable[[Any], Any]]]] = {
    "AABB order": (("quiet", "contended"), draw_aabb),
    "arms on different cores": (("unpinned",), draw_other_cores),
    "bursty neighbour in one half": (("quiet", "contended"), draw_busy_half),
    "cold first launch": (("quiet",), draw_cold_first),
}
"""Trap → the corpora that it needs, and how its launches are drawn."""


def spring_stored(corpora: Corpora, runs: int, random: Any, rule: Rule = decide_all) -> int:
    """A baseline of a quiet session against a run on a busy machine: how many of `runs` end in REGRESSED.

    Slices whose witness saw a neighbour do not count, as in a run; a run without clean launches is contended.
    """
    sessions = read_sessions(corpora["sessions"])
    floor = calibrate(corpora["sessions"].sessions)
    busy = [clean_slices(launch.a) for launch in corpora["contended"].launches]
    alarms = 0
    for _ in range(runs):
        then = sessions[random.integers(0, len(sessions))]
        start = random.integers(0, len(busy) - FIRST + 1)
        now, unclean = _as_session(busy[start : start + FIRST], then)
        comparison = compare_sessions(then, now, floor, unclean=unclean)
        alarms += rule([(comparison, STORED)])[0].verdict is Verdict.REGRESSED
    return alarms


def _as_session(launches: Sequence[Sequence[float]], then: Values) -> tuple[Values, str]:
    """The busy launches as a session; the yardstick is said to be unmoved, which helps nobody."""
    import numpy

    gaps = tuple(math.log(float(numpy.median(slices)) / 1e3) for slices in launches if slices)
    if not gaps:
        return then, "no slice was clean"
    return Values(itl=gaps, hash=then.hash[: len(gaps)], copy=then.copy[: len(gaps)]), ""


def _half_against_half(a: Arm, b: Arm) -> float:
    import numpy

    half = len(a.median_ms) // 2
    return float(numpy.log(numpy.median(b.median_ms[half:]) / numpy.median(a.median_ms[:half])))


def _slice_logs(corpus: Corpus) -> Any:
    """Array (launches, pairs) of log ratios b / a."""
    import numpy

    return numpy.array([numpy.log(numpy.divide(launch.b.median_ms, launch.a.median_ms)) for launch in corpus.launches])
