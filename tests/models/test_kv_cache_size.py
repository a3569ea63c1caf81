"""Bytes of a KV cache, computed from what a model says about itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

from suite.errors import VariantError
from suite.models import kv
from suite.models.kv import KvShape, kv_cache_bytes, kv_shape, shape_of_config

WriteGguf = Callable[..., Path]
LLAMA_8B = KvShape(kv_heads=(8,) * 32, head_size_k=128, head_size_v=128)


def test_half_precision_is_two_times_layers_heads_size_bytes_and_context() -> None:
    assert kv_cache_bytes(LLAMA_8B, n_ctx=8192) == 2 * 32 * 8 * 128 * 2 * 8192 == 2**30


@pytest.mark.parametrize(("kind", "per_32"), [("q8_0", 34), ("q4_0", 18), ("q5_1", 24), ("iq4_nl", 18)])
def test_quantized_types_count_their_blocks(kind: str, per_32: int) -> None:
    expected = 2 * 32 * (8 * 128 // 32) * per_32 * 100
    assert kv_cache_bytes(LLAMA_8B, n_ctx=100, type_k=kind, type_v=kind) == expected


def test_keys_and_values_may_differ_in_size_and_type() -> None:
    shape = KvShape(kv_heads=(2, 0), head_size_k=64, head_size_v=32)
    assert kv_cache_bytes(shape, n_ctx=10, type_k="q8_0", type_v="f32") == 10 * (2 * 64 // 32 * 34 + 2 * 32 * 4)


def test_block_sizes_are_those_of_ggml() -> None:
    for name, sizes in kv.BLOCKS.items():
        if not name.endswith(("float16", "float32")):
            assert sizes == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]


@pytest.mark.parametrize(("kind", "says"), [("q9_9", "not known"), ("q8_0", "multiple of 32")])
def test_what_cannot_be_stored_is_an_error(kind: str, says: str) -> None:
    with pytest.raises(VariantError, match=says):
        kv_cache_bytes(KvShape(kv_heads=(1,), head_size_k=40, head_size_v=40), n_ctx=1, type_k=kind)


def test_the_embedded_model_tells_its_shape(embedded_model: Path) -> None:
    shape = kv_shape([embedded_model])
    assert shape == KvShape(kv_heads=(3,) * 30, head_size_k=64, head_size_v=64)


def test_gguf_metadata_may_give_heads_for_each_layer_and_sizes_of_their_own(write_gguf: WriteGguf) -> None:
    metadata = {
        "llama.block_count": 3,
        "llama.embedding_length": 512,
        "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": [4, 0, 2],
        "llama.attention.value_length": 96,
    }
    path = write_gguf("m.gguf", {"a": ("F32", 1, 4)}, metadata=metadata)
    assert kv_shape([path]) == KvShape(kv_heads=(4, 0, 2), head_size_k=64, head_size_v=96)


def test_config_json_beside_safetensors_tells_the_same(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    expected = KvShape(kv_heads=(3,) * 30, head_size_k=64, head_size_v=64)
    assert kv_shape([tmp_path / "model.safetensors"]) == expected
    assert shape_of_config({"text_config": {**config, "head_dim": 64, "hidden_size": 9999}}) == expected


def test_what_is_not_told_or_compressed_is_none_and_never_zero(tmp_path: Path, write_gguf: WriteGguf) -> None:
    assert kv_shape([]) is None
    assert kv_shape([tmp_path / "model.safetensors"]) is None
    assert kv_shape([write_gguf("m.gguf", {"a": ("F32", 1, 4)})]) is None
    mla = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "kv_lora_rank": 512}
    assert shape_of_config(mla) is None
