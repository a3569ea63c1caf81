"""Numbers as rules say them."""

from __future__ import annotations

from collections.abc import Sequence


def percent(share: float) -> str:
    """``0.413`` → ``41 %``; a tenth below ten."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 or value == 0 else f"{value:.1f} %"


def duration(seconds: float) -> str:
    """``98.2 ms``, ``1.24 s``."""
    return f"{seconds:.3g} s" if seconds >= 0.9995 else f"{1000 * seconds:.3g} ms"


def size(number: float) -> str:
    """Bytes in decimal units: ``145 MB``, ``4.92 GB``."""
    return f"{number / 1e9:.3g} GB" if number >= 0.9995e9 else f"{number / 1e6:.3g} MB"


def listed(names: Sequence[str], most: int = 4) -> str:
    """``a, b, c and 3 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
