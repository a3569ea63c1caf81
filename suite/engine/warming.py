"""Warm-up after a load: untimed slices until decoding has become steady."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from suite.engine.launching import LiveVariant
from suite.engine.passage import scenario_prompt
from suite.records import Generation, Matrix
from suite.stats.trend import theil_sen

STEADY = 0.05
"""A slice is steady when its gaps changed by less than this share from its beginning to its end."""
SWITCH_GAPS = 2
"""Gaps after a switch of variants that are left out, as far as enough others remain."""
FEWEST_GAPS = 6
"""Fewer gaps than this tell no trend."""


def warm_up(live: LiveVariant, matrix: Matrix, passage: Sequence[int]) -> int:
    """Untimed slices: `warmup` of each scenario, then more of the first one until decoding is steady.

    Returns how many of the first scenario were needed, at most `max_warmup`. Simulated time knows no warming up.
    """
    protocol, first = matrix.protocol, matrix.scenarios[0]
    last: Generation | None = None
    for scenario in reversed(matrix.scenarios):  # the first one last: its steadiness is what decides
        for turn in range(protocol.warmup):
            prompt = scenario_prompt(passage, scenario.prompt_tokens, -2 - turn)
            last, _ = live.generate(prompt, scenario.new_tokens, stop_at_end=False)
    taken = protocol.warmup
    while not live.loaded.simulated and taken < protocol.max_warmup and not (last and is_steady(last.itl_s)):
        prompt = scenario_prompt(passage, first.prompt_tokens, -2 - taken)
        last, _ = live.generate(prompt, first.new_tokens, stop_at_end=False)
        taken += 1
    return taken


def is_steady(gaps: Sequence[float]) -> bool:
    """Whether the trend of `gaps` (seconds) over the slice, by Theil and Sen, is small beside their median.

    True when there are too few gaps to tell.
    """
    kept = gaps[SWITCH_GAPS:] if len(gaps) >= SWITCH_GAPS + FEWEST_GAPS else gaps
    if len(kept) < FEWEST_GAPS or median(kept) <= 0:
        return True
    times = list(accumulate(kept))
    return abs(theil_sen(times, kept)) * (times[-1] - times[0]) <= STEADY * median(kept)
