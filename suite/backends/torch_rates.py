"""What a device gives, measured with torch: a streaming read, and products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suite.backends.base import DeviceRates
from suite.clock import monotonic

SIDE = 4096
"""Rows and columns of the matrices that are multiplied."""
PRODUCTS = 4
PASSES = 8
REPETITIONS = 3


def measure_device(torch: Any, device: Any, dtype: Any, size_bytes: int, *, side: int = SIDE) -> DeviceRates:
    """One reading, the best of a few repetitions each, warmed up.

    The read is a sum of 32-bit numbers, which takes far longer to fetch them than to add them. Nothing is held afterwards,
    but the allocator keeps its pages until it is told to empty its cache.
    """

    def synchronize() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def seconds(work: Callable[[], object], times: int) -> float:
        best = float("inf")
        for _ in range(REPETITIONS):
            synchronize()
            start = monotonic()
            for _ in range(times):
                work()
            synchronize()
            best = min(best, monotonic() - start)
        return max(best, 1e-9)

    with torch.inference_mode():
        factor = torch.ones((side, side), device=device, dtype=dtype)
        target = torch.empty_like(factor)
        torch.mm(factor, factor, out=target)
        flop_s = 2 * side**3 * PRODUCTS / seconds(lambda: torch.mm(factor, factor, out=target), PRODUCTS)
        buffer = torch.ones(max(size_bytes // 4, 1), device=device, dtype=torch.float32)
        buffer.sum()
        held = int(buffer.nbytes)
        read_bytes_s = held * PASSES / seconds(buffer.sum, PASSES)
    return DeviceRates(
        device=str(device),
        threads=0,
        size_bytes=held,
        read_bytes_s=read_bytes_s,
        flop_s=flop_s,
        flop_type=str(dtype).removeprefix("torch."),
    )
