"""What a variant costs against the reference, in plain words. Words carry the direction; no sign is needed to read it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from suite.gate.budget_plan import FIDELITY, MEMORY
from suite.gate.wording import span
from suite.records import ALL, Loss

RATIOS = ("output_tokens", "speedup", *MEMORY)
"""Quantities of which the value is variant / reference; of the others it is a difference of shares, positive is worse."""

TITLES = {
    "exact": "share of right answers",
    "output_tokens": "answer length",
    "truncated": "share of truncated answers",
    "empty": "share of empty answers",
    "unparsable": "share of unparsable answers",
    "looping": "share of looping answers",
    "mean_kld": "divergence",
    "speedup": "decode rate",
    "peak_rss_bytes": "peak memory",
    "peak_device_bytes": "peak accelerator memory",
}

MUCH_LONGER = 1.25
"""Answers whose length changed by this factor for sure (or its inverse) are another behaviour, whatever they score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What the sentence needs beside the numbers."""

    reference: str
    cases: int = 0
    """Paired cases, when families make fewer groups of them."""
    confidence: float = 0.95
    identical: bool = False
    doubt: str = ""
    """Why the numbers themselves are not to be trusted."""


def sentence(loss: Loss, background: Background) -> str:
    """The one sentence that a person reads."""
    subject = f"{loss.variant}: {TITLES.get(loss.metric, loss.metric)} ({loss.scope})"
    if loss.value is None:
        return f"{subject} was not measured: {background.doubt or 'nothing to compare'}"
    if loss.metric in FIDELITY:
        change = f"is {_nats(loss.value)} from {background.reference}"
    else:
        change = _ratio(loss, background) if loss.metric in RATIOS else _difference(loss, background)
    evidence = "; ".join(part for part in (_interval(loss, background), _counts(loss, background)) if part)
    said = f"{subject} {change}{f' ({evidence})' if evidence else ''}"
    return "; ".join(part for part in (said, _conclusion(loss, background)) if part)


def points(share: float) -> str:
    """A share that is not negative as points of 100: ``3.9``."""
    return f"{100 * share:.1f}"


def suspicions(losses: Sequence[Loss]) -> tuple[str, ...]:
    """What is odd about variants although their scores may have held: much longer or shorter answers, more loops."""
    whole = [loss for loss in losses if loss.scope == ALL and loss.value is not None]
    lengths = [loss for loss in whole if loss.metric == "output_tokens" and loss.interval is not None]
    held = {loss.variant for loss in whole if loss.metric == "score" and loss.lost <= loss.gained}
    found = {
        "answers are much longer than the reference's": _told(x for x in lengths if _end(x, 0) > MUCH_LONGER),
        "answers are much shorter than the reference's": _told(x for x in lengths if _end(x, 1) < 1 / MUCH_LONGER),
        "more answers end in a repetition loop": _looped(whole, held),
    }
    return tuple(f"{what}: {', '.join(names)}" for what, names in found.items() if names)


def _told(losses: Iterable[Loss]) -> list[str]:
    return [f"{loss.variant} ({loss.value:.2f} times)" for loss in losses]


def _end(loss: Loss, which: int) -> float:
    return loss.interval[which] if loss.interval else 1.0


def _looped(losses: Iterable[Loss], held: Collection[str]) -> list[str]:
    """Two more at least: one answer that tips over says little."""
    return [
        f"{loss.variant} ({loss.lost - loss.gained} more{', which its score does not show' if loss.variant in held else ''})"
        for loss in losses
        if loss.metric == "looping" and loss.lost - loss.gained >= 2
    ]


def _difference(loss: Loss, background: Background) -> str:
    value = loss.value or 0.0
    if background.identical:
        return f"is that of {background.reference}: every answer is the same, token for token"
    if abs(value) < 5e-5:
        return f"is that of {background.reference}"
    falls = (value > 0) is (loss.metric in ("score", "exact"))
    return f"is {points(abs(value))} points {'below' if falls else 'above'} that of {background.reference}"


def _ratio(loss: Loss, background: Background) -> str:
    return f"is {loss.value:.2f} times that of {background.reference}"


def _interval(loss: Loss, background: Background) -> str:
    if loss.interval is None:
        return ""
    level = f"{100 * background.confidence:.3g} %"
    low, high = loss.interval
    if loss.metric in FIDELITY:
        return f"{level}: {low:.3g} … {_nats(high)}"
    if loss.metric in RATIOS:
        return f"{level}: {low:.2f} … {high:.2f}"
    return f"{level}: {span(loss.interval, points, 'points')}"


def _counts(loss: Loss, background: Background) -> str:
    if loss.metric in ("speedup", *MEMORY):
        return f"{loss.n} launches" if loss.n != 1 else "1 launch"
    groups = f" in {loss.n} independent groups" if background.cases != loss.n else ""
    cases = f"{background.cases} case{'s' * (background.cases != 1)}{groups}"
    if loss.metric in ("output_tokens", *FIDELITY):
        return cases
    words = ("lost", "gained") if loss.metric in ("score", "exact") else ("more", "fewer")
    return f"{loss.lost} {words[0]} and {loss.gained} {words[1]} of {cases}"


def _conclusion(loss: Loss, background: Background) -> str:
    match loss.answer:
        case "within budget":
            return f"within the budget of {_limit(loss)}"
        case "over budget":
            favourable = "" if loss.interval is None else ", even by the most favourable value"
            return f"over the budget of {_limit(loss)}{favourable}"
        case "cannot tell":
            return f"the budget is {_limit(loss)}: {_doubt(loss, background)}"
        case _:
            return ", ".join(part for part in (background.doubt, _unseen(loss)) if part)


def _doubt(loss: Loss, background: Background) -> str:
    if background.doubt:
        return f"cannot tell: {background.doubt}"
    number = f"{loss.n} launches" if loss.metric == "speedup" else f"{background.cases} cases"
    if loss.interval is None:
        return "cannot tell: a single launch or case has no spread"
    told = ", ".join(part for part in (_unseen(loss), _needed(loss)) if part)
    return f"cannot tell with {number}{f': {told}' if told else ''}"


def _unseen(loss: Loss) -> str:
    """What could not have been seen: below the smallest detectable change."""
    if loss.metric in (*MEMORY, *FIDELITY):
        return ""
    if loss.mde is None:
        return "" if loss.metric in RATIOS else "no loss, however large, would be seen"
    if loss.metric in RATIOS:
        return f"a difference below {100 * loss.mde:.1f} % would not be seen"
    what = "a loss" if loss.metric in ("score", "exact") else "a rise"
    broken = " to break it" if loss.budget else ""
    return f"{what} below {points(loss.mde)} points would not be seen{broken}"


def _needed(loss: Loss) -> str:
    """How many cases it takes to show that a budget holds even if nothing is lost; empty when there are that many."""
    if loss.metric in (*RATIOS, *FIDELITY) or loss.budget is None:
        return ""
    if loss.budget.limit <= 0:
        return "and no number of cases shows that there is no loss at all"
    if loss.budget.limit >= 1:
        return ""
    needed = math.ceil(math.log(0.025) / math.log1p(-loss.budget.limit))
    return f"and to show that it holds takes {needed} cases that lose nothing" if needed > loss.n else ""


def _nats(value: float) -> str:
    return f"{value:.3g} nats"


def _limit(loss: Loss) -> str:
    limit = loss.budget.limit if loss.budget else 0.0
    if loss.metric in FIDELITY:
        return _nats(limit)
    if loss.metric in RATIOS:
        return f"{limit:.2f} times" if loss.metric != "speedup" else f"at least {limit:.2f} times"
    return f"{points(limit)} points"
