"""From declared weights to a file that a backend loads; and which variants are in memory together."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import psutil
import pytest
from support.in_process import make_preparer, make_variant

from suite.engine.residency import OVERHEAD_BYTES, group_by_memory
from suite.errors import MatrixFileError
from suite.records import Protocol, Variant


def write_gguf(path: Path, kind: str = "Q8_0") -> Path:
    quant = gguf.GGMLQuantizationType[kind]
    block, size = gguf.GGML_QUANT_SIZES[quant]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_uint32("llama.attention.head_count", 4)
    writer.add_uint32("llama.attention.head_count_kv", 2)
    writer.add_uint32("llama.embedding_length", 64)
    writer.add_string("tokenizer.chat_template", "{{ messages }}")
    writer.add_tensor("blk.0.ffn", np.ones((4, 256 // block * size), dtype=np.uint8), raw_dtype=quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_variant(source: str, **more: object) -> Variant:
    return Variant(name="q8", model="toy", backend="llama_cpp", source=source, **more)  # type: ignore[arg-type]


def test_a_backend_without_weights_needs_none(tmp_path: Path) -> None:
    prepared = make_preparer(tmp_path).prepare(make_variant("q4"))
    assert (prepared.weights, prepared.artifact, prepared.paths) == (None, None, ())
    assert prepared.kv_cache_bytes(100, "f16", "f16") is None
    assert list(tmp_path.iterdir()) == []


def test_a_local_file_is_inspected_once(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.Q8_0.gguf")
    preparer = make_preparer(tmp_path)
    prepared = preparer.prepare(gguf_variant("./tiny.Q8_0.gguf", quantization="Q8_0"))
    assert prepared.weights == file
    assert prepared.artifact is not None
    assert prepared.artifact.tensor_types == {"Q8_0": 1}
    assert prepared.artifact.bpw == pytest.approx(8.5)
    assert prepared.artifact.mismatch is None
    assert prepared.tokenizer
    assert (
        prepared.kv_cache_bytes(10, "f16", "f16") == 10 * 2 * 2 * (2 * 16) * 2
    )  # tokens, layers, K and V, width, bytes
    assert preparer.prepare(gguf_variant("./tiny.Q8_0.gguf", quantization="Q8_0")) is prepared


def test_a_label_that_lies_is_shown(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.Q4_K_M.gguf")
    artifact = make_preparer(tmp_path).prepare(gguf_variant("./tiny.Q4_K_M.gguf", quantization="Q4_K_M")).artifact
    assert artifact is not None
    assert artifact.mismatch is not None


def test_gguf_is_not_made_of_safetensors(tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    with pytest.raises(MatrixFileError, match=r"variants\.q8: .*convert_hf_to_gguf\.py"):
        make_preparer(tmp_path).prepare(gguf_variant("./hf"))


def test_variants_are_grouped_by_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preparer = make_preparer(tmp_path)
    pairs = [[make_variant(name)] for name in "abcde"]

    def group(available: int, resident: str = "auto") -> list[str]:
        memory = psutil.virtual_memory()._replace(available=available)
        monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
        protocol = Protocol(resident=resident)  # type: ignore[arg-type]
        return ["".join(v.name for v in found) for found in group_by_memory(pairs, protocol, preparer)]

    assert group(100 * OVERHEAD_BYTES) == ["abcde"]
    assert group(3 * OVERHEAD_BYTES) == ["ab", "cd", "e"]
    assert group(0) == ["a", "b", "c", "d", "e"]
    assert group(100 * OVERHEAD_BYTES, "one") == ["a", "b", "c", "d", "e"]
    assert group(0, "all") == ["abcde"]
    assert list(group_by_memory([], Protocol(), preparer)) == []
    pairs = [[make_variant("a")], [make_variant("b"), make_variant("B")], [make_variant("c")]]
    assert group(3 * OVERHEAD_BYTES) == ["a", "bB", "c"]  # both sides of a duet stay together as long as they fit
    assert group(0) == ["a", "b", "B", "c"]
