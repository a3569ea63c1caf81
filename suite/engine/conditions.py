"""How the machine is set, and what it grants: governor, quota and memory of the group, variables that steer threads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
THREAD_VARIABLES = re.compile(
    r"OMP_(NUM_THREADS|THREAD_LIMIT|DYNAMIC|WAIT_POLICY|PROC_BIND|PLACES)|GOMP_(SPINCOUNT|CPU_AFFINITY)|KMP_(AFFINITY|BLOCKTIME)"
    r"|(MKL|OPENBLAS|BLIS|NUMEXPR|VECLIB|GOTO)_(NUM_THREADS|MAXIMUM_THREADS|DYNAMIC)"
)
"""Those that workers get, too, and that decide how many threads a library takes, or how they wait."""


def read_governor(directory: Path = CPUFREQ) -> str | None:
    """``performance (intel_pstate)``: what sets the clock of the first CPU, and its driver; None in most virtual machines."""
    try:
        governor, driver = ((directory / f"scaling_{name}").read_text().strip() for name in ("governor", "driver"))
    except OSError:
        return None
    return f"{governor} ({driver})"


def read_thread_variables(environment: Mapping[str, str] | None = None) -> str:
    """``OMP_NUM_THREADS=8; MKL_NUM_THREADS=1``; empty when none is set."""
    found = os.environ if environment is None else environment
    return "; ".join(f"{name}={value}" for name, value in sorted(found.items()) if THREAD_VARIABLES.fullmatch(name))


def read_grants(root: Path = GROUPS, own: Path = OWN_GROUP) -> dict[str, float]:
    """``cpu_quota`` (CPUs) and ``memory_limit_bytes``: the smallest of the control group (version 2) and those around it.

    What is not limited is left out (kernel documentation, admin-guide/cgroup-v2).
    """
    grants: dict[str, float] = {}
    for directory in _groups(root, own):
        quota, limit = _read_quota(directory / "cpu.max"), _read_number(directory / "memory.max")
        for name, value in (("cpu_quota", quota), ("memory_limit_bytes", limit)):
            if value is not None:
                grants[name] = min(value, grants.get(name, value))
    return grants


def _groups(root: Path, own: Path) -> Iterator[Path]:
    """The directory of this process's group, and those above it up to `root`."""
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    directory = root / line.removeprefix("0::").lstrip("/")
    while directory.is_relative_to(root):
        yield directory
        directory = directory.parent


def _read_quota(file: Path) -> float | None:
    """``max 100000`` or ``150000 100000``: microseconds of CPU time in each period of so many."""
    try:
        quota, period = file.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _read_number(file: Path) -> float | None:
    try:
        return float(int(file.read_text()))
    except (OSError, ValueError):
        return None


def count_processes(nvml: Any, devices: Sequence[Any]) -> dict[str, float]:
    """``device_processes``: how many compute on NVIDIA `devices` now. Raises what NVML raises."""
    return {
        "device_processes": float(sum(len(nvml.nvmlDeviceGetComputeRunningProcesses(device)) for device in devices))
    }


def read_power(nvml: Any, devices: Sequence[Any]) -> dict[str, float]:
    """Watts that NVIDIA `devices` may draw together, and are made for; NVML tells milliwatts. Raises what NVML raises."""
    return {
        "device_power_limit_w": sum(nvml.nvmlDeviceGetPowerManagementLimit(device) / 1000 for device in devices),
        "device_power_default_w": sum(
            nvml.nvmlDeviceGetPowerManagementDefaultLimit(device) / 1000 for device in devices
        ),
    }
