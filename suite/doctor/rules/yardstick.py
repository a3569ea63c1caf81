"""The machine itself, from the first launch to the last: neutral kernels that know nothing of models."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from suite.doctor.phrases import percent
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run, Yardstick

STEADY = 0.1
"""Share by which a launch may differ from the middle of the run: minutes apart, a quiet machine differs by 3 %."""
KERNELS: dict[str, Callable[[Yardstick], float]] = {
    "hashing": lambda yardstick: yardstick.hash_bytes_s,
    "copying": lambda yardstick: yardstick.copy_bytes_s,
}


def check_drift(run: Run) -> Said:
    """Median over the variants in each launch, against the middle of the run."""
    by_launch: dict[int, list[Yardstick]] = {}
    for launch in (launch for result in (*run.variants, *run.against) for launch in result.launches):
        if launch.yardstick is not None:
            by_launch.setdefault(launch.index, []).append(launch.yardstick)
    if len(by_launch) < 2:
        return cannot_be("fewer than two launches have a yardstick beside them")
    worst = {name: _worst(by_launch, read) for name, read in KERNELS.items()}
    told = ", ".join(
        f"{name} differs by {percent(off)} at most (launch {index})" for name, (off, index) in worst.items()
    )
    if any(off > STEADY for off, _ in worst.values()):
        return found(
            f"the machine was not the same throughout: {told}",
            "repeat it on a quiet machine; ratios of variants measured side by side still hold",
        )
    return passed(f"over {len(by_launch)} launches {told}")


def _worst(by_launch: dict[int, list[Yardstick]], read: Callable[[Yardstick], float]) -> tuple[float, int]:
    speeds = {index: median(read(yardstick) for yardstick in found) for index, found in by_launch.items()}
    middle = median(speeds.values())
    if middle <= 0:
        return 0.0, min(speeds)
    return max((abs(speed / middle - 1), index) for index, speed in speeds.items())


RULE = Rule(id="yardstick", title="the machine over the run", of_run=check_drift)
