"""Whether the clocks of this worker's devices were held down while it worked: counters of the kernel and of NVML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite import clock
from suite.worker.nvml import ask_nvml

CPUS = Path("/sys/devices/system/cpu")
COUNTERS = ("core_throttle_count", "package_throttle_count")
"""Events since boot, of a core and of its package (kernel, ``arch/x86/kernel/cpu/mce/therm_throt.c``)."""
POLICIES = ("NVML_PERF_POLICY_POWER", "NVML_PERF_POLICY_THERMAL")
"""Why NVML says that a clock was held down; others (a clock that was set, an application's) are somebody's wish."""


class ThrottleWatch:
    """Reads counters when it is made, and tells by how much they rose since."""

    def __init__(self, root: Path = CPUS) -> None:
        self._root = root
        self._since_s = clock.monotonic()
        self._events = _throttle_events(self._root, _usable_cpus())
        self._held_ns = _held_down_ns()

    def read(self) -> dict[str, str]:
        """Since it was made: see `suite.records.Launch.seen`; what this system does not tell is left out."""
        seen = {"alive s": f"{clock.monotonic() - self._since_s:.3f}"}
        events, held_ns = _throttle_events(self._root, _usable_cpus()), _held_down_ns()
        if events is not None and self._events is not None:
            seen["throttle events"] = str(events - self._events)
        if held_ns is not None and self._held_ns is not None:
            seen["device throttled s"] = f"{(held_ns - self._held_ns) / 1e9:.3f}"
        return seen


def _usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _throttle_events(root: Path, cpus: Sequence[int]) -> int | None:
    """Of all `cpus` together, and of their package, which each of them tells; None where the kernel does not count."""
    counts: dict[str, list[int]] = {name: [] for name in COUNTERS}
    for cpu in cpus:
        for name in COUNTERS:
            try:
                counts[name].append(int((root / f"cpu{cpu}" / "thermal_throttle" / name).read_text()))
            except (OSError, ValueError):
                continue
    core, package = counts[COUNTERS[0]], counts[COUNTERS[1]]
    return sum(core) + max(package, default=0) if core or package else None


def _held_down_ns() -> int | None:
    """Nanoseconds for which power or heat held down the clock of an NVIDIA device; None where NVML does not tell."""
    return ask_nvml(lambda nvml, devices: max(violation_ns(nvml, device) for device in devices))


def violation_ns(nvml: Any, device: Any) -> int:
    """``violationTime`` is in nanoseconds (NVML API, ``nvmlViolationTime_t``)."""
    return sum(
        int(nvml.nvmlDeviceGetViolationStatus(device, getattr(nvml, policy)).violationTime) for policy in POLICIES
    )
