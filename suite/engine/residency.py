"""Which variants can be in memory together. Interleaving needs them all; what does not fit is measured in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psutil

from suite.engine.environment import free_device_bytes
from suite.engine.preparing import Preparer
from suite.errors import QuantdriftError
from suite.records import Protocol, Variant

OVERHEAD_BYTES = 700 * 2**20
"""What a worker needs beside its weights: libraries, KV cache, work space. Measured for torch on a CPU; rounded up."""
GROWTH = 1.5
"""Weights in memory / weights on disk: some types are unpacked when they are loaded."""
SHARE = 0.7
"""Share of the memory that is free now, which a group may take."""


def group_by_memory(
    pairs: Sequence[Sequence[Variant]], protocol: Protocol, preparer: Preparer
) -> Iterator[list[Variant]]:
    """Split the variants into groups that fit into memory together, in their order.

    Each of `pairs` is one variant, or both sides of a duet, which stay together if at all possible. On a machine with an
    accelerator the smaller of the two memories counts, since any variant may lie in either. Set ``resident`` in the
    matrix's ``[protocol]`` where this guess is wrong.
    """
    if protocol.resident == "all" or not pairs:
        yield from [[variant for pair in pairs for variant in pair]] if pairs else []
        return
    free = 0.0 if protocol.resident == "one" else _free_bytes() * SHARE
    group: list[Variant] = []
    taken = 0.0
    for unit, need in _units(pairs, preparer, free):
        if group and taken + need > free:
            yield group
            group, taken = [], 0.0
        group.extend(unit)
        taken += need
    yield group


def _units(
    pairs: Sequence[Sequence[Variant]], preparer: Preparer, free: float
) -> Iterator[tuple[Sequence[Variant], float]]:
    """What must not be parted, with its need: a pair, or its sides one by one when they do not fit together."""
    for pair in pairs:
        needs = [_need(variant, preparer) for variant in pair]
        if sum(needs) <= free:
            yield pair, sum(needs)
        else:
            yield from (([variant], need) for variant, need in zip(pair, needs, strict=True))


def _free_bytes() -> int:
    host = int(psutil.virtual_memory().available)
    device = free_device_bytes()
    return host if device is None else min(host, device)


def _need(variant: Variant, preparer: Preparer) -> float:
    try:
        artifact = preparer.prepare(variant).artifact
    except QuantdriftError:
        return 0.0  # its launch will say what is wrong
    return (artifact.size_bytes if artifact else 0) * GROWTH + OVERHEAD_BYTES
