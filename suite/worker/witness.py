"""What the operating system saw while a sample was taken. Linux tells most; elsewhere the reading is None, not zero."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite import clock

PRESSURE = Path("/proc/pressure/cpu")
STAT = Path("/proc/stat")
PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class _Reading:
    wall_s: float
    cpu_s: float
    switches: int
    pressure_s: float | None
    stat: tuple[int, int] | None


class Observer:
    """Takes readings at the beginning and at the end of a sample. `processes` work for this one: a server and its kin."""

    def __init__(self, threads: int, processes: Sequence[int] = ()) -> None:
        self._threads = threads
        self._processes = processes
        self._start = _read(processes)

    def start(self) -> None:
        """Begin a sample."""
        self._start = _read(self._processes)

    def stop(self, *, simulated: bool = False) -> Mapping[str, float | int | None]:
        """End it: the fields of `suite.records.Witness`. What the machine did says nothing about `simulated` time."""
        before, after = self._start, _read(self._processes)
        wall = max(after.wall_s - before.wall_s, 1e-9)
        return {
            "wall_s": wall,
            "cpu_s": after.cpu_s - before.cpu_s,
            "threads": self._threads,
            "pressure": None if simulated else _pressure(before, after, wall),
            "involuntary_switches": None if simulated else after.switches - before.switches,
            "steal": None if simulated else _steal(before.stat, after.stat),
        }


def _read(processes: Sequence[int]) -> _Reading:
    return _Reading(
        wall_s=clock.monotonic(),
        cpu_s=clock.process_cpu() + sum(map(_cpu_of, processes)),
        switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
        pressure_s=_read_pressure(),
        stat=_read_stat(),
    )


def _cpu_of(process: int) -> float:
    """CPU seconds of another process, all threads, in steps of the kernel's ticks; 0 when it is gone or nobody tells."""
    try:
        fields = (PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime: proc(5), 14 and 15
    except (OSError, ValueError, IndexError):
        return 0.0


def _read_pressure() -> float | None:
    """Seconds since boot in which some task waited for a CPU (kernel documentation, accounting/psi)."""
    try:
        first = PRESSURE.read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def _read_stat() -> tuple[int, int] | None:
    """(all ticks, stolen ticks) of all CPUs; the eighth figure of the first line of /proc/stat is steal."""
    try:
        ticks = [int(field) for field in STAT.read_text().splitlines()[0].split()[1:9]]
        return sum(ticks), ticks[7]
    except (OSError, ValueError, IndexError):
        return None


def _pressure(before: _Reading, after: _Reading, wall: float) -> float | None:
    if before.pressure_s is None or after.pressure_s is None:
        return None
    return (after.pressure_s - before.pressure_s) / wall


def _steal(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[0] == before[0]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])
