"""Corpora made of random numbers: what a recording on an even machine would look like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

from suite.selftest.corpus import SCHEMA, Arm, Corpus, DuetLaunch, Regime, Session, SoloLaunch, write_corpus

SPREADS: dict[Regime, float] = {"quiet": 0.005, "contended": 0.008, "unpinned": 0.025, "coarse": 0.02}


def make_arm(level_ms: float, luck: Random, *, slices: int = 6, pressure: float | None = 0.0) -> Arm:
    times = [round(level_ms * math.exp(luck.gauss(0, 0.01)), 4) for _ in range(slices)]
    return Arm(
        median_ms=tuple(times), mean_ms=tuple(1.02 * t for t in times), pressure=(pressure,) * slices,
        cold_ms=1.2 * level_ms,
    )  # fmt: skip


def make_duets(regime: Regime, *, launches: int = 40, spread: float | None = None, seed: int = 1) -> Corpus:
    """Launches whose arms differ by `spread` (standard deviation of the log ratio), and the machine by ten times that."""
    luck = Random(f"{regime}/{seed}")
    sd = SPREADS[regime] if spread is None else spread
    made = []
    for _ in range(launches):
        level = 3.0 * math.exp(luck.gauss(0, 0.04))
        other = level * math.exp(luck.gauss(0, sd))
        made.append(DuetLaunch(a=make_arm(level, luck), b=make_arm(other, luck)))
    return _corpus(regime, launches=made)


def make_sessions(*, sessions: int = 24, spread: float = 0.01, follows: float = 0.0, seed: int = 1) -> Corpus:
    """Sessions that differ by `spread`; the copy yardstick takes part in `follows` of it."""
    luck = Random(seed)
    made = []
    for number in range(sessions):
        drift = luck.gauss(0, spread)
        solo = [
            SoloLaunch(
                arm=make_arm(3.0 * math.exp(drift + luck.gauss(0, 0.005)), luck, slices=3),
                hash_mb_s=2000.0 * math.exp(luck.gauss(0, 0.02)),
                copy_mb_s=9000.0 * math.exp(-follows * drift + luck.gauss(0, 0.001)),
            )
            for _ in range(5)
        ]
        made.append(Session(at_s=60.0 * number, launches=tuple(solo)))
    return _corpus("sessions", sessions=made)


def write_all(directory: Path) -> Path:
    """A corpus of every regime."""
    for regime in SPREADS:
        write_corpus(make_duets(regime), directory)
    write_corpus(make_sessions(), directory)
    return directory


def _corpus(regime: Regime, *, launches: Sequence[DuetLaunch] = (), sessions: Sequence[Session] = ()) -> Corpus:
    return Corpus(
        schema=SCHEMA, regime=regime, about="made of random numbers", machine="none",
        recorded="2026-01-01T00:00:00+00:00", command="made", tokens=64, launches=tuple(launches),
        sessions=tuple(sessions),
    )  # fmt: skip
