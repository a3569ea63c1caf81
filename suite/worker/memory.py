"""Memory of this process. RSS counts memory-mapped weights, and here no pages of program files; USS does not count what others
share.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.worker.nvml import ask_nvml

SMAPS = Path("/proc/self/smaps_rollup")
MAPPINGS = Path("/proc/self/smaps")
STATUS = Path("/proc/self/status")


def peak_rss_bytes() -> int:
    """The highest resident set of this process, bytes; on Linux without what is resident of program files now.

    From VmHWM there: ``ru_maxrss`` survives exec, so a small worker would report the size of its parent. How much of a library
    counts as resident depends on how the page cache happens to hold it (a fault maps a whole folio): the same torch took 384 MB
    and, freshly read, 511 MB.
    """
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 - program_bytes()
    except (OSError, StopIteration, ValueError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def program_bytes(mappings: Path = MAPPINGS) -> int:
    """Resident pages of files of which any part is mapped to be executed, bytes, as they lie in the page cache: pages that were
    written to are this process's own, and do not count. 0 where the kernel does not tell.
    """
    try:
        lines = mappings.read_text().splitlines()
    except OSError:
        return 0
    resident: dict[str, int] = {}
    programs = set()
    file = ""
    for line in lines:
        name, *rest = line.split(maxsplit=5)
        if not name.endswith(":"):  # addresses, permissions, offset, device, inode, and the file if there is one
            file = rest[4] if len(rest) == 5 and rest[3] != "0" else ""
            programs |= {file} if "x" in rest[0] and file else set()
        elif file and name in ("Rss:", "Anonymous:"):
            resident[file] = resident.get(file, 0) + int(rest[0]) * (1 if name == "Rss:" else -1)
    return 1024 * sum(resident.get(program, 0) for program in programs)


def uss_bytes() -> int | None:
    """Memory that only this process holds: what its end would free. None where the kernel does not tell."""
    try:
        lines = SMAPS.read_text().splitlines()
    except OSError:
        return None
    private = [line.split()[1] for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
    return sum(map(int, private)) * 1024


def held_bytes() -> int | None:
    """Anonymous memory of this process that is resident now: what it allocated and did not give back. Mapped files, as
    weights are, do not count. None where the kernel does not tell (``RssAnon`` and ``RssShmem``, Linux 4.5).
    """
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return sum(found) if found else None


def peak_rss_of(processes: Sequence[int], proc: Path = Path("/proc")) -> int | None:
    """The sum of the highest resident sets of other processes, bytes, without what is resident of program files now; None for
    none, or where the kernel does not tell.

    Each had its peak at a time of its own, and pages that they share count in each: an upper bound.
    """
    peaks = {process: _field(proc / str(process) / "status", "VmHWM:") for process in processes}
    known = [peak - program_bytes(proc / str(process) / "smaps") for process, peak in peaks.items() if peak is not None]
    return sum(known) if known else None


def uss_of(processes: Sequence[int], proc: Path = Path("/proc")) -> int | None:
    """What only those processes hold, each for itself, bytes; None for none, or where the kernel does not tell."""
    found = [
        [_field(proc / str(process) / "smaps_rollup", name) for name in ("Private_Clean:", "Private_Dirty:")]
        for process in processes
    ]
    known = [value for values in found for value in values if value is not None]
    return sum(known) if known else None


def _field(file: Path, name: str) -> int | None:
    """A line of kilobytes in a file of the kernel, as bytes; None when the process is gone, or is not ours to look at."""
    try:
        line = next(line for line in file.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def device_bytes(processes: Sequence[int] | None = None) -> int | None:
    """Memory that NVML says this process, or `processes`, hold on all NVIDIA devices; None without NVML or a device."""
    holders = frozenset([os.getpid()] if processes is None else processes)
    held = ask_nvml(lambda nvml, devices: sum(_held(nvml, device, holders) for device in devices))
    return held or None


def _held(nvml: object, device: object, holders: frozenset[int]) -> int:
    """Bytes of these processes on one device (containers may hide the process id; then it is 0)."""
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(device)  # type: ignore[attr-defined]
    return sum(process.usedGpuMemory or 0 for process in processes if process.pid in holders)
