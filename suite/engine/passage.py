"""The text that scenarios prefill: fixed, own prose and code, long enough not to be a pattern."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from functools import cache
from pathlib import Path

PASSAGE = """\
The workshop at the end of the harbour repairs instruments that measure the sea. A tide gauge arrives with salt in its
bearings, a barometer with a cracked glass, a buoy with a radio that has forgotten its own number. Each one is written
into a ledger: the day it came, who brought it, what it should have read and what it read instead. The ledger matters more
than the tools. Without it nobody could say whether an instrument drifts slowly or broke at once, and the two need
different hands. Marta, who runs the place, compares every instrument with one that she trusts and never lends. She reads
both at the same moment, on the same bench, in the same light, and she does it many times, because a single reading tells
more about the draught from the door than about the gauge. When the two disagree she asks first whether the room has
changed, and only then whether the instrument has. Her apprentice once wrote a small program to keep the comparisons:

def compare(readings, reference):
    pairs = zip(readings, reference)
    differences = sorted(a - b for a, b in pairs)
    middle = len(differences) // 2
    if len(differences) % 2:
        return differences[middle]
    return (differences[middle - 1] + differences[middle]) / 2

It takes the middle of the differences and not their mean, so that one slammed door does not condemn a good barometer.
On the wall hangs a table with three columns: instrument, last accepted value, present value. Some rows are marked with a
circle, which means that the difference is smaller than what the bench could have seen at all. Customers like the circle
least of the three marks, because it promises nothing, and Marta likes it best, because it is the only honest thing to say
on a windy day. In winter the ferry comes once a week: 14 crates in December, 9 in January, 11 in February, and in March
the ice goes out and everything that was broken since autumn arrives in the same hour. Then the bench is never free, two
apprentices read at once, and the door stands open. Those readings go into the ledger too, with a note beside them that
the room was not quiet. Nobody throws them away, and nobody accepts an instrument on the strength of them.
"""


HEAD_TOKENS = 8
"""With which a salted prompt begins: of some hundred different ones, they come together once only."""


def scenario_prompt(passage: Sequence[int], tokens: int, turn: int, salt: str = "") -> tuple[int, ...]:
    """`tokens` token ids out of the encoded passage, starting elsewhere for each `turn`, repeated as far as needed.

    The same turn gives the same ids to every variant; another turn gives others, so that no prompt comes twice in a row. With
    a `salt`, the first ones are drawn from the passage by it and the turn: no other salt gives a prompt that begins so.
    """
    start = (turn * 17) % len(passage)
    rotated = tuple(passage[start:]) + tuple(passage[:start])
    times = -(-tokens // len(rotated))
    return (_head(passage, f"{salt} {turn}" if salt else "") + rotated * times)[:tokens]


def _head(passage: Sequence[int], salt: str) -> tuple[int, ...]:
    drawn = hashlib.blake2b(salt.encode(), digest_size=4 * HEAD_TOKENS).digest() if salt else b""
    places = (int.from_bytes(drawn[at : at + 4]) for at in range(0, len(drawn), 4))
    return tuple(passage[place % len(passage)] for place in places)


@cache
def salt_of(logs: Path) -> str:
    """A salt for the run whose logs lie there: the same one in all of its passes, and no other run's."""
    return f"{logs} {secrets.token_hex(8)}"
