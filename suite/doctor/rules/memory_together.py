"""All variants of a run in memory at once: what interleaving costs."""

from __future__ import annotations

from suite.doctor.phrases import percent, size
from suite.doctor.reading import number
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.records import Run

FULL = 0.9
PARTED = "in memory together"
"""Key of a run's settings, which tells the groups where not all variants were in memory at once."""


def check_sum(run: Run) -> Said:
    """The sum of their peaks, against the memory that was free when the run began."""
    if run.settings.get(PARTED) or run.matrix.protocol.resident == "one":
        return cannot_be("the variants were measured in turns, not all in memory at once")
    peaks = [_peak(run, name) for name in dict.fromkeys(r.variant.name for r in (*run.variants, *run.against))]
    known = [peak for peak in peaks if peak]
    free = number(run.environment.readings, "memory_available_bytes")
    if len(known) < 2 or free is None:
        return cannot_be("fewer than two variants were timed, or the run does not tell how much memory was free")
    told = f"{len(known)} workers took {size(sum(known))} at most, {percent(sum(known) / free)} of the {size(free)} free before"
    if sum(known) > FULL * free:
        return found(told, '[protocol] resident = "one", or fewer variants in one run')
    return passed(told)


def _peak(run: Run, name: str) -> int:
    launches = [launch for r in (*run.variants, *run.against) if r.variant.name == name for launch in r.launches]
    return max((launch.peak_rss_bytes or 0 for launch in launches), default=0)


RULE = Rule(id="memory-together", title="memory of all variants together", of_run=check_sum)
