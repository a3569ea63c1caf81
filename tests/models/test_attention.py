"""The attention of a model, as its files tell it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from suite.models.attention import kv_shape, shape_of_config, shape_of_gguf
from suite.models.gguf_header import GgufHeader
from suite.models.kv import KvLayer, KvShape, kv_cache_bytes, latent_layer, usual_layer

Keys = Mapping[str, object]

SMOLLM2 = KvShape(layers=(usual_layer(heads=9, kv_heads=3, size_k=64, size_v=64),) * 30)
DENSE = {"block_count": 4, "embedding_length": 512, "attention.head_count": 8, "attention.head_count_kv": 2}
CONFIG = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512}
LAYER = usual_layer(heads=8, kv_heads=2, size_k=64, size_v=64)
NEAR = usual_layer(heads=8, kv_heads=2, size_k=64, size_v=64, window=16)


def from_gguf(architecture: str = "llama", keys: Keys | None = None) -> KvShape | None:
    metadata = {f"{architecture}.{key}": value for key, value in {**DENSE, **(keys or {})}.items()}
    metadata["general.architecture"] = architecture
    return shape_of_gguf(GgufHeader(metadata, {}, ()))  # type: ignore[arg-type]


def test_the_embedded_model_tells_its_shape(embedded_model: Path) -> None:
    assert kv_shape([embedded_model]) == SMOLLM2


def test_config_json_beside_safetensors_tells_the_same(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert kv_shape([tmp_path / "model.safetensors"]) == SMOLLM2
    assert shape_of_config({"text_config": {**config, "head_dim": 64, "hidden_size": 9999}}) == SMOLLM2


def test_gguf_metadata_may_give_heads_for_each_layer_and_sizes_of_their_own() -> None:
    found = from_gguf(keys={"attention.head_count_kv": (4, 0, 2, 1), "attention.value_length": 96})
    kept = [usual_layer(heads=8, kv_heads=heads, size_k=64, size_v=96) for heads in (4, 2, 1)]
    assert found == KvShape(layers=tuple(kept))  # a layer without KV heads has no attention


@pytest.mark.parametrize(("architecture", "pattern", "windowed"), [
    ("llama", (True, False, True, True), [0, 2, 3]),
    ("llama", 2, [0, 2]),
    ("gemma3", None, [0, 1, 2, 3]),  # five of six, and here are four
    ("gemma2", None, [0, 2]),
    ("phi3", None, []),  # has a window and ignores it
])  # fmt: skip
def test_which_layers_of_a_gguf_look_back_on_a_window(architecture: str, pattern: object, windowed: list[int]) -> None:
    keys = {"attention.sliding_window": 16}
    told = {} if pattern is None else {"attention.sliding_window_pattern": pattern}
    expected = tuple(NEAR if at in windowed else LAYER for at in range(4))
    assert from_gguf(architecture, {**keys, **told}) == KvShape(layers=expected)


def test_a_gguf_whose_last_layers_share_keys_and_values() -> None:
    found = from_gguf("gemma3n", {"attention.shared_kv_layers": 3})
    assert found is not None
    assert [layer.keeps for layer in found.layers] == [True, False, False, False]
    assert kv_cache_bytes(found, n_ctx=10) == 10 * 2 * 2 * 64 * 2


def test_layers_with_a_window_may_have_heads_of_another_size() -> None:
    sizes = {"attention.key_length": 128, "attention.value_length": 128}
    near = {"attention.key_length_swa": 32, "attention.value_length_swa": 32, "attention.sliding_window": 16}
    found = from_gguf("gemma4", {**sizes, **near, "attention.sliding_window_pattern": (True, True, True, False)})
    assert found is not None
    assert [layer.keys for layer in found.layers] == [2 * 32, 2 * 32, 2 * 32, 2 * 128]


def test_layers_that_predict_further_tokens_are_not_run() -> None:
    found = from_gguf(keys={"nextn_predict_layers": 1})
    assert found is not None
    assert len(found.layers) == 3


def test_a_gguf_with_latent_attention_keeps_a_key_and_no_values() -> None:
    latent = {"attention.kv_lora_rank": 512, "attention.key_length": 576, "attention.value_length": 512}
    absorbed = {"attention.key_length_mla": 192, "attention.value_length_mla": 128, "attention.head_count_kv": 1}
    found = from_gguf("deepseek2", {**latent, **absorbed})
    assert found == KvShape(layers=(latent_layer(heads=8, rank=512, rope=64),) * 4)
    assert found.layers[0] == KvLayer(keys=576, values=0, products=8 * (576 + 512))
    older = {"attention.key_length": 192, "attention.value_length": 128, "attention.head_count_kv": 8}
    expanded = from_gguf("deepseek2", {"attention.kv_lora_rank": 512, **older})
    assert expanded == KvShape(layers=(usual_layer(heads=8, kv_heads=8, size_k=192, size_v=128),) * 4)


def test_layers_without_attention_keep_nothing_that_grows() -> None:
    assert from_gguf(keys={"full_attention_interval": 4}) == KvShape(layers=(LAYER,))
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
    assert shape_of_config({**CONFIG, "layer_types": kinds}) == KvShape(layers=(LAYER,))


@pytest.mark.parametrize(("keys", "windowed"), [
    ({"sliding_window": 16}, [0, 1, 2, 3]),
    ({"sliding_window": 16, "use_sliding_window": False}, []),
    ({"sliding_window": None}, []),
    ({"sliding_window": 16, "max_window_layers": 3}, [3]),
    ({"sliding_window": 16, "sliding_window_pattern": 2}, [0, 2]),
    ({"sliding_window": 16, "model_type": "gemma2"}, [0, 2]),
    ({"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 2}, [0, 2]),
    ({"attention_chunk_size": 16, "layer_types": ["full_attention", "chunked_attention"] * 2}, [1, 3]),
])  # fmt: skip
def test_which_layers_of_a_config_look_back_on_a_window(keys: Keys, windowed: list[int]) -> None:
    expected = tuple(NEAR if at in windowed else LAYER for at in range(4))
    assert shape_of_config({**CONFIG, **keys}) == KvShape(layers=expected)


def test_a_config_with_latent_attention() -> None:
    latent = {**CONFIG, "num_key_value_heads": 8, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert shape_of_config(latent) == KvShape(layers=(latent_layer(heads=8, rank=512, rope=64),) * 4)


def test_a_config_whose_layers_share_keys_and_values_and_whose_whole_layers_are_wider() -> None:
    found = shape_of_config({
        **CONFIG, "num_kv_shared_layers": 1, "global_head_dim": 256, "num_global_key_value_heads": 1,
        "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 2,
    })  # fmt: skip
    assert found is not None
    assert [(layer.keys, layer.keeps) for layer in found.layers] == [
        (2 * 64, True), (256, True), (2 * 64, True), (256, False)
    ]  # fmt: skip


@pytest.mark.parametrize("config", [
    {},
    {**CONFIG, "num_key_value_heads": [2, 4, 2, 4]},
    {**CONFIG, "layer_types": ["full_attention"] * 3},
    {**CONFIG, "layer_types": ["compressed_sparse_attention"] * 4},
    {**CONFIG, "kv_lora_rank": 512},
    {**CONFIG, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128},
])  # fmt: skip
def test_what_a_config_does_not_tell_is_none_and_never_zero(config: Keys) -> None:
    assert shape_of_config(config) is None


def test_what_is_not_told_is_none(tmp_path: Path) -> None:
    assert kv_shape([]) is None
    assert kv_shape([tmp_path / "model.safetensors"]) is None
    (tmp_path / "m.gguf").write_bytes(b"no GGUF")
    assert kv_shape([tmp_path / "m.gguf"]) is None
    assert from_gguf(keys={"attention.head_count": "many"}) is None
    assert from_gguf(keys={"attention.indexer.key_length": 128}) is None
