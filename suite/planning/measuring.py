"""Sessions of launches for calibration: speed passes of the same variants, one after the other, with a pause between."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from suite import clock
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.progress import Progress
from suite.engine.timing import SpeedPass, SpeedSink
from suite.errors import QuantdriftError
from suite.planning.floors import Session
from suite.records import Launch, Matrix, SpeedSample, Variant

TWIN = "@twin"
"""Suffix of the second copy of a lone variant, which stands in for the old side of a duet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How much is to be measured."""

    sessions: int
    launches: int
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured. A session that was not finished is not in it."""

    sessions: tuple[Session, ...] = ()
    launch_s: float | None = None
    """Seconds that one launch of every variant took, over the finished sessions."""
    failures: tuple[str, ...] = ()
    interrupted: bool = False


@dataclass(slots=True)
class _Collected:
    """Where one speed pass delivers."""

    samples: list[SpeedSample] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def sink(self) -> SpeedSink:
        return SpeedSink(
            sample=self.samples.append, launch=self.launches.append, failure=self._fail, opened=self._ignore
        )

    def session(self) -> Session:
        """Without the variants that failed."""
        return Session(
            samples=tuple(sample for sample in self.samples if sample.variant not in self.failures),
            launches=tuple(launch for launch in self.launches if launch.variant not in self.failures),
        )

    def _fail(self, variant: Variant, fault: QuantdriftError) -> None:
        self.failures[variant.name] = str(fault).partition("\n")[0]

    def _ignore(self, _live: LiveVariant) -> None:
        return


def measure_sessions(
    matrix: Matrix, launcher: Launcher, asked: Asked, progress: Progress, *, wait: Callable[[float], None] = time.sleep
) -> Measured:
    """Measure the sessions that are asked for; each has fresh launches, with numbers of their own.

    A variant that fails is left out from then on. Ctrl-C (KeyboardInterrupt) ends it early; finished sessions are kept.
    """
    variants, failures = line_up(matrix.variants), dict[str, str]()
    sessions: list[Session] = []
    seconds = 0.0
    interrupted = False
    try:
        for number in range(asked.sessions):
            if number:
                wait(asked.pause_s)
            progress(f"session {number + 1} of {asked.sessions}")
            began, collected = clock.monotonic(), _Collected()
            alive = [variant for variant in variants if variant.name not in failures]
            run_pass(
                matrix, launcher, collected.sink(), alive, range(number * asked.launches, (number + 1) * asked.launches)
            )
            failures.update(collected.failures)
            seconds += clock.monotonic() - began
            sessions.append(collected.session())
    except KeyboardInterrupt:
        interrupted = True
    launched = len(sessions) * asked.launches * max(len(variants) / max(len(matrix.variants), 1), 1)
    return Measured(
        sessions=tuple(session for session in sessions if session.launches),
        launch_s=seconds / launched if launched else None,
        failures=tuple(f"{name}: {reason}" for name, reason in failures.items()),
        interrupted=interrupted,
    )


def line_up(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants; a lone one stands beside a twin of itself, so that there is something to measure side by side."""
    if len(variants) != 1:
        return tuple(variants)
    (only,) = variants
    return only, dataclasses.replace(only, name=f"{only.name}{TWIN}", reference=False, old_of=only.name)


def run_pass(matrix: Matrix, launcher: Launcher, sink: SpeedSink, variants: Sequence[Variant], numbers: range) -> None:
    """One speed pass over the launches with these numbers."""
    done = {variant.name: numbers.start for variant in variants}
    SpeedPass(matrix, launcher, sink).run(variants, done, numbers.stop)
