"""In which order variants are timed: the old side of a duet always stands next to its variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from suite.records import Variant

T = TypeVar("T")


def pair_up(variants: Sequence[Variant], launch: int = 0) -> list[list[Variant]]:
    """Each variant with its old side, in the order of `variants`.

    The new side comes first in even launches and the old one in odd launches, so that being first is nobody's
    advantage. An old side without its variant is left out: there is nothing to compare it with.
    """
    old = {variant.old_of: variant for variant in variants if variant.old_of is not None}
    pairs = [
        [variant, old[variant.name]] if variant.name in old else [variant]
        for variant in variants
        if variant.old_of is None
    ]
    return [pair[::-1] if launch % 2 else pair for pair in pairs]


def in_turn(order: Sequence[T], turn: int) -> Iterator[T]:
    """The order of one turn, there and back (ABBA): a linear drift of the machine cancels out."""
    return iter(order) if turn % 2 == 0 else reversed(order)
