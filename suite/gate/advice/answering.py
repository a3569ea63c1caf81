"""Whether one quantity of one variant keeps within its limit: yes, no, or cannot tell.

Yes needs the whole interval within the limit, no the whole interval beyond it. Each end of a 95 % interval errs in at most
2.5 %; nothing is divided among limits and variants, since each claim is to hold by itself. Memory is what launches needed: a
limit that one of them exceeded is broken, and one that none exceeded is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from suite.gate.advice.asked import Limit
from suite.gate.advice.estimates import Estimate
from suite.gate.advice.settling import Step, settle_limit

_GRAIN = 1e-9
"""Shares such as 0.52 - 0.44 miss their decimal value by this much at most."""


class Answer(StrEnum):
    """How a variant, or one quantity of it, stands to what was asked."""

    SATISFIES = "satisfies"
    FAILS = "fails"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One quantity of one variant, held against its limit."""

    limit: Limit
    estimate: Estimate
    answer: Answer
    off: float | None
    """By how much the estimate is beyond the limit, in the quantity's unit; 0 or less is within. None: not known."""
    step: Step | None = None
    """What would settle it, where that cannot be told."""


def hold(estimate: Estimate, limit: Limit, *, names: tuple[str, ...], command: str) -> Held:
    """Hold an estimate against a limit; `names` are the variants that `command` has to measure again."""
    answer = answer_limit(estimate, limit)
    off = None if estimate.value is None else _turned(estimate.value - limit.value, limit)
    held = Held(limit=limit, estimate=estimate, answer=answer, off=off)
    if answer is not Answer.CANNOT_TELL:
        return held
    return Held(
        limit=limit,
        estimate=estimate,
        answer=answer,
        off=off,
        step=settle_limit(estimate, limit, names=names, command=command),
    )


def answer_limit(estimate: Estimate, limit: Limit) -> Answer:
    """The answer of one limit. Without a value or an interval, or with a doubt about the numbers themselves: cannot tell."""
    if estimate.value is None or estimate.interval is None or estimate.doubt:
        return Answer.CANNOT_TELL
    good, bad = sorted(_turned(end, limit) for end in estimate.interval)
    bound = _turned(limit.value, limit)
    grain = _GRAIN * max(abs(bound), 1.0)
    if bad <= bound + grain:
        return Answer.SATISFIES
    if limit.quantity.name == "memory" or good > bound + grain:
        return Answer.FAILS
    return Answer.CANNOT_TELL


def _turned(value: float, limit: Limit) -> float:
    """On the scale on which less is better."""
    return -value if limit.quantity.more_is_better else value
