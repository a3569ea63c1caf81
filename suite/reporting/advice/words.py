"""Quantities, limits and answers in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from suite.gate.advice.answering import Answer, Held
from suite.gate.advice.asked import Limit, Name
from suite.gate.advice.choosing import Choice
from suite.gate.advice.estimates import Estimate
from suite.reporting import wording
from suite.stats.dominance import Relation

TITLES: Mapping[Name, str] = {
    "loss": "loss", "kld": "KLD", "speedup": "speed-up", "memory": "memory", "decode": "decode", "ttft": "TTFT",
}  # fmt: skip
HEADINGS: Mapping[Name, str] = {**TITLES, "memory": "mem"}
"""Of narrow columns."""
_BEST: Mapping[Name, str] = {
    "loss": "loses the least",
    "kld": "is closest to the reference",
    "speedup": "is the fastest",
    "decode": "is the fastest",
    "ttft": "answers first",
    "memory": "needs the least memory",
}
_BETTER: Mapping[Name, str] = {
    "loss": "less loss",
    "kld": "closer to the reference",
    "speedup": "faster",
    "decode": "faster",
    "ttft": "sooner",
    "memory": "less memory",
}
_LAUNCHES = ("speedup", "memory", "decode", "ttft")


def amount(name: Name, value: float | None) -> str:
    """A value with its unit: ``0.3 points``, ``0.058 nats``, ``2.38×``, ``205 MB``, ``171 tok/s``, ``98.2 ms``."""
    if value is None:
        return wording.ABSENT
    unit = {"loss": " points", "kld": " nats", "speedup": "×", "decode": " tok/s"}.get(name, "")
    return f"{bare(name, value)}{unit}"


def bare(name: Name, value: float) -> str:
    """The same without its unit, where a column or the value beside it says it."""
    match name:
        case "loss":
            return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")  # + 0.0 makes -0.0 a plain zero
        case "kld":
            return wording.nats(value)
        case "speedup":
            return f"{value:.2f}"
        case "memory":
            return wording.size(value)
        case "decode":
            return wording.rate(value)
        case "ttft":
            return wording.duration(value)


def short(name: Name, value: float) -> str:
    """The same for a narrow column."""
    if name == "kld":
        return wording.short_nats(value)
    return bare(name, value).replace(" MB", "M").replace(" GB", "G").replace(" kB", "k")


def limit(given: Limit) -> str:
    """``loss ≤ 2 points``, ``speed-up ≥ 1.5×``."""
    name = given.quantity.name
    sign = "≥" if given.quantity.more_is_better else "≤"
    return f"{TITLES[name]} {sign} {limit_amount(given)}"


def limit_amount(given: Limit) -> str:
    """The limit as it was given, not rounded: ``2 points``, ``300 MB``."""
    name, value = given.quantity.name, given.value
    if name in ("memory", "ttft"):
        return amount(name, value)
    unit = {"loss": " points", "kld": " nats", "speedup": "×", "decode": " tok/s"}[name]
    return f"{value:g}{' point' if unit == ' points' and value == 1 else unit}"


def interval(estimate: Estimate) -> str:
    """``95 %: −0.9 … 1.6``; of memory the launches behind it; nothing where it is so by definition."""
    if estimate.exact:
        return "by definition"
    if estimate.quantity == "memory":
        return f"the most of {_launches(estimate.n)}"
    if estimate.interval is None:
        return "no interval"
    low, high = (bare(estimate.quantity, end) for end in estimate.interval)
    return f"{100 * estimate.confidence:.3g} %: {low} … {high}"


def measured(estimate: Estimate) -> str:
    """``loss 0.3 points (95 %: −0.9 … 1.6)``, or why it is not known."""
    title = TITLES[estimate.quantity]
    if estimate.value is None:
        return f"{title} is not known: {estimate.doubt}"
    return f"{title} {amount(estimate.quantity, estimate.value)} ({interval(estimate)})"


def counted(estimate: Estimate) -> str:
    """``on 54 cases``, ``in 5 launches``."""
    if estimate.quantity in _LAUNCHES:
        return f"in {_launches(estimate.n)}"
    return f"on {wording.counted(estimate.n, 'independent case')}"


def _launches(count: int) -> str:
    return f"{count} launch{'' if count == 1 else 'es'}"


def told(held: Held) -> str:
    """One limit of one variant, as one clause: ``loss 1.4 points (95 %: −0.8 … 4.1) on 54 independent cases``."""
    said = measured(held.estimate)
    if held.answer is Answer.SATISFIES or held.estimate.value is None:
        return said
    if held.answer is Answer.FAILS:
        return f"{said}: {short_of(held)}"
    return f"{said}, {held.estimate.doubt}" if held.estimate.doubt else f"{said} {counted(held.estimate)}"


def short_of(held: Held) -> str:
    """``3.3 points more than 2 points``, ``0.07× less than 1.5×``; or that the estimate is within: ``at most 2 points``."""
    quantity, told_limit = held.limit.quantity, limit_amount(held.limit)
    if held.off is None or held.off <= 0:
        return f"at {'least' if quantity.more_is_better else 'most'} {told_limit}"
    return f"{amount(quantity.name, held.off)} {'less' if quantity.more_is_better else 'more'} than {told_limit}"


def reasons(choice: Choice) -> Iterator[str]:
    """Why that one of all that satisfy was taken, a clause each."""
    if len(choice.among) == 1:
        yield "it is the only one that satisfies all of it"
        return
    yield f"{wording.listed(choice.among, 12)} satisfy all of it"
    if choice.put_back:
        yield f"gates of {wording.listed(choice.put_back, 12)} failed, so another one is taken"
    for place, one in enumerate(choice.rounds):
        if len(one.left) == 1:
            yield f"{one.best} {_BEST[one.quantity]}"
        elif place < len(choice.rounds) - 1:
            yield f"{wording.listed(one.left, 12)} are not told apart in {TITLES[one.quantity]}"
        else:
            yield f"nor in {TITLES[one.quantity]}, of which {choice.variant} has the best estimate"


def relations(apart: Mapping[Name, Relation]) -> str:
    """What makes one variant better than another: ``faster, less memory; not told apart in loss``."""
    better = [_BETTER[name] for name, relation in apart.items() if relation is Relation.BETTER]
    worse = [f"not {_BETTER[name]}" for name, relation in apart.items() if relation is Relation.WORSE]
    untold = [TITLES[name] for name, relation in apart.items() if relation is Relation.UNTOLD]
    equal = [TITLES[name] for name, relation in apart.items() if relation is Relation.EQUAL]
    parts = [", ".join([*better, *worse])] if better or worse else []
    parts += [f"the same in {_and(equal)}"] if equal else []
    parts += [f"not told apart in {_and(untold)}"] if untold else []
    return "; ".join(parts)


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
