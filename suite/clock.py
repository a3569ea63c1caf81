"""The one place that reads a clock. Everything that needs time takes a `Clock`, so that tests bring their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Returns seconds as a float from an arbitrary, monotonic origin."""


def monotonic() -> float:
    """Seconds from `time.perf_counter`, the clock with the highest resolution. Compare differences only."""
    return time.perf_counter()


def process_cpu() -> float:
    """CPU seconds (user + system, all threads) that this process has used."""
    return time.process_time()


def now() -> datetime:
    """The present wall-clock time, UTC, without fractions of a second."""
    return datetime.now(UTC).replace(microsecond=0)
