"""Small pictures of a series in text, and what takes the place of our typography where only ASCII can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")

BLOCKS = "▁▂▃▄▅▆▇█"
DIGITS = "01234567"
"""From the lowest to the highest, for a terminal without blocks; a reader aloud reads them in order."""
_PLAIN = str.maketrans({
    "→": "->", "−": "-", "–": "-", "…": "...", "·": "|", "×": "x", "≤": "<=", "Δ": "d", "±": "+-",
})  # fmt: skip


def sparkline(values: Sequence[float | None], width: int, signs: str) -> str:
    """One character for each value, or for each stretch where there are more than `width`: the median of what is there.

    The lowest of `signs` stands for the least value, the highest for the largest; one in the middle for what never moves, and a
    space for what is not there.
    """
    cells = [_median(stretch) for stretch in stretches(values, width)]
    present = [cell for cell in cells if cell is not None]
    if not present:
        return " " * len(cells)
    low, high = min(present), max(present)

    def sign(cell: float | None) -> str:
        if cell is None:
            return " "
        if high == low:
            return signs[len(signs) // 2 - 1]
        return signs[min(int((cell - low) / (high - low) * len(signs)), len(signs) - 1)]

    return "".join(sign(cell) for cell in cells)


def marks(marked: Sequence[tuple[bool, bool]], width: int) -> str:
    """What happened along a sparkline of that width: ``a`` baselines were accepted, ``v`` a version changed, ``*`` both."""
    signs = {(False, False): " ", (True, False): "a", (False, True): "v", (True, True): "*"}
    found = [(any(one for one, _ in part), any(one for _, one in part)) for part in stretches(marked, width)]
    return "".join(signs[both] for both in found)


def stretches(items: Sequence[T], width: int) -> list[Sequence[T]]:
    """`items` in order, in at most `width` pieces whose lengths differ by one at most."""
    count = min(len(items), width)
    return [items[len(items) * place // count : len(items) * (place + 1) // count] for place in range(count)]


def to_ascii(line: str) -> str:
    """`line` with our own typography spelled out; what else is not ASCII is left to whoever writes it."""
    return line.translate(_PLAIN)


def _median(stretch: Sequence[float | None]) -> float | None:
    present = [value for value in stretch if value is not None]
    return median(present) if present else None
