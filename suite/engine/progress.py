"""Telling a person what takes long. Quiet unless somebody listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives one short sentence when something that takes long begins."""

    def __call__(self, sentence: str, /) -> None:
        """Show it, or not."""
        ...


def silent(_sentence: str, /) -> None:
    """Shows nothing."""
