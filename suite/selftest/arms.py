"""The arms of a recording: workers that hold the kernel, on chosen CPUs, and their slices."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from suite.metrics.speed import FEWEST_GAPS, FIRST_GAPS
from suite.selftest.corpus import Arm, round_time
from suite.stats.robust import median
from suite.worker.messages import Generate, Generated, Load
from suite.worker.process import Worker

BACKEND = "kernel"
PROMPT = tuple(range(32, 48))
"""A short prompt: recordings are of decoding."""
DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Some tokens in a row: milliseconds a token."""

    median_ms: float
    mean_ms: float
    pressure: float | None


def usable() -> list[int]:
    """Numbers of the CPUs that this process may use; empty where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


class LiveArm:
    """A fresh worker with the kernel in memory. A context manager."""

    def __init__(self, name: str, tokens: int, cpus: Collection[int], options: dict[str, Any]) -> None:
        self._tokens = tokens
        self._worker = Worker(name, cpus=tuple(sorted(cpus)))
        self._options = options
        self._slices: list[Slice] = []
        self._cold_ms = 0.0

    def __enter__(self) -> LiveArm:
        try:
            request = Load(backend=BACKEND, weights=None, options=self._options, prompt_format="raw")
            self._worker.ask(request, DEADLINE_S)
            self._cold_ms = self._decode().mean_ms
        except BaseException:
            self._worker.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def take_slice(self) -> None:
        """Decode one slice and keep it."""
        self._slices.append(self._decode())

    def _decode(self) -> Slice:
        request = Generate(prompt=list(PROMPT), max_new_tokens=self._tokens, stop_at_end=False)
        answer: Generated = self._worker.ask(request, DEADLINE_S)
        times = answer.token_times_s
        gaps = [1e3 * (later - earlier) for earlier, later in itertools.pairwise(times)]
        pressure = answer.witness["pressure"]
        return Slice(
            median_ms=median(trim(gaps)),
            mean_ms=math.fsum(gaps) / len(gaps),
            pressure=None if pressure is None else round(pressure, 3),
        )

    def read(self) -> Arm:
        """All slices so far, as stored."""
        return Arm(
            median_ms=tuple(round_time(s.median_ms) for s in self._slices),
            mean_ms=tuple(round_time(s.mean_ms) for s in self._slices),
            pressure=tuple(s.pressure for s in self._slices),
            cold_ms=round_time(self._cold_ms),
        )


def trim(gaps: Sequence[float]) -> Sequence[float]:
    """Without the first gaps after a switch, where enough remain: as `suite.metrics.speed.median_itl_s` does."""
    return gaps[FIRST_GAPS:] if len(gaps) >= FIRST_GAPS + FEWEST_GAPS else gaps
