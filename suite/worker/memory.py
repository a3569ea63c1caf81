"""Memory of this process. RSS counts memory-mapped weights; USS does not count what others share."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

SMAPS = Path("/proc/self/smaps_rollup")
STATUS = Path("/proc/self/status")


def peak_rss_bytes() -> int:
    """The highest resident set of this process, bytes.

    On Linux from VmHWM: ``ru_maxrss`` survives exec there, so a small worker would report the size of its parent.
    """
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def uss_bytes() -> int | None:
    """Memory that only this process holds: what its end would free. None where the kernel does not tell."""
    try:
        lines = SMAPS.read_text().splitlines()
    except OSError:
        return None
    private = [line.split()[1] for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
    return sum(map(int, private)) * 1024


def device_bytes() -> int | None:
    """Memory that NVML says this process holds on all NVIDIA devices; None without NVML or a device."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        held = [_held(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return sum(held) if any(held) else None


def _held(nvml: object, device: object) -> int:
    """Bytes of this process on one device (containers may hide the process id; then it is 0)."""
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(device)  # type: ignore[attr-defined]
    return sum(process.usedGpuMemory or 0 for process in processes if process.pid == os.getpid())
