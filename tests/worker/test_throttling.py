"""Throttle counters of a kernel, laid out as files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from suite.worker.throttling import ThrottleWatch, violation_ns


def count(root: Path, core: int, package: int) -> None:
    for cpu in os.sched_getaffinity(0):
        directory = root / f"cpu{cpu}" / "thermal_throttle"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "core_throttle_count").write_text(f"{core}\n")
        (directory / "package_throttle_count").write_text(f"{package}\n")


def test_events_since_the_beginning(tmp_path: Path) -> None:
    count(tmp_path, 5, 70)
    watch = ThrottleWatch(tmp_path)
    assert watch.read()["throttle events"] == "0"
    count(tmp_path, 6, 72)
    cpus = len(os.sched_getaffinity(0))
    assert watch.read()["throttle events"] == str(cpus + 2)


def test_a_system_that_does_not_count_is_not_zero(tmp_path: Path) -> None:
    seen = ThrottleWatch(tmp_path).read()
    assert "throttle events" not in seen
    assert float(seen["alive s"]) >= 0


class OneDevice:
    """What of NVML is asked, of a device that power held down for two seconds and heat for one."""

    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    def nvmlDeviceGetViolationStatus(self, _device: object, policy: int) -> SimpleNamespace:  # noqa: N802 - NVML's name
        return SimpleNamespace(referenceTime=7, violationTime=(2_000_000_000, 1_000_000_000)[policy])


def test_power_and_heat_are_added_in_nanoseconds() -> None:
    assert violation_ns(OneDevice(), "device") == 3_000_000_000
