"""Which tokens came when. A chunk may hold any number of tokens, and one token may come in two chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from suite.errors import VariantInvalid

TOGETHER_S = 1e-4
"""Chunks that follow one another faster than this had been waiting in a buffer: they came together."""
SLACK, SLACK_SHARE = 2, 0.25
"""By how much the tokens of a text, encoded again, may differ from what the server counted: other splits of the same
text are possible. More is another text, or a wrong count."""
UNKNOWN = -2
"""Stands for the first token whose id is not known; further ones are below it. No id is negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One chunk that carried a part of the answer."""

    at: float
    text: str
    token_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the answer ended, as the server tells."""

    reason: str
    """``stop`` or ``length``."""
    most: int
    """Tokens that were asked for."""
    counted: int | None = None
    """``usage.completion_tokens``."""


def merge(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Chunks that came together have the time of the first of them."""
    merged: list[Arrival] = []
    before = float("-inf")
    for arrival in arrivals:
        at = merged[-1].at if merged and arrival.at - before < TOGETHER_S else arrival.at
        before = arrival.at
        merged.append(Arrival(at=at, text=arrival.text, token_ids=arrival.token_ids))
    return merged


def time_tokens(
    arrivals: Sequence[Arrival], ended: Ended, encode: Callable[[str], list[int]], size_of: Callable[[int], int]
) -> list[tuple[int, float]]:
    """Each token of the answer, without the one that ended it, with the time at which its chunk arrived.

    Ids are those that the server tells, or else those of the text encoded again (`encode`), as many as the server counted:
    surplus ones are dropped, missing ones are `UNKNOWN` and below. `size_of` is the number of bytes that a token stands
    for. Raises VariantInvalid, with both numbers, when text and count do not belong together.
    """
    told = [arrival.token_ids for arrival in arrivals]
    if arrivals and all(ids is not None for ids in told):
        known = [(token, arrival.at) for arrival in arrivals for token in arrival.token_ids or ()]
        check_count(len(known), ended, exact=True)
        return known
    ids = encode("".join(arrival.text for arrival in arrivals))
    number = true_count(len(ids), ended)
    shares = _shares(arrivals, ids, number, size_of)
    times = [arrival.at for arrival, share in zip(arrivals, shares, strict=True) for _ in range(share)]
    ids = ids[:number] + [UNKNOWN - missing for missing in range(number - len(ids))]
    return list(zip(ids, times, strict=True))


def true_count(encoded: int, ended: Ended) -> int:
    """Tokens of the answer without the one that ended it: what the server counted, or else what must have been.

    Some servers count the end token, others do not. A server that stopped for length has made what was asked for.
    """
    check_count(encoded, ended, exact=False)
    if ended.counted is None:
        return ended.most if ended.reason == "length" else encoded
    if ended.reason == "stop" and ended.counted == encoded + 1:
        return encoded
    return ended.counted


def check_count(encoded: int, ended: Ended, *, exact: bool) -> None:
    """Raise VariantInvalid where the tokens that came cannot be the number that the server tells."""
    counted = ended.counted if ended.counted is not None else (ended.most if ended.reason == "length" else encoded)
    if counted > ended.most:
        raise VariantInvalid(f"the server counts {counted} new tokens, and {ended.most} were asked for")
    slack = 0 if exact else max(SLACK, round(SLACK_SHARE * max(encoded, counted)))
    slack += 1 if ended.reason == "stop" else 0
    if abs(counted - encoded) > slack:
        source = "usage" if ended.counted is not None else "finish_reason"
        raise VariantInvalid(
            f"the server counts {counted} new tokens ({source}), and what it sent has {encoded}: one of the two is wrong"
        )


def _shares(arrivals: Sequence[Arrival], ids: Sequence[int], number: int, size_of: Callable[[int], int]) -> list[int]:
    """Tokens of each chunk: one each where there are as many chunks as tokens, else by the bytes that had come with it."""
    if len(arrivals) == number:
        return [1] * number
    ends = list(accumulate(max(size_of(token), 0) for token in ids))
    scale = len("".join(arrival.text for arrival in arrivals).encode()) / ends[-1] if ends and ends[-1] else 1.0
    done, shares, reached, token = 0, [], 0, 0
    for index, arrival in enumerate(arrivals):
        reached += len(arrival.text.encode())
        while token < len(ids) and ends[token] * scale <= reached + 1e-6:
            token += 1
        upto = number if index == len(arrivals) - 1 else round(token * number / len(ids)) if ids else 0
        shares.append(upto - done)
        done = upto
    return shares
