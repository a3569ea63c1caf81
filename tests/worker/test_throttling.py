"""Throttle counters of a kernel, laid out as files."""

from __future__ import annotations

import os
from pathlib import Path

from suite.worker.throttling import ThrottleWatch


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
