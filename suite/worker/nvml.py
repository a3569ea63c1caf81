"""Questions about the NVIDIA devices of this machine, through NVML where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def ask_nvml(question: Callable[[Any, list[Any]], T]) -> T | None:
    """The answer to a question about the devices; None without NVML, without a device, or when it fails."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return question(pynvml, handles) if handles else None
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
