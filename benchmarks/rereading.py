"""llama.cpp with really slower decoding: before each token a part of the weights is read once more. For benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from suite.backends.base import Prefilled
from suite.backends.llama_cpp import LlamaCpp, LlamaCppModel, LlamaCppOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadingOptions(LlamaCppOptions):
    """Those of llama.cpp, and how much is read again."""

    reread: float = 0.0
    """Share of the file's bytes, for each token."""


class RereadingModel(LlamaCppModel):
    """The model, with a view of its file."""

    def __init__(self, weights: Path, options: RereadingOptions, prompt_format: str) -> None:
        import numpy

        super().__init__(weights, options, prompt_format)
        whole = numpy.memmap(weights, dtype=numpy.uint64, mode="r", shape=(weights.stat().st_size // 8,))
        self._again = whole[: int(options.reread * len(whole))]

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `LoadedModel.stream`."""
        for item in super().stream(prompt, max_new_tokens):
            if not isinstance(item, Prefilled) and len(self._again):
                self._again.max()
            yield item


class Rereading(LlamaCpp):
    """The backend ``rereading:BACKEND``."""

    options: ClassVar[type[Any]] = RereadingOptions

    def load(self, weights: Path | None, options: Any, prompt_format: str) -> RereadingModel:
        """See `Backend.load`."""
        if weights is None:
            raise ValueError("there is nothing to read again without weights")
        return RereadingModel(weights, options, prompt_format)


BACKEND = Rereading()
