"""Bytes of a KV cache, computed from the attention of a model."""

from __future__ import annotations

import gguf
import pytest

from suite.errors import VariantError
from suite.models import kv
from suite.models.kv import KvShape, attention_layers, kv_cache_bytes, latent_layer, usual_layer
from suite.records import AttentionLayers

LLAMA_8B = KvShape(layers=(usual_layer(heads=32, kv_heads=8, size_k=128, size_v=128),) * 32)


def test_half_precision_is_two_times_layers_heads_size_bytes_and_context() -> None:
    assert kv_cache_bytes(LLAMA_8B, n_ctx=8192) == 2 * 32 * 8 * 128 * 2 * 8192 == 2**30


@pytest.mark.parametrize(("kind", "per_32"), [("q8_0", 34), ("q4_0", 18), ("q5_1", 24), ("iq4_nl", 18)])
def test_quantized_types_count_their_blocks(kind: str, per_32: int) -> None:
    expected = 2 * 32 * (8 * 128 // 32) * per_32 * 100
    assert kv_cache_bytes(LLAMA_8B, n_ctx=100, type_k=kind, type_v=kind) == expected


def test_keys_and_values_may_differ_in_size_and_type() -> None:
    shape = KvShape(layers=(usual_layer(heads=4, kv_heads=2, size_k=64, size_v=32),))
    assert kv_cache_bytes(shape, n_ctx=10, type_k="q8_0", type_v="f32") == 10 * (2 * 64 // 32 * 34 + 2 * 32 * 4)


def test_a_window_bounds_what_is_kept_and_a_layer_that_shares_keeps_nothing() -> None:
    whole = usual_layer(heads=4, kv_heads=1, size_k=16, size_v=16)
    near = usual_layer(heads=4, kv_heads=1, size_k=16, size_v=16, window=8)
    shared = usual_layer(heads=4, kv_heads=1, size_k=16, size_v=16, keeps=False)
    shape = KvShape(layers=(near, near, whole, shared))
    token = 2 * 16 * 2
    assert kv_cache_bytes(shape, n_ctx=100) == (2 * 8 + 100) * token
    assert kv_cache_bytes(shape, n_ctx=5) == 3 * 5 * token


def test_a_latent_cache_is_the_latent_vector_and_the_shared_key() -> None:
    deepseek_v3 = KvShape(layers=(latent_layer(heads=128, rank=512, rope=64),) * 61)
    assert kv_cache_bytes(deepseek_v3, n_ctx=1) == 61 * 576 * 2 == 70_272  # 70 kB a token, as its paper says


def test_layers_that_are_alike_are_told_together() -> None:
    near = usual_layer(heads=4, kv_heads=2, size_k=16, size_v=16, window=8)
    whole = usual_layer(heads=4, kv_heads=2, size_k=32, size_v=32)
    assert attention_layers(KvShape(layers=(near, near, whole, near)), type_k="f16", type_v="f16") == (
        AttentionLayers(layers=3, kv_bytes=2 * 2 * 16 * 2, attended_flop=2 * 4 * 32, window=8),
        AttentionLayers(layers=1, kv_bytes=2 * 2 * 32 * 2, attended_flop=2 * 4 * 64),
    )


def test_block_sizes_are_those_of_ggml() -> None:
    for name, sizes in kv.BLOCKS.items():
        if not name.endswith(("float16", "float32")):
            assert sizes == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]


@pytest.mark.parametrize(("kind", "says"), [("q9_9", "not known"), ("q8_0", "multiple of 32")])
def test_what_cannot_be_stored_is_an_error(kind: str, says: str) -> None:
    with pytest.raises(VariantError, match=says):
        kv_cache_bytes(KvShape(layers=(usual_layer(heads=1, kv_heads=1, size_k=40, size_v=40),)), n_ctx=1, type_k=kind)
