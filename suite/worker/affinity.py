"""On which CPUs a process runs. Standard library only: a worker applies it before it imports anything heavy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CPUS_VARIABLE = "QUANTDRIFT_CPUS"
"""Environment variable that tells a worker its CPUs, by number, separated by commas."""


def apply_affinity() -> None:
    """Move this process to the CPUs that it was told. Without any, or where the system has no such call: nothing."""
    told = os.environ.get(CPUS_VARIABLE)
    if told and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in told.split(",")})


@contextmanager
def on_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Run the block on `cpus` alone, and afterwards where this process ran before. No CPUs leave it where it is."""
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cpus))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
