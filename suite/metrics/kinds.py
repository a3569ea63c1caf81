"""What scenarios of a kind give besides: conversations, memory that is watched, loading again, tails.

Three of them are held against nothing at all instead of a baseline (`HELD_TO_NONE`): there must be none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from suite.records import Held, Scenario, SpeedSample
from suite.stats.robust import median
from suite.stats.trend import theil_sen

HELD_TO_NONE = frozenset({"growth_bytes", "unreturned_bytes", "reevaluated_tokens", "reevaluated_share"})
"""Metrics of which a variant must have none, whatever was accepted: within the absolute tolerance, in their own unit."""

BY_TIME = frozenset({"reevaluated_share"})
"""Those of them that a busy machine moves."""

CLEARLY = 3.0
"""How many steps of decoding the whole prompt must cost, for its time to tell whether it was evaluated."""

FEWEST_READINGS = 8
"""Readings of memory in the second half of a generation, below which nothing is said about its trend."""

FEWEST_TAIL_GAPS: Mapping[str, int] = {"itl_p95_s": 20, "itl_p99_s": 100}
"""Gaps in a launch below which a percentile would be one of the largest gaps and nothing else."""

_SHARES: Mapping[str, float] = {"itl_p95_s": 0.95, "itl_p99_s": 0.99}


def growth_bytes(memory: Sequence[Held]) -> float | None:
    """What memory gained over the second half of a generation; 0 where it fell or levelled off, None for too few readings.

    The slope of the readings of the second half by Theil and Sen, which a few jumps cannot move, times its tokens. What grows
    in the first half only (buffers, pools) is no leak.
    """
    late = [reading for reading in memory if 2 * reading.tokens >= memory[-1].tokens]
    if len(late) < FEWEST_READINGS:
        return None
    slope = theil_sen([float(reading.tokens) for reading in late], [float(reading.bytes) for reading in late])
    return max(slope * (late[-1].tokens - late[0].tokens), 0.0)


def late_slowdown(sample: SpeedSample) -> float | None:
    """Median gap in the last quarter of a generation / that in its first quarter."""
    quarter = len(sample.itl_s) // 4
    if not sample.memory or quarter < FEWEST_READINGS:
        return None
    first, last = median(sample.itl_s[:quarter]), median(sample.itl_s[-quarter:])
    return last / first if first > 0 else None


def unreturned_bytes(sample: SpeedSample) -> float | None:
    """What a load and unload left behind: held afterwards - held before; 0 where less is held."""
    cycle = sample.cycle
    return None if cycle is None else float(max(cycle.after_bytes - cycle.before_bytes, 0))


def reevaluated_tokens(sample: SpeedSample) -> float | None:
    """Kept tokens that the backend evaluated again in spite of that, as it counts them: the most of any turn."""
    return max(
        (float(turn.evaluated_tokens - (turn.prompt_tokens - turn.kept_tokens)) for turn in sample.turns), default=None
    )


def reevaluated_share(sample: SpeedSample) -> float | None:
    """The share of what was kept that the time of the last turn says was evaluated again, whatever the backend counts.

    0 when the turn cost what its new tokens cost at the rate of the whole, 1 when it cost as much as everything sent again.
    What a pass costs however short it is (on a GPU more than the tokens of a small model) is left out of both: a step of decoding
    is such a pass. None where everything sent again does not clearly cost more than a step: then nothing can be told.
    """
    if not sample.turns or not sample.itl_s:
        return None
    turn, step_s = sample.turns[-1], median(sample.itl_s)
    if turn.resent_ttft_s < CLEARLY * step_s or turn.resent_ttft_s <= 0:
        return None
    spent = max(turn.ttft_s - step_s, 0.0) / (turn.resent_ttft_s - step_s)
    new = (turn.prompt_tokens - turn.kept_tokens) / turn.prompt_tokens
    return min(max((spent - new) / (1 - new), 0.0), 1.0)


def tail_s(metric: str, gaps: Sequence[float]) -> float | None:
    """A percentile of all gaps of one launch, by the nearest rank; None for too few of them."""
    if len(gaps) < FEWEST_TAIL_GAPS[metric]:
        return None
    return sorted(gaps)[math.ceil(_SHARES[metric] * len(gaps)) - 1]


def _last(sample: SpeedSample, name: str) -> float | None:
    return float(getattr(sample.turns[-1], name)) if sample.turns else None


def _gain(sample: SpeedSample) -> float | None:
    turn = sample.turns[-1] if sample.turns else None
    return turn.resent_ttft_s / turn.ttft_s if turn and turn.ttft_s > 0 else None


OF_KINDS: Mapping[str, Callable[[SpeedSample], float | None]] = {
    "held_bytes": lambda sample: None if sample.held_bytes is None else float(sample.held_bytes),
    "resent_ttft_s": lambda sample: _last(sample, "resent_ttft_s"),
    "turn_gain": _gain,
    "evaluated_tokens": lambda sample: _last(sample, "evaluated_tokens"),
    "resent_tokens": lambda sample: _last(sample, "resent_evaluated_tokens"),
    "reevaluated_tokens": reevaluated_tokens,
    "reevaluated_share": reevaluated_share,
    "growth_bytes": lambda sample: growth_bytes(sample.memory) if sample.memory else None,
    "late_slowdown": late_slowdown,
    "unreturned_bytes": unreturned_bytes,
}
"""Metric identifier → its value for one sample; None where the sample is of another kind."""

_OF_TURNS = frozenset(
    {"resent_ttft_s", "turn_gain", "evaluated_tokens", "resent_tokens", "reevaluated_tokens", "reevaluated_share"}
)
_OF_WATCHING = frozenset({"growth_bytes", "late_slowdown"})
_OF_RELOADING = frozenset({"unreturned_bytes"})


def belongs(metric: str, scenario: Scenario | None) -> bool:
    """Whether a metric of scenarios is one of this scenario; None stands for one that nothing is known of but its name."""
    if scenario is not None and scenario.reloads:
        return metric in _OF_RELOADING
    if metric in _OF_TURNS:
        return scenario is not None and scenario.turns > 1
    if metric in _OF_WATCHING:
        return scenario is not None and scenario.watch
    return metric not in _OF_RELOADING
