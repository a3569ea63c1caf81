"""What a CUDA device gives, measured with torch: a streaming read, and products of matrices."""

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


def probe_cuda(torch: Any, device: Any, dtype: Any, size_bytes: int) -> DeviceRates:
    """One reading, the best of a few repetitions each, warmed up; what it allocates is free again afterwards.

    The read is a sum of 32-bit numbers, which takes far longer to fetch them than to add them.
    """

    def seconds(work: Callable[[], object], times: int) -> float:
        best = float("inf")
        for _ in range(REPETITIONS):
            torch.cuda.synchronize(device)
            start = monotonic()
            for _ in range(times):
                work()
            torch.cuda.synchronize(device)
            best = min(best, monotonic() - start)
        return max(best, 1e-9)

    with torch.inference_mode():
        left = torch.ones((SIDE, SIDE), device=device, dtype=dtype)
        target = torch.empty_like(left)
        torch.mm(left, left, out=target)
        flop_s = 2 * SIDE**3 * PRODUCTS / seconds(lambda: torch.mm(left, left, out=target), PRODUCTS)
        buffer = torch.ones(max(size_bytes // 4, 1), device=device, dtype=torch.float32)
        buffer.sum()
        read_bytes_s = buffer.nbytes * PASSES / seconds(buffer.sum, PASSES)
        held = int(buffer.nbytes)
    return DeviceRates(
        device=str(device),
        threads=0,
        size_bytes=held,
        read_bytes_s=read_bytes_s,
        flop_s=flop_s,
        flop_type=str(dtype).removeprefix("torch."),
    )
