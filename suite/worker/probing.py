"""What the CPUs of this process give: a streaming read and products of matrices, by a number of threads.

Its own process, beside those of the variants: the buffer is in nobody's peak memory, and each thread works alone, with a BLAS
library that has no threads of its own, which would spin on after the work was done and disturb the next slice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import ModuleType
from typing import Any

from suite import clock
from suite.backends.base import DeviceRates

READ_S = 0.02
"""How long one reading of the bandwidth goes on, at least."""
FEWEST_PASSES, MOST_PASSES = 3, 4096
"""Passes over the buffer in one reading."""
SIDE = 512
"""Rows and columns of the matrices that are multiplied."""
PRODUCTS = 4
REPETITIONS = 3
ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)


class CpuProbe:
    """Takes readings with `threads` threads; the buffer grows to the largest that was asked for, and is kept."""

    def __init__(self, threads: int) -> None:
        self._numpy = _load_numpy()
        self.threads = max(threads, 1)
        self._pool = ThreadPoolExecutor(self.threads)
        self._barrier = Barrier(self.threads)
        self._parts: list[Any] = []

    def read(self, size_bytes: int) -> DeviceRates:
        """One reading of both, some tens of milliseconds: the best of a few repetitions each.

        The best, since what is sought is what the machine can give: whatever disturbs a repetition makes it slower. The
        bandwidth comes last, so that the buffer is what the cache has seen last, as the weights are between two tokens.
        """
        flop_s = max(self._multiply() for _ in range(REPETITIONS))
        self._make_room(size_bytes)
        held = sum(part.nbytes for part in self._parts)
        seconds = self._time(self._reader(1))  # the first pass warms the cache, and tells how many fit
        passes = min(max(round(READ_S / max(seconds, 1e-9) / REPETITIONS), FEWEST_PASSES), MOST_PASSES)
        rate = max(held * passes / self._time(self._reader(passes)) for _ in range(REPETITIONS))
        return DeviceRates(
            device="cpu",
            threads=self.threads,
            size_bytes=held,
            read_bytes_s=rate,
            flop_s=flop_s,
            flop_type="float32",
        )

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _make_room(self, size_bytes: int) -> None:
        """One part for each thread, filled, so that no two pages are the same one of zeros."""
        words = max(size_bytes // self.threads // 4, 1)
        if len(self._parts) == self.threads and self._parts[0].size == words:
            return
        self._parts.clear()
        make = self._numpy.ones
        self._parts = list(self._pool.map(lambda _: make(words, dtype=self._numpy.int32), range(self.threads)))

    def _reader(self, passes: int) -> Callable[[int], None]:
        """Looks for the largest number: of numpy's reductions the one that memory bounds most, a core's own cache too.

        With AVX-512 on one core: 106 GB/s of 1 MB, where a sum of floats does 25 and a dot product of doubles 63; of 4 MB and
        more all of them do what memory gives.
        """
        largest = self._numpy.maximum.reduce

        def read(which: int) -> None:
            part = self._parts[which]
            for _ in range(passes):
                largest(part)

        return read

    def _multiply(self) -> float:
        numpy = self._numpy
        matrices = [numpy.ones((2, SIDE, SIDE), dtype=numpy.float32) for _ in range(self.threads)]
        targets = [numpy.empty((SIDE, SIDE), dtype=numpy.float32) for _ in range(self.threads)]

        def multiply(which: int) -> None:
            for _ in range(PRODUCTS):
                numpy.matmul(*matrices[which], out=targets[which])

        multiply(0)
        return 2 * SIDE**3 * PRODUCTS * self.threads / self._time(multiply)

    def _time(self, work: Callable[[int], None]) -> float:
        """Seconds from the first thread's start to the last one's end."""

        def timed(which: int) -> tuple[float, float]:
            self._barrier.wait()
            start = clock.monotonic()
            work(which)
            return start, clock.monotonic()

        spans = list(self._pool.map(timed, range(self.threads)))
        return max(max(end for _, end in spans) - min(start for start, _ in spans), 1e-9)


def _load_numpy() -> ModuleType:
    """Numpy whose products run on the thread that asks for them, unless it was loaded before."""
    if "numpy" not in sys.modules:
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    import numpy

    return numpy
