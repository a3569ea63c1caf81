"""The CPUs on which everything that is timed runs, the same for all: two cores of one machine differ by up to 10 %."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from suite.engine.environment import default_threads
from suite.engine.launching import options_in_force
from suite.records import Variant

TOPOLOGY = Path("/sys/devices/system/cpu")


def threads_of(variants: Iterable[Variant]) -> int:
    """The most threads that one of `variants` was given; the machine's physical cores where none says a number."""
    given = [options_in_force(variant).get("n_threads") for variant in variants]
    counts = [count for count in given if isinstance(count, int) and count > 0]
    return max(counts, default=default_threads())


def choose_cpus(threads: int, *, topology: Path = TOPOLOGY) -> tuple[int, ...]:
    """One CPU of as many physical cores as there are `threads`, out of those that this process may use.

    All that may be used when there are more threads than cores; none where the system cannot pin processes.
    """
    if not hasattr(os, "sched_getaffinity"):
        return ()
    usable = sorted(os.sched_getaffinity(0))
    cores: dict[str, int] = {}
    for cpu in usable:
        cores.setdefault(_core_of(cpu, topology), cpu)
    chosen = sorted(cores.values())
    return tuple(chosen[:threads]) if threads <= len(chosen) else tuple(usable)


def _core_of(cpu: int, topology: Path) -> str:
    """What the CPUs of one core have in common; each is a core of its own where the system does not tell."""
    try:
        return (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
