"""The neutral kernel that is timed between samples: how fast the machine itself is just now.

Two kernels of one thread and the standard library only, so that no update of a backend moves them: hashing a few megabytes
that lie in the cache (arithmetic), and copying a block that does not (memory). On virtual machines both move by 10 to
20 % within minutes, when the host gives less, and models move with them.
"""

from __future__ import annotations

import hashlib
from statistics import median

from suite import clock
from suite.records import Yardstick

HASHED = bytes(4 << 20)
COPIED_BYTES = 48 << 20
REPETITIONS = 3


class YardstickKernel:
    """Takes readings; the block that is copied is allocated once."""

    def __init__(self) -> None:
        self._block = bytearray(COPIED_BYTES)

    def read(self) -> Yardstick:
        """One reading, some tens of milliseconds: bytes a second, medians of three repetitions."""
        hashes, copies = [], []
        for _ in range(REPETITIONS):
            start = clock.monotonic()
            hashlib.sha256(HASHED).digest()
            middle = clock.monotonic()
            bytes(self._block)
            end = clock.monotonic()
            hashes.append(len(HASHED) / (middle - start))
            copies.append(COPIED_BYTES / (end - middle))
        return Yardstick(hash_bytes_s=median(hashes), copy_bytes_s=median(copies))


def summarize(readings: list[Yardstick]) -> Yardstick | None:
    """The median reading of a launch; None without readings."""
    if not readings:
        return None
    return Yardstick(
        hash_bytes_s=median(reading.hash_bytes_s for reading in readings),
        copy_bytes_s=median(reading.copy_bytes_s for reading in readings),
    )
