"""A clock that is held down: by heat, by a power limit, or by a governor."""

from __future__ import annotations

from suite.doctor.phrases import percent
from suite.doctor.reading import number
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run

SELF_GOVERNED = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers under which ``powersave`` is the ordinary governor, and the CPU itself raises its clock under load."""
NOTABLE = 0.02
"""Share of the time of the launches for which a GPU may have been held down before it is told."""
REDUCED = 0.95
"""A power limit below this share of the device's own is a reduced one."""


def check_clocks(run: Run) -> Said:
    """Throttle counters over the launches, the governor, the power limit of the GPU."""
    faults = [fault for fault in (_governor(run), _events(run), _held_down(run), _power(run)) if fault is not None]
    if faults:
        return found("; ".join(text for text, _ in faults), "; ".join(dict.fromkeys(remedy for _, remedy in faults)))
    told = [*_told(run)]
    if not told:
        return cannot_be("this system tells no governor and no throttle counters, as virtual machines do not")
    return passed(", ".join(told))


def _told(run: Run) -> list[str]:
    governor = run.environment.suspects.get("governor")
    events = [value for value in _seen(run, "throttle events") if value is not None]
    held = [value for value in _seen(run, "device throttled s") if value is not None]
    told = [f"governor {governor}"] if governor else []
    told += [f"{len(events)} launches without a throttle event"] if events else []
    return told + ([f"the GPU was not held down in {len(held)} launches"] if held else [])


def _governor(run: Run) -> tuple[str, str] | None:
    """``powersave (acpi-cpufreq)``: a governor with its driver."""
    told = run.environment.suspects.get("governor", "")
    name, _, driver = told.partition(" ")
    if name != "powersave" or driver.strip("()") in SELF_GOVERNED:
        return None
    return f"governor {told} keeps the clock at its lowest", "cpupower frequency-set -g performance"


def _events(run: Run) -> tuple[str, str] | None:
    counts = [value for value in _seen(run, "throttle events") if value]
    if not counts:
        return None
    return (
        f"the CPU was throttled {sum(counts):.0f} times in {len(counts)} launches",
        "cool it, or raise its power limit",
    )


def _held_down(run: Run) -> tuple[str, str] | None:
    held = sum(value or 0 for value in _seen(run, "device throttled s"))
    alive = sum(value or 0 for value in _seen(run, "alive s"))
    if not alive or held / alive <= NOTABLE:
        return None
    return (
        f"the GPU was held down by heat or power for {percent(held / alive)} of the time",
        "cool it, or raise its power limit",
    )


def _power(run: Run) -> tuple[str, str] | None:
    limit, usual = (number(run.environment.readings, f"device_power_{name}_w") for name in ("limit", "default"))
    if not limit or not usual or limit >= REDUCED * usual:
        return None
    return f"the GPU may draw {limit:.0f} W of the {usual:.0f} W that it is made for", f"nvidia-smi -pl {usual:.0f}"


def _seen(run: Run, name: str) -> list[float | None]:
    return [number(launch.seen, name) for result in (*run.variants, *run.against) for launch in result.launches]


RULE = Rule(id="throttling", title="throttling, governor, power", of_run=check_clocks)
