"""What says that the machine was not as it should be although there are clean samples. Never a PASS then."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from suite.records import Launch, SampleStatus, SpeedSample, Witness

MOST_UNCLEAN = 0.5
"""Share of contended samples beyond which the clean ones are the exception."""
MOST_STEAL = 0.02
"""Median share of CPU time that the hypervisor took from clean samples."""
MOST_SWITCHES = 100.0
"""Involuntary context switches a second and thread, median of the clean samples: an idle machine shows 10 to 20."""
MOST_SPREAD = 0.2
"""Standard deviation of the logarithm of a yardstick between the launches of one run."""


def find_flags(
    samples: Sequence[SpeedSample], launches: Sequence[Launch], *, side_by_side: bool = False
) -> tuple[str, ...]:
    """Flags of one variant's samples of one scenario (or of all), and of its launches, in words.

    Side by side both meet the same machine, however its own speed varies between launches.
    """
    usable = [sample for sample in samples if sample.status in (SampleStatus.CLEAN, SampleStatus.CONTENDED)]
    clean = [sample.witness for sample in usable if sample.status is SampleStatus.CLEAN]
    found = [
        _unclean(len(usable) - len(clean), len(usable)),
        _steal(clean),
        _switches(clean),
        "" if side_by_side else _spread(launches),
    ]
    return tuple(flag for flag in found if flag)


def _unclean(unclean: int, total: int) -> str:
    if not total or unclean <= MOST_UNCLEAN * total:
        return ""
    return f"a neighbour took {unclean} of {total} slices"


def _steal(clean: Sequence[Witness]) -> str:
    seen = [witness.steal for witness in clean if witness.steal is not None]
    taken = statistics.median(seen) if seen else 0.0
    return f"the hypervisor took {taken:.0%} of the CPU time" if taken > MOST_STEAL else ""


def _switches(clean: Sequence[Witness]) -> str:
    rates = [
        witness.involuntary_switches / (witness.wall_s * witness.threads)
        for witness in clean
        if witness.involuntary_switches is not None and witness.wall_s > 0 and witness.threads
    ]
    rate = statistics.median(rates) if rates else 0.0
    return f"{rate:.0f} involuntary context switches a second and thread" if rate > MOST_SWITCHES else ""


def _spread(launches: Sequence[Launch]) -> str:
    yardsticks = [launch.yardstick for launch in launches if launch.yardstick]
    if len(yardsticks) < 3:
        return ""
    spreads = [
        statistics.stdev(math.log(getattr(yardstick, name)) for yardstick in yardsticks)
        for name in ("hash_bytes_s", "copy_bytes_s")
    ]
    return (
        f"the machine's own speed varied by {max(spreads):.0%} between launches" if max(spreads) > MOST_SPREAD else ""
    )
