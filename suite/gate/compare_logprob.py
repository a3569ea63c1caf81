"""How likely a variant still finds the answers that were accepted of it: signed, and far sharper than right or wrong.

Paired by case: the mean log-probability per token of the accepted answer, then and now, over the same tokens. The drift is
what was lost, in nats a token. Variations of one prompt count as one draw, by their mean; the t interval is over those.

What it cannot tell: the accepted answer was once the likeliest one, so that any change may cost it a little, whether or not
the model got worse. The tolerance has to leave room for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from suite.gate.answers import Pair
from suite.gate.estimated import estimated_fields
from suite.records import Verdict
from suite.stats.intervals import paired_mean

LOGPROB = "logprob"
"""Identifier of the metric."""

SD_FLOOR = 0.001
"""Nats: the spread between cases is never believed to be less, since four digits are stored of each."""

GRAIN = 5e-4
"""Nats: log-probabilities closer than this are equal: baselines store four significant digits."""


@dataclass(frozen=True, slots=True)
class _Draw:
    """The accepted answers of one template family, or of one case without a family: nats per token, then and now."""

    was: float
    now: float

    @property
    def loss(self) -> float:
        """Positive is worse."""
        return self.was - self.now


def logprob_fields(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Fields of a `Comparison` over those pairs of which both sides are known, at least one: see `why_unknown`."""
    weighed = [pair for pair in pairs if _is_weighed(pair)]
    draws = _draws(weighed)
    losses = [draw.loss for draw in draws]
    return {
        "observed": fmean(draw.now for draw in draws),
        "baseline": fmean(draw.was for draw in draws),
        "drift": fmean(losses),
        "n": len(draws),
        "identical": not any(is_known_otherwise(pair) or _is_missing(pair) for pair in pairs),
        **estimated_fields(paired_mean(losses, sd_floor=SD_FLOOR)),
    }


def why_unknown(pairs: Sequence[Pair]) -> tuple[Verdict, str] | None:
    """Why there is nothing to compare, None when there is: at least half of the answers that are not empty."""
    known, missing = sum(map(_is_weighed, pairs)), sum(map(_is_missing, pairs))
    if known and known >= missing:
        return None
    if all(pair.now.logprob is None for pair in pairs):
        return Verdict.NOT_MEASURED, "its backend gives no log-probabilities"
    if sum(pair.was.logprob is None for pair in pairs) >= missing / 2:
        few = f"all but {known} answers were " if known else ""
        return Verdict.UNBASELINED, f"{few}accepted before log-probabilities were kept; accept anew"
    return Verdict.NOT_MEASURED, f"only {known} of {len(pairs)} accepted answers could be weighed"


def describe_coverage(pairs: Sequence[Pair]) -> str:
    """A note when not every pair could be compared: left out are answers of which one side is not known."""
    known = sum(map(_is_weighed, pairs))
    return "" if known == len(pairs) else f"{known} of {len(pairs)} answers have a log-probability then and now"


def is_known_otherwise(pair: Pair) -> bool:
    """Whether the accepted answer is more or less likely now by what is stored, so that accepting it anew changes something."""
    return pair.was.logprob is not None and pair.weighed is not None and abs(pair.was.logprob - pair.weighed) >= GRAIN


def _is_weighed(pair: Pair) -> bool:
    return pair.was.logprob is not None and pair.weighed is not None


def _is_missing(pair: Pair) -> bool:
    """Whether a side is not known although there are tokens to be likely or not: those that changed are among them."""
    return not _is_weighed(pair) and pair.was.output_tokens > 0


def _draws(pairs: Iterable[Pair]) -> list[_Draw]:
    """Each family by the means of its cases; cases without one stand alone."""
    members: dict[tuple[bool, str], list[tuple[float, float]]] = {}
    for pair in pairs:
        key = (pair.family is not None, pair.family or pair.case)
        members.setdefault(key, []).append((pair.was.logprob or 0.0, pair.weighed or 0.0))
    return [_Draw(fmean(was for was, _ in cases), fmean(now for _, now in cases)) for cases in members.values()]
