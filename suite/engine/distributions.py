"""What a worker told of a forced answer, as arrays; and how far one distribution is from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suite.packed import unpack_floats, unpack_ints
from suite.worker.messages import Examined


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Arrays with one row for each position of an answer; log-probabilities in nats, single precision."""

    chosen: Any
    """Shape (positions,): of the answer's own tokens."""
    best: Any
    """Shape (positions,): the likeliest token."""
    best_logprob: Any
    ids: Any
    """Shape (positions, width): the tokens told of, where the worker chose them; else None."""
    logprobs: Any
    """Shape (positions, width). NaN for a token that was asked for and that a server does not tell of."""
    rest: Any
    """Shape (positions,): of all tokens together whose log-probability is not told."""
    broken: tuple[int, ...]
    """Positions whose logits were no numbers; their rows are 0."""
    told: bool = False
    """By a server, of some tokens alone; nobody here knows the weights behind it."""


def unpack(examined: Examined) -> Rows | None:
    """The arrays of an answer from a worker; None when its backend cannot be forced."""
    if not examined.chosen:
        return None
    width = examined.width
    return Rows(
        chosen=unpack_floats(examined.chosen),
        best=unpack_ints(examined.best),
        best_logprob=unpack_floats(examined.best_logprob),
        ids=unpack_ints(examined.ids).reshape(-1, width) if examined.ids else None,
        logprobs=unpack_floats(examined.logprobs).reshape(-1, width),
        rest=unpack_floats(examined.rest),
        broken=tuple(examined.broken),
        told=examined.told,
    )


def divergence(base: Rows, other: Rows) -> Any:
    """KL divergence of `other` from `base` at each position, nats, double precision; 0 where either is broken.

    Σ p_i (ln p_i − ln q_i) over the tokens that both tell of and one bucket for all others. By the log sum inequality that is
    a lower bound of the divergence over the whole vocabulary, and 0 for equal rows. A token that only one of them tells of
    is one of all others.
    """
    import numpy

    untold = numpy.isnan(base.logprobs) | numpy.isnan(other.logprobs)
    p, q = (_with_rest(rows, untold) for rows in (base, other))
    found = (numpy.exp(p) * (p - q)).sum(axis=1).clip(min=0.0)  # rounding may leave a little less than 0
    found[[*base.broken, *other.broken]] = 0.0
    return found


def _with_rest(rows: Rows, untold: Any) -> Any:
    """Log-probabilities of the tokens that are told, and behind them of all others; an `untold` one is one of the others.

    Its own column is 0: the same on both sides, which adds nothing.
    """
    import numpy

    logprobs, rest = rows.logprobs.astype(numpy.float64), rows.rest.astype(numpy.float64)
    moved = numpy.where(untold & ~numpy.isnan(logprobs), logprobs, -numpy.inf)
    others = numpy.logaddexp.reduce(numpy.column_stack([moved, rest]), axis=1) if untold.any() else rest
    return numpy.column_stack([numpy.where(untold, 0.0, logprobs), others])
