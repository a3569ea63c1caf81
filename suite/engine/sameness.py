"""Whether two computations of the same thing came to the same, but for rounding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from suite.records import Forced, TracedCase, Trial

CLOSE_LOGPROB = MappingProxyType({"rel_tol": 1e-4, "abs_tol": 1e-5})
CLOSE_KLD = MappingProxyType({"rel_tol": 1e-3, "abs_tol": 1e-6})
"""Rounding, nats: six and five digits are kept. Other kernels move the log-probability of a token by 1e-3 and more."""


def tell_difference(fresh: Trial, was: Trial) -> str:
    """How an answer differs from the one of an earlier run; "" when it does not."""
    now, then = fresh.generation, was.generation
    if now is None or then is None:
        return f"case {fresh.case}: it could not be answered"
    if (now.token_ids, now.text, now.finish_reason) != (then.token_ids, then.text, then.finish_reason):
        return f"case {fresh.case}: another answer"
    if (now.logprobs is None) != (then.logprobs is None) or not _close(
        now.logprobs or (), then.logprobs or (), CLOSE_LOGPROB
    ):
        return f"case {fresh.case}: the same answer with other log-probabilities"
    if fresh.score != was.score:
        return f"case {fresh.case}: the same answer is graded otherwise"
    return ""


def is_same_forced(one: Forced, other: Forced) -> bool:
    """The same logits along the same path through the same trace, but for rounding."""
    if (one.trace, one.path, one.broken) != (other.trace, other.path, other.broken):
        return False
    told = [[(d.position, d.token) for d in forced.departures] for forced in (one, other)]
    return (
        told[0] == told[1]
        and _close(one.kld, other.kld, CLOSE_KLD)
        and _close(one.logprobs, other.logprobs, CLOSE_LOGPROB)
        and _close(_known(one.distance), _known(other.distance), CLOSE_KLD)
    )


def is_same_trace(one: TracedCase, other: TracedCase) -> bool:
    """The same answer to the same prompt, as likely, but for rounding."""
    if (one.version, one.prompt_ids, one.answer_ids) != (other.version, other.prompt_ids, other.answer_ids):
        return False
    return _close(one.logprobs, other.logprobs, CLOSE_LOGPROB)


def _known(distance: Sequence[float | None] | None) -> list[float]:
    return [value for value in distance or () if value is not None]


def _close(one: Sequence[float], other: Sequence[float], within: Mapping[str, float]) -> bool:
    return len(one) == len(other) and all(math.isclose(a, b, **within) for a, b in zip(one, other, strict=True))
