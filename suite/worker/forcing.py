"""From the logits of a forced answer to the few numbers that are sent on. Runs in the worker; the backend brings numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from suite.errors import UsageError
from suite.packed import pack
from suite.worker.messages import Examined

LEAST = -1000.0
"""Nats: log-probabilities below it are sent as it. Their probability is 0 in double precision, and no message carries an
infinity."""
ROUNDING = 1e-3
"""Nats: a logarithm of a probability above it is none."""
LEAST_REST = 2.0**-23
"""Probability: what a sum of others in single precision cannot tell from nothing. A rest that nobody tells is not less, or a
divergence would be no lower bound."""


def examine(rows: Iterator[Any], answer: Sequence[int], *, top: int, asked: Sequence[Sequence[int]] | None) -> Examined:
    """What the logits before each token of `answer` say, in nats and double precision, rounded to single precision at the end.

    With `asked`, the log-probabilities of those tokens at each position; otherwise those of the `top` likeliest, with their
    ids, or of all where the vocabulary is smaller; either way the logarithm of what is left for all others together. A
    position whose logits are no numbers (NaN, plus infinity, or none but minus infinity) is listed in `broken`, and its
    numbers are 0.

    Raises UsageError for a token of the answer, or one asked for, that the vocabulary does not hold; RuntimeError when there
    are fewer or more rows than tokens.
    """
    import numpy

    width = len(asked[0]) if asked else top
    found = _Numbers(len(answer), width)
    told = 0
    for position, (token, row) in enumerate(zip(answer, rows, strict=False)):
        told, logits = position + 1, numpy.asarray(row, numpy.float64)
        width = width if asked else min(width, len(logits))
        if not numpy.isfinite(logits.max()):
            found.broken.append(position)
            continue
        logprobs = log_softmax(logits)
        _check_held((token,), len(logprobs))
        kept = _asked_of(asked[position], len(logprobs)) if asked else likeliest(logprobs, width)
        others = numpy.exp(logprobs)
        others[kept] = 0.0
        found.best[position], found.best_logprob[position] = logprobs.argmax(), logprobs.max()
        found.ids[position, :width], found.logprobs[position, :width] = kept, _floored(logprobs[kept])
        found.chosen[position] = _floored(logprobs[token])
        found.rest[position] = _log_of(others.sum())
    if told < len(answer) or next(rows, None) is not None:
        given = told if told < len(answer) else f"more than {told}"
        raise RuntimeError(f"the backend gave logits of {given} positions for an answer of {len(answer)} tokens")
    return found.pack(width, with_ids=asked is None)


UNTOLD = math.nan
"""Log-probability of a token that was asked for and is not among those that a server tells."""


def examine_told(
    told: Sequence[Mapping[int, float]],
    answer: Sequence[int],
    *,
    top: int,
    asked: Sequence[Sequence[int]] | None,
) -> Examined:
    """As `examine`, from the log-probabilities of some tokens at each position instead of from logits.

    A token that is asked for and not told is `UNTOLD`; what is left for all others holds it then. That rest is what the told
    tokens that nobody asked for have, and what is missing from a sum of 1, at least `LEAST_REST`.

    Raises RuntimeError when there are fewer or more positions than tokens, one does not tell of its own token, or what is told
    is more than a distribution.
    """
    if len(told) != len(answer):
        raise RuntimeError(f"the backend told of {len(told)} positions for an answer of {len(answer)} tokens")
    width = len(asked[0]) if asked else min([top, *map(len, told)])
    found = _Numbers(len(answer), width)
    for position, (token, known) in enumerate(zip(answer, told, strict=True)):
        if token not in known:
            raise RuntimeError(f"the backend does not tell of token {token} at position {position} of the answer")
        if any(math.isnan(value) or value > ROUNDING for value in known.values()):
            found.broken.append(position)
            continue
        total = math.fsum(map(math.exp, known.values()))
        if total > 1 + ROUNDING:
            raise RuntimeError(f"the backend tells of probabilities that sum to {total:.4g} at position {position}")
        ranked = sorted(known, key=lambda one: (-known[one], one))
        kept = list(asked[position]) if asked else ranked[:width]
        beside = math.fsum(math.exp(known[one]) for one in known.keys() - set(kept))
        found.best[position], found.best_logprob[position] = ranked[0], max(known[ranked[0]], LEAST)
        found.ids[position] = kept
        found.logprobs[position] = [max(known[one], LEAST) if one in known else UNTOLD for one in kept]
        found.chosen[position] = max(known[token], LEAST)
        found.rest[position] = _log_of(max(beside + max(1.0 - total, 0.0), LEAST_REST))
    return found.pack(width, with_ids=asked is None, told=True)


class _Numbers:
    """The arrays of `Examined`, 0 where nothing is entered."""

    def __init__(self, positions: int, width: int) -> None:
        import numpy

        self.chosen, self.best_logprob, self.rest = (numpy.zeros(positions, "<f4") for _ in range(3))
        self.best = numpy.zeros(positions, "<i4")
        self.ids = numpy.zeros((positions, width), "<i4")
        self.logprobs = numpy.zeros((positions, width), "<f4")
        self.broken: list[int] = []

    def pack(self, width: int, *, with_ids: bool, told: bool = False) -> Examined:
        """As they are sent, of the first `width` tokens."""
        return Examined(
            width=width,
            chosen=pack(self.chosen),
            best=pack(self.best),
            best_logprob=pack(self.best_logprob),
            ids=pack(self.ids[:, :width]) if with_ids else "",
            logprobs=pack(self.logprobs[:, :width]),
            rest=pack(self.rest),
            broken=self.broken,
            told=told,
        )


def log_softmax(logits: Any) -> Any:
    """Logarithms of the probabilities, double precision."""
    import numpy

    shifted = logits - logits.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


def likeliest(logprobs: Any, width: int) -> Any:
    """Ids of the `width` largest, the largest first; of equals the lower id first, also where only some of them have room."""
    import numpy

    if not 0 < width < len(logprobs):
        few = numpy.arange(len(logprobs))
    else:
        least = numpy.partition(logprobs, -width)[-width]
        few = (logprobs >= least).nonzero()[0]
    return few[numpy.lexsort((few, -logprobs[few]))][:width]


def _asked_of(ids: Sequence[int], vocabulary: int) -> Any:
    import numpy

    _check_held(ids, vocabulary)
    return numpy.asarray(ids)


def _check_held(ids: Sequence[int], vocabulary: int) -> None:
    """Raise UsageError for the first token that the vocabulary does not hold."""
    strange = next((token for token in ids if not 0 <= token < vocabulary), None)
    if strange is not None:
        raise UsageError(
            f"token {strange} is asked for, and the vocabulary ends at {vocabulary - 1}: the trace is of another model"
        )


def _floored(values: Any) -> Any:
    import numpy

    return numpy.maximum(values, LEAST)


def _log_of(mass: float) -> float:
    import numpy

    return max(float(numpy.log(mass)), LEAST) if mass > 0 else LEAST
