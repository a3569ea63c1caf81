"""Recording of corpora: real launches of the kernel beside itself, in one regime, on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from suite import clock
from suite.engine.environment import capture_environment
from suite.engine.yardstick import YardstickKernel, summarize
from suite.records import Yardstick
from suite.selftest.arms import LiveArm, usable
from suite.selftest.corpus import ABOUT, SCHEMA, Corpus, DuetLaunch, Regime, Session, SoloLaunch, round_time
from suite.selftest.neighbour import neighbours
from suite.worker.affinity import on_cpus

TOKENS = 12
"""About 0.05 s of the kernel of 64 MiB."""
COARSE = 40
"""How much longer a slice of the coarse regime is."""
SESSION_LAUNCHES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much one launch is."""

    tokens: int = TOKENS
    pairs: int = 24
    """Pairs of slices in a launch of two arms."""
    solo: int = 16
    """Slices in a launch of one arm."""
    pause_s: float = 8.0
    """Between two sessions."""


def shape_of(regime: Regime, shape: Shape) -> Shape:
    """The shape, with longer and fewer slices where the regime is about that."""
    if regime != "coarse":
        return shape
    return replace(shape, tokens=COARSE * shape.tokens, pairs=max(2, shape.pairs // 12))


def start_corpus(regime: Regime, shape: Shape, command: str) -> Corpus:
    """An empty corpus of this machine and hour."""
    return Corpus(
        schema=SCHEMA,
        regime=regime,
        about=ABOUT[regime],
        machine=capture_environment().machine,
        recorded=clock.now().isoformat(),
        command=command,
        tokens=shape.tokens,
    )


def extend_corpus(corpus: Corpus, shape: Shape, count: int) -> Iterator[Corpus]:
    """The corpus with one more launch (or session) each time, until it has `count`."""
    start = clock.monotonic() - (corpus.sessions[-1].at_s if corpus.sessions else 0.0)
    with _surroundings(corpus.regime):
        for index in range(len(corpus.launches) + len(corpus.sessions), count):
            if corpus.regime == "sessions":
                time.sleep(shape.pause_s if index else 0.0)
                session = record_session(shape, clock.monotonic() - start)
                corpus = replace(corpus, sessions=(*corpus.sessions, session))
            else:
                launch = record_duet(shape, index, places=places_of(corpus.regime, index))
                corpus = replace(corpus, launches=(*corpus.launches, launch))
            yield corpus


@contextmanager
def _surroundings(regime: Regime) -> Iterator[None]:
    with neighbours(2, bursty=True, seed=1) if regime == "contended" else nullcontext():
        yield


Place = tuple[int, ...]
"""CPUs; none leaves it to the system."""


def places_of(regime: Regime, index: int) -> tuple[Place, Place]:
    """The CPUs of both arms: the same one; or for ``unpinned`` in turn two different ones, and any."""
    cpus = usable()
    if regime == "unpinned":
        apart = index % 2 == 1 and len(cpus) > 1
        return ((cpus[index // 2 % 2],), (cpus[1 - index // 2 % 2],)) if apart else ((), ())
    return tuple(cpus[:1]), tuple(cpus[:1])


def record_duet(shape: Shape, index: int, *, places: tuple[Place, Place]) -> DuetLaunch:
    """One pair of fresh arms, slices in ABBA order; in every other launch the other one is started first, and begins.

    Who starts first gets other pages of memory, and on some machines that alone is worth several per cent.
    """
    a = LiveArm("a", shape.tokens, places[0], {})
    b = LiveArm("b", shape.tokens, places[1], {})
    order = [a, b] if index % 2 == 0 else [b, a]
    with order[0], order[1]:
        for _ in range(shape.pairs):
            for arm in order:
                arm.take_slice()
            order.reverse()
        return DuetLaunch(a=a.read(), b=b.read())


def record_session(shape: Shape, at_s: float) -> Session:
    """Some launches of one arm in a row, a yardstick's reading before each slice on the same CPU."""
    place = places_of("sessions", 0)[0]
    yardstick = YardstickKernel()
    return Session(
        at_s=round(at_s, 1), launches=tuple(_record_solo(shape, place, yardstick) for _ in range(SESSION_LAUNCHES))
    )


def _record_solo(shape: Shape, place: Place, yardstick: YardstickKernel) -> SoloLaunch:
    readings: list[Yardstick] = []
    with LiveArm("solo", shape.tokens, place, {}) as arm, on_cpus(place):
        for _ in range(shape.solo):
            readings.append(yardstick.read())
            arm.take_slice()
        middle = summarize(readings)
        return SoloLaunch(
            arm=arm.read(),
            hash_mb_s=round_time(middle.hash_bytes_s / 1e6 if middle else 0.0),
            copy_mb_s=round_time(middle.copy_bytes_s / 1e6 if middle else 0.0),
        )
